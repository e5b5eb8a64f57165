"""faultline failures: counts and verdicts in every form, and what people decide over them."""

from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ESTIMATE = {"value", "lower", "upper", "conf_level", "n"}
LISTED = {
    "attempt_key", "job_id", "attempt", "failed_at", "state", "cause", "domain", "confidence",
    "method", "node", "evidence",
}  # fmt: skip
WITHOUT_GPUS = """JobID|Cluster|State|Submit|Start|End
7|c|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00
8|c|CANCELLED|2026-01-05T00:00:00|None|2026-01-06T00:00:00
"""


@pytest.fixture
def store(tmp_path: Path, sacct_store: Path) -> Path:
    """A store of one's own."""
    shutil.copytree(sacct_store, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def without_gpus(tmp_path: Path, faultline: Callable[..., Any]) -> Path:
    """Attempts whose nodes and GPUs no record tells."""
    (tmp_path / "sacct.txt").write_text(WITHOUT_GPUS, encoding="utf-8")
    faultline("ingest", "sacct", tmp_path / "sacct.txt", "--store", tmp_path / "bare")
    return tmp_path / "bare"


def test_the_summary_adds_up_and_every_estimate_is_an_object(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    found = faultline("failures", "--store", demo_store).json
    assert found["synthetic"] is True
    assert set(found["unknown_ratio"]) == ESTIMATE
    for by in ("by_cause", "by_domain"):
        assert sum(each["n_attempts"] for each in found[by]) == found["failed"]
        assert all(set(each["rate_per_1000_node_days"]) == ESTIMATE for each in found[by])
    assert sum(each["n_attempts"] for each in found["by_state"]) == found["ended"]
    assert all(set(each["share"]) == ESTIMATE for each in found["by_state"])


def test_the_list_holds_one_verdict_an_attempt(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    rows = faultline("failures", "--store", demo_store, "--list").json
    summary = faultline("failures", "--store", demo_store).json
    assert len(rows) == len({row["attempt_key"] for row in rows}) == summary["failed"]
    assert set(rows[0]) >= LISTED
    hardware = faultline("failures", "--store", demo_store, "--domain", "hardware").json
    (counted,) = (each for each in summary["by_domain"] if each["domain"] == "hardware")
    assert len(hardware) == counted["n_attempts"]
    assert all(row["evidence"] for row in hardware if row["method"] != "human")


def test_the_forms_agree_and_a_limit_keeps_the_latest(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    asked = ("failures", "--store", demo_store, "--list", "--limit", 5, "--format")
    keys = [row["attempt_key"] for row in faultline(*asked, "json").json]
    rows = list(csv.DictReader(faultline(*asked, "csv").out.splitlines()))
    assert [row["attempt_key"] for row in rows] == keys
    _, title, header, _, *lines = faultline(*asked, "table").out.splitlines()
    assert title == "Failed attempts"
    assert header.endswith("Cluster  Attempt key")  # what `annotate` asks for
    assert [line.split()[-2:] for line in lines] == [["demo", key] for key in keys]


def test_what_is_unknown_is_null_and_never_zero(
    faultline: Callable[..., Any], without_gpus: Path
) -> None:
    summary = faultline("failures", "--store", without_gpus).json
    hours = {each["state"]: each["gpu_hours"] for each in summary["by_state"]}
    assert hours == {"FAILED": None, "CANCELLED": 0.0}
    assert [each["gpu_hours"] for each in summary["by_cause"]] == [None]
    (row,) = faultline("failures", "--store", without_gpus, "--list").json
    assert (row["n_gpus"], row["gpu_hours"], row["node"]) == (None, None, None)
    for form in ("csv", "table"):
        listed = faultline("failures", "--store", without_gpus, "--list", "--format", form).out
        assert "NA" not in listed
        assert "nan" not in listed
    table = faultline("failures", "--store", without_gpus, "--format", "table").out
    assert "unknown" in next(line for line in table.splitlines() if line.startswith("Unknown"))


@pytest.mark.slow
def test_a_cause_that_people_say_counts_everywhere_until_it_is_undone(
    faultline: Callable[..., Any], store: Path
) -> None:
    def counts() -> tuple[int, int, list[str]]:
        summary = faultline("failures", "--store", store).json
        mttf = faultline("mttf", "--min-gpus", "0", "--store", store).json
        listed = faultline("failures", "--store", store, "--domain", "hardware").json
        return summary["failures_by_hardware"], mttf["failures"], [row["cause"] for row in listed]

    (done,) = faultline(
        "sql", "SELECT attempt_key FROM jobs WHERE job_id = '1'", "--store", store
    ).json
    before = counts()
    said = faultline(
        "annotate", f"attempt:c/{done['attempt_key']}", "--cause", "nvlink", "--store", store
    ).json
    assert counts() == (before[0] + 1, before[1] + 1, ["nvlink"])
    faultline("annotate", "--undo", said["annotation_id"], "--store", store)
    assert counts() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--cause", "nvlnk"), "nvlnk"),
        (("--cluster", "nope"), "must be one of the store's"),
        (("--limit", "-1"), "whole number"),
        (("--from", "2026-02-01", "--to", "2026-01-01"), "before --to"),
        (("--conf-level", "2"), "conf_level"),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(
    refused: Callable[..., str], sacct_store: Path, arguments: tuple[str, ...], reason: str
) -> None:
    assert reason in refused("failures", "--store", sacct_store, *arguments)


def test_a_store_without_attempts_says_that_nothing_is_known(
    faultline: Callable[..., Any], empty_store: Path
) -> None:
    found = faultline("failures", "--store", empty_store).json
    assert (found["ended"], found["failed"], found["by_cause"]) == (0, 0, [])
    assert found["unknown_ratio"]["value"] is None
    assert faultline("failures", "--list", "--store", empty_store).json == []


def test_failures_without_an_attempt_are_counted_and_said_to_be_missing_from_the_list(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(
        "Date,Hardware Identifier,What Failed,Description of Failure,Action Taken\n"
        "1/1/2026 7:00,node 13,DISK,I/O error on a drive,REPLACE\n",
        encoding="utf-8",
    )
    store = tmp_path / "logged"
    faultline("ingest", "failure-log", tmp_path / "log.csv", "--mapping", "pnnl", "--store", store)
    summary = faultline("failures", "--store", store).json
    assert (summary["failed"], summary["failed_without_attempt"]) == (1, 1)
    assert [(each["cause"], each["gpu_hours"]) for each in summary["by_cause"]] == [("disk", None)]
    listed = faultline("failures", "--list", "--store", store)
    assert listed.json == []
    assert "1 failure is known without an attempt" in listed.err


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (("TIMEOUT", "TIMEOUT"), ", 2 by the user's program; whether the infrastructure ended any"),
        (("TIMEOUT", "FAILED"), ", 1 by the user's program; whose fault the other was"),
        (("FAILED", "FAILED"), "; whose fault it was"),
    ],
)
def test_where_no_failure_could_be_seen_none_is_counted_as_none(
    tmp_path: Path, faultline: Callable[..., Any], states: tuple[str, ...], says: str
) -> None:
    head = "JobID|Cluster|State|Submit|Start|End|NNodes|NodeList"
    hour = "2026-01-05T01:00:00|2026-01-05T01:00:00|2026-01-05T02:00:00|1|n1"
    jobs = [f"{job}|c|{state}|{hour}" for job, state in enumerate((*states, "COMPLETED"), 1)]
    (tmp_path / "sacct.txt").write_text("\n".join([head, *jobs]) + "\n")
    options = ("--store", tmp_path / "store")
    faultline("ingest", "sacct", tmp_path / "sacct.txt", *options)
    said = faultline("failures", *options, "--format", "table").out
    assert said.startswith(f"2 of 3 attempts failed{says} cannot be judged: no failure could be")
