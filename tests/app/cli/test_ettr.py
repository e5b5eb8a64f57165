"""faultline ettr: the expected ETTR of a job, in every form, and every refusal."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCES = Path(__file__).resolve().parents[2] / "references"
OPTIONS = ("gpus", "rate_per_1000_node_days", "restart_min", "write_min", "interval_min",
           "queue_min")  # fmt: skip
KEYS = {"v1", "v2", "full", "exact", "daly_young_interval_min", "optimal_interval_min",
        "simulated", "interval_min", "notes"}  # fmt: skip
JOB = ("ettr", "--gpus", 12_000, "--rate-per-1000-node-days", 6.5, "--restart-min", 5)


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize(
    "row",
    reference("expected_ettr.csv"),
    ids=lambda row: f"{row['form']} {row['gpus']} GPUs {row['ettr']}",
)
def test_the_published_what_ifs_come_from_the_command(
    faultline: Callable[..., Any], row: dict[str, str]
) -> None:
    given = [(f"--{name.replace('_', '-')}", row[name]) for name in OPTIONS if row[name]]
    said = faultline("ettr", *(part for pair in given for part in pair))
    assert said.code == 0
    assert said.json[row["form"]] == pytest.approx(float(row["ettr"]), abs=float(row["tolerance"]))


def test_the_keys_of_the_contract_are_there_and_plain(faultline: Callable[..., Any]) -> None:
    found = faultline(*JOB, "--write-min", 5).json
    assert set(found) >= KEYS
    for name in ("v1", "v2", "full", "exact", "daly_young_interval_min", "optimal_interval_min"):
        assert isinstance(found[name], float)
    assert (
        found["daly_young_interval_min"] == found["interval_min"] == pytest.approx(38.4, abs=0.05)
    )
    assert found["simulated"] is None
    assert found["mttf_hours"] == pytest.approx(24 / 9.75)


def test_a_simulation_is_an_estimate_that_its_seed_fixes(faultline: Callable[..., Any]) -> None:
    given = (*JOB, "--write-min", 5, "--simulate", 20_000, "--conf-level", 0.99)
    found = faultline(*given).json
    assert set(found["simulated"]) == {"value", "lower", "upper", "conf_level", "n"}
    assert found["simulated"]["lower"] < found["exact"] < found["simulated"]["upper"]
    assert (found["simulated"]["conf_level"], found["simulated"]["n"]) == (0.99, 20_000)
    assert faultline(*given, "--seed", 0).json == found != faultline(*given, "--seed", 1).json


def test_the_length_of_a_run_counts_in_v1_full_and_the_simulation(
    faultline: Callable[..., Any],
) -> None:
    given = (*JOB, "--write-min", 5, "--queue-min", 10, "--simulate", 4000)
    long, short = faultline(*given).json, faultline(*given, "--run-days", 0.5).json
    for name in ("v1", "full"):
        assert short[name] < long[name]
    assert short["simulated"]["value"] < long["simulated"]["value"]
    assert (short["v2"], short["exact"]) == (long["v2"], long["exact"])
    assert (long["exact_of_run"], long["simulated_of"]) == (None, "interruptions")
    assert short["simulated_of"] == "runs"
    assert short["exact_of_run"] == pytest.approx(short["simulated"]["value"], rel=0.02)


def test_writes_that_cost_nothing_have_no_best_interval(faultline: Callable[..., Any]) -> None:
    said = faultline(*JOB)
    lost = 9.75 / 1440 * 5
    assert (said.json["v2"], said.json["exact"]) == (
        pytest.approx(1 - lost), pytest.approx(math.exp(-lost)),
    )  # fmt: skip
    assert said.json["daly_young_interval_min"] is said.json["optimal_interval_min"] is None
    assert "no best interval" in said.err


def test_nodes_of_other_sizes_fail_as_often_as_there_are_nodes(
    faultline: Callable[..., Any],
) -> None:
    wide = faultline(*JOB, "--interval-min", 30, "--gpus-per-node", 4).json
    twice = faultline("ettr", "--gpus", 24_000, *JOB[3:], "--interval-min", 30).json
    assert wide["exact"] == twice["exact"]


def test_csv_holds_a_row_a_quantity(faultline: Callable[..., Any]) -> None:
    given = (*JOB, "--write-min", 5, "--simulate", 5000)
    found = faultline(*given).json
    rows = csv.DictReader(io.StringIO(faultline(*given, "--format", "csv").out))
    by_name = {row["quantity"]: row for row in rows}
    assert float(by_name["exact"]["value"]) == found["exact"]
    assert by_name["exact"]["lower"] == by_name["exact_of_run"]["value"] == ""
    for name, value in found["simulated"].items():
        assert float(by_name["simulated"][name]) == value


def test_a_table_says_forms_intervals_and_what_moves_them(faultline: Callable[..., Any]) -> None:
    said = faultline(*JOB, "--write-min", 5, "--simulate", 5000, "--run-days", 30,
                     "--format", "table")  # fmt: skip
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert any(line.startswith("exact 0.736") for line in lines)
    assert "Daly-Young interval 38.4 min" in lines
    assert any(line.startswith("ETTR, simulated") and "n = 5,000)" in line for line in lines)
    assert "MTTF of the job 2.46 h" in lines
    assert any(line.startswith("write_min") for line in lines)
    none = faultline(*JOB[:3], "--rate-per-1000-node-days", 0, "--restart-min", 5,
                     "--write-min", 5, "--format", "table")  # fmt: skip
    assert "Daly-Young interval none" in " ".join(none.out.split())


REFUSED = {
    "no rate": (["--gpus", "8"], "--rate-per-1000-node-days must be given with --gpus"),
    "no restart": (
        ["--gpus", "8", "--rate-per-1000-node-days", "6.5"],
        "--restart-min must be given with --gpus",
    ),
    "a job of no GPUs": (["--gpus", "0"], "gpus must be a finite number > 0, got 0"),
    "half a GPU": (["--gpus", "0.5"], "argument --gpus: invalid int value"),
    "a negative rate": (["--rate-per-1000-node-days=-1"], "number >= 0, got -1.0"),
    "a restart that is no number": (["--restart-min", "nan"], "restart_min must be a finite"),
    "a negative write": (["--write-min=-1"], "write_min must be a finite number >= 0"),
    "no interval at all": (["--write-min", "1", "--interval-min", "0"], "leave it out: Daly-Young"),
    "a negative queue": (["--queue-min=-5"], "queue_min must be a finite number >= 0"),
    "a run of no days": (["--run-days", "0"], "run_days must be a finite number > 0"),
    "half a simulation": (["--simulate", "0.5"], "no whole number from 0 to"),
    "a level in percent": (["--conf-level", "90"], "pass 0.9 for 90 %"),
    "a node of no GPUs": (["--gpus-per-node", "0"], "gpus_per_node must be a finite number > 0"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_has_no_answer_is_refused_in_one_line(
    refused: Callable[..., str], case: tuple[list[str], str]
) -> None:
    options, message = case
    given = [] if message.endswith("with --gpus") else list(JOB[1:])
    assert message in refused("ettr", *given, *options)


SACCT = """JobID|Cluster|JobName|User|State|Submit|Eligible|Start|End|NNodes|AllocTRES|NodeList
7|c|llm|u|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|2026-01-05T11:00:00|2|gres/gpu=16|n[1-2]
7|c|llm|u|COMPLETED|2026-01-05T11:00:00|2026-01-05T11:00:00|2026-01-05T12:00:00|2026-01-06T00:00:00|2|gres/gpu=16|n[1-2]
"""


@pytest.fixture(scope="session")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one run of two attempts; only to be read."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "sacct.txt").write_text(SACCT, encoding="utf-8")
    root = folder / "store"
    options = Options(timezone="UTC")
    ingest_files(root, "sacct", [str(folder / "sacct.txt")], options)
    return root


def test_one_run_is_told_attempt_by_attempt_and_over_time(
    faultline: Callable[..., Any], run_store: Path
) -> None:
    found = faultline("ettr", "--store", run_store, "--run", 7).json
    assert found["ettr"]["value"] == pytest.approx(75_570 / 86_400)
    assert (found["ettr"]["basis"], found["ettr"]["conf_level"]) == ("assumed", None)
    assert (found["expected"]["n"], found["expected"]["conf_level"]) == (1, 0.9)
    assert [each["lost_s"] for each in found["attempts"]] == [1830, 0]
    assert found["over_time"][-1]["cumulative"] == pytest.approx(found["ettr"]["value"])
    assert found["over_time"][0]["cumulative"] is None
    assert found["window_s"] == 3600
    assert (found["run_id"], found["cluster"], found["synthetic"]) == ("7", "c", False)


def test_one_run_as_table_and_csv_and_without_names(
    faultline: Callable[..., Any], run_store: Path
) -> None:
    given = ("ettr", "--store", run_store, "--run", "7")
    assert "Productive over elapsed" in faultline(*given, "--format", "table").out
    rows = list(csv.DictReader(io.StringIO(faultline(*given, "--format", "csv").out)))
    assert [row["productive_s"] for row in rows] == ["33330", "42240"]
    assert {row["name"] for row in rows} == {"llm"}
    hidden = faultline(*given, "--redact").json
    assert {each["name"] for each in hidden["attempts"]} != {"llm"}


def test_a_run_that_is_not_there_is_refused(refused: Callable[..., str], run_store: Path) -> None:
    assert "run '8' is not in the store" in refused("ettr", "--store", run_store, "--run", 8)


def test_what_is_measured_says_waits_failures_and_what_the_rest_went_to(
    faultline: Callable[..., Any], run_store: Path
) -> None:
    found = faultline("ettr", "--store", run_store).json
    assert found["n_runs"] == 1
    assert found["wait_hours"]["value"] == 1.0
    assert found["failures_per_run"]["value"] == 1.0
    spent = sum(found["shares"].values())
    assert spent + found["ettr"]["value"] == pytest.approx(1.0)
