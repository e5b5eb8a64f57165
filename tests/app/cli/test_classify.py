"""faultline classify: a log's cause, and models of a site's labelled text."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ECC = "step 4\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"
ESTIMATE = {"value", "lower", "upper", "conf_level", "n"}
KEYS = {"accuracy", "macro_f1", "n", "per_class", "at_coverage"}
TEXTS = {
    "power": ("row feed {n} opened", "lost input voltage at shelf {n}"),
    "nic": ("port {n} flapped for good", "adapter {n} went dark"),
    "Cooling": ("coolant pump {n} stuck", "leak below rack {n}"),
}


def write_rows(path: Path, n: int, *, month: int = 1) -> Path:
    """A table of labelled texts in our own words."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["at", "note", "place", "what"])
        for row in range(n):
            label = sorted(TEXTS)[row % 3]
            text = TEXTS[label][row // 3 % 2].format(n=row)
            table.writerow(
                [f"2024-{month + row * 3 // n:02}-0{1 + row % 9}", text, f"hall {row}", label]
            )
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.csv", 90)


@pytest.fixture
def ecc(tmp_path: Path) -> Path:
    path = tmp_path / "train"
    path.write_text(ECC, encoding="utf-8")
    return path


def test_the_cause_of_a_log_with_its_labels_and_its_line(
    faultline: Callable[..., Any], ecc: Path
) -> None:
    found = faultline("classify", ecc).json
    assert {"cause", "labels", "domain", "confidence", "method", "evidence", "alternatives"} <= set(
        found
    )
    assert (found["cause"], found["domain"], found["method"]) == (
        "gpu_memory",
        "hardware",
        "log_rule",
    )
    assert found["labels"] == {"rsc": "GPU memory errors", "acme": "ECC", "llama3": "HBM3"}
    assert found["evidence"][0]["line"] == 2
    assert "ECC" in found["evidence"][0]["text"]


def test_a_packed_log_and_standard_input_are_read(
    faultline: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(ECC.encode()))
    assert faultline("classify", packed).json["cause"] == "gpu_memory"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(ECC.encode())))
    assert faultline("classify", "-").json["cause"] == "gpu_memory"


def test_a_log_called_train_is_read_by_its_path(
    faultline: Callable[..., Any], ecc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ecc.parent)
    assert faultline("classify", f".{os.sep}train").json["cause"] == "gpu_memory"


@pytest.mark.parametrize(
    "text", ["\n\n", "epoch 1 done\nfinished, 0 errors\n"], ids=["blank", "healthy"]
)
def test_a_log_without_a_cause_is_unknown_and_no_error(
    faultline: Callable[..., Any], tmp_path: Path, text: str
) -> None:
    (tmp_path / "log").write_text(text, encoding="utf-8")
    said = faultline("classify", tmp_path / "log", "--store", tmp_path / "none")
    assert said.code == 0
    assert (said.json["cause"], said.json["domain"], said.json["method"]) == (
        "unknown",
        "unknown",
        "none",
    )
    assert said.json["labels"] == {"rsc": None, "acme": None, "llama3": None}
    assert said.json["evidence"] == []
    assert not (tmp_path / "none").exists()


def test_what_is_no_log_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    assert "is empty" in refused("classify", tmp_path / "empty")
    assert "is binary" in refused("classify", tmp_path / "binary")
    assert "no such file" in refused("classify", tmp_path / "nothing")
    assert "is a folder" in refused("classify", tmp_path)
    assert "FILE" in refused("classify")
    assert "unrecognized" in refused("classify", tmp_path / "empty", "more")


@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_verdict_for_people_and_for_sheets(
    faultline: Callable[..., Any], ecc: Path, form: str
) -> None:
    said = faultline("classify", ecc, "--format", form)
    assert "gpu_memory" in said.out
    assert faultline("classify", "--format", form, ecc).out == said.out


def test_training_says_what_was_learnt_and_the_model_answers_where_rules_do_not(
    faultline: Callable[..., Any], rows: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    said = faultline(
        "classify", "train", rows, "--text", "note", "--label", "what", "--store", store
    )
    found = said.json
    assert set(found) >= KEYS
    assert found["n"] == 90
    assert found["classes"] == {"Cooling": 30, "nic": 30, "power": 30}
    assert set(found["accuracy"]) == ESTIMATE
    assert found["accuracy"]["value"] == 1.0
    assert found["model"] == str(store / "models" / f"{found['training_sha256']}.json")
    assert (
        json.loads((store / "models" / f"{found['training_sha256']}.json").read_text())["format"]
        == 1
    )
    (tmp_path / "log").write_text("start\nrow feed 7 opened\n", encoding="utf-8")
    verdict = faultline("classify", tmp_path / "log", "--store", store).json
    assert (verdict["cause"], verdict["domain"], verdict["method"]) == (
        "power",
        "hardware",
        "log_model",
    )
    assert verdict["labels"]["llama3"] == "PSU"
    assert verdict["evidence"][0] == {"line": 2, "text": "row feed 7 opened"}


def test_the_rules_come_before_the_model(
    faultline: Callable[..., Any], rows: Path, ecc: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    faultline("classify", "train", rows, "--text", "note", "--label", "what", "--store", store)
    assert faultline("classify", ecc, "--store", store).json["method"] == "log_rule"


def test_training_without_a_store_stores_nothing_and_says_so(
    faultline: Callable[..., Any], rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAULTLINE_STORE", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said = faultline("classify", "train", "--text", "note", "--label", "what", "--", rows)
    assert said.json["model"] is None
    assert "was not stored" in said.err
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_labels_that_mean_no_cause_are_named(faultline: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("t,l\n" + "a b,first kind\nc d,second kind\n" * 20, encoding="utf-8")
    said = faultline(
        "classify", "train", path, "--text", "t", "--label", "l", "--store", tmp_path / "s"
    )
    assert said.json["labels_without_cause"] == ["first kind", "second kind"]
    assert "taxonomy.labels" in said.err


def test_an_evaluation_holds_the_keys_of_the_contract(
    faultline: Callable[..., Any], rows: Path, tmp_path: Path
) -> None:
    test = write_rows(tmp_path / "test.csv", 30, month=4)
    asked = ("classify", "evaluate", "--train", rows, "--test", test, "--label", "what")
    found = faultline(*asked, "--text", "note", "--text", "place").json
    assert set(found) >= KEYS
    assert found["n"] == 30
    assert set(found["accuracy"]) == set(found["macro_f1"]) == ESTIMATE
    assert found["accuracy"]["value"] == 1.0
    assert {one["label"] for one in found["per_class"]} == set(TEXTS)
    assert all({"precision", "recall", "f1", "n"} < set(one) for one in found["per_class"])
    assert 0.85 in [one["coverage"] for one in found["at_coverage"]]
    assert faultline(*asked, "--text", "note", "place").json == found


def test_a_model_trained_anew_each_month_stands_beside_the_first(
    faultline: Callable[..., Any], rows: Path, tmp_path: Path
) -> None:
    test = tmp_path / "test.csv"
    new = "".join(
        f"2024-0{5 + row % 2}-10,quench valve {row} open,hall,quench\n" for row in range(40)
    )
    test.write_text("at,note,place,what\n" + new, encoding="utf-8")
    found = faultline(
        "classify", "evaluate", "--train", rows, "--test", test, "--text", "note", "--label", "what",
        "--retrain", "month", "--time", "at",
    )  # fmt: skip
    assert "has not seen: quench" in found.err
    assert found.json["accuracy"]["value"] == 0.0
    monthly = found.json["retrained"]
    assert set(monthly) >= KEYS
    assert monthly["trainings"] == 2
    assert monthly["accuracy"]["value"] == 0.5  # the second month knows the first


def test_the_table_shows_every_list(faultline: Callable[..., Any], rows: Path) -> None:
    said = faultline("classify", "evaluate", "--train", rows, "--test", rows, "--text", "note",
                     "--label", "what", "--retrain", "month", "--time", "at", "--format", "table")  # fmt: skip
    assert said.code == 2  # the first month has nothing before it
    said = faultline("classify", "evaluate", "--train", rows, "--test", rows, "--text", "note",
                     "--label", "what", "--format", "table")  # fmt: skip
    for part in (
        "Accuracy",
        "Macro F1",
        "Label by label",
        "Cooling",
        "Where the model speaks",
        "85 %",
    ):
        assert part in said.out


def test_what_cannot_be_learnt_is_refused(
    refused: Callable[..., str], rows: Path, tmp_path: Path
) -> None:
    few = write_rows(tmp_path / "few.csv", 12)
    asked = ("classify", "evaluate", "--test", rows, "--text", "note", "--label", "what")
    assert "at least 20 labelled rows, got 12" in refused(*asked, "--train", few)
    assert "--retrain month needs --time" in refused(*asked, "--train", rows, "--retrain", "month")
    assert "did you mean 'note'" in refused(
        "classify", "train", rows, "--text", "notes", "--label", "what"
    )
    assert "--label" in refused("classify", "train", rows, "--text", "note")
    assert "no time that can be read" in refused(
        *asked, "--train", rows, "--retrain", "month", "--time", "place"
    )


@pytest.mark.slow
def test_the_hard_real_failures_of_a_cluster(
    faultline: Callable[..., Any], shared: Path, tmp_path: Path
) -> None:
    from data.ingest.formats.tabular import parsed_times

    with (shared / "pnnl" / "pnnl_failures_until_2006-11.csv").open(newline="") as stream:
        header, *records = csv.reader(stream)
    times = parsed_times([record[0] for record in records])
    records = [records[row] for row in sorted(range(len(records)), key=lambda row: times[row])]
    first = len(records) - len(records) // 5
    for name, part in (("a.csv", records[:first]), ("b.csv", records[first:])):
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows([header, *part])
    found = faultline(
        "classify", "evaluate", "--train", tmp_path / "a.csv", "--test", tmp_path / "b.csv",
        "--text", "Description of Failure", "--text", "Hardware Identifier", "--label", "What Failed",
    ).json  # fmt: skip
    covered = {one["coverage"]: one["accuracy"]["value"] for one in found["at_coverage"]}
    assert found["accuracy"]["value"] >= 0.88
    assert found["macro_f1"]["value"] >= 0.68
    assert covered[0.85] >= 0.95
