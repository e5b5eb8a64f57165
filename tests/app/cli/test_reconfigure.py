"""faultline reconfigure: jobs of a file, of a store, and what cannot be judged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.cli.conftest import SACCT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = """Job_ID,GPUs,min_gpus,weight
a,64,64,2
b,64,32,
c,,8,1
b,8,8,1
d,16,32,1
e,eight,,
f,32,16,1
"""
RATE = ("--rate-per-1000-node-days", 6.5)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A table of which some rows are no job."""
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS, encoding="utf-8")
    return file


def test_another_job_gives_up_nodes_for_one_that_cannot_shrink(
    faultline: Callable[..., Any], jobs: Path
) -> None:
    asked = ("reconfigure", "--jobs", jobs, *RATE, "--faulted", "a")
    found = faultline(*asked, "--format", "json").json
    after = {each["job"]: (each["gpus_before"], each["gpus_after"]) for each in found["jobs"]}
    assert after["a"] == (64, 64)
    assert sum(gpus for _, gpus in after.values()) == 152
    assert found["weighted_flops"] == pytest.approx(152 + 64)
    assert found["action"] == "reconfigure"
    assert {each["job"] for each in found["if_hit"]} == {"a", "b", "f"}
    said = faultline(*asked, "--format", "table")
    assert "4 rows left out, the first of line 4" in said.out + said.err


def test_the_cost_has_the_interval_of_the_rate(
    faultline: Callable[..., Any], own_store: Path
) -> None:
    found = faultline(
        "reconfigure", "--store", own_store, "--lost-gpus", 2, "--format", "json"
    ).json
    cost, rate = found["expected_cost_hours"], faultline(
        "mttf", "--store", own_store, "--format", "json"
    ).json["rate_per_1000_node_days"]  # fmt: skip
    assert cost["lower"] <= cost["value"] <= cost["upper"]
    assert cost["n"] == rate["n"] == 1


def test_a_failure_that_takes_no_node_is_restarted_or_tried_again(
    faultline: Callable[..., Any], jobs: Path
) -> None:
    asked = ("reconfigure", "--jobs", jobs, *RATE, "--format", "json")
    crash = faultline(*asked, "--cause", "cuda_error").json
    assert (crash["severity"], crash["lost_gpus"]) == (2, 0)
    assert crash["action"] == "restart the process in place"
    assert all(each["gpus_before"] == each["gpus_after"] for each in crash["jobs"])
    assert faultline(*asked, "--cause", "ib_link").json["action"] == "reattempt in place"
    none = faultline(*asked, "--cause", "name_error").json
    assert (none["action"], none["severity"], none["lost_gpus"]) == ("reconfigure", None, 8)


@pytest.mark.slow
def test_jobs_that_run_when_the_records_end_are_planned(
    faultline: Callable[..., Any], own_store: Path
) -> None:
    store = ("--store", own_store, "--format", "json")
    found = faultline("reconfigure", *store, "--lost-gpus", 2).json
    assert [each["job"] for each in found["jobs"]] == ["3"]
    assert found["jobs"][0]["gpus_after"] == 2
    none = faultline("reconfigure", *store, "--partition", "gpu").json
    assert none["jobs"] == []
    assert "cannot be judged" in faultline(
        "reconfigure", "--store", own_store, "--partition", "gpu", "--format", "table"
    ).out  # fmt: skip


def test_a_node_that_holds_all_gpus_in_use_is_told(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "one.csv"
    file.write_text("job,gpus\na,4\n", encoding="utf-8")
    said = faultline("reconfigure", "--jobs", file, *RATE, "--format", "table").out
    assert "cannot be judged: one node holds all GPUs in use" in said


@pytest.fixture
def own_store(sacct_store: Path, tmp_path: Path) -> Path:
    """A copy: the ledger is built in it."""

    shutil.copytree(sacct_store, tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--faulted", "z"), "no job 'z' runs"),
        (("--least-ratio", 0), "--least-ratio must be in"),
        (("--transition-min", -1), "transition_hours"),
        (("--cause", "nonsense"), "no cause 'nonsense'"),
        (("--cause", "ib_link", "--lost-gpus", 8), "leave out --lost-gpus"),
        (("--gpus-per-node", 0), "gpus_per_node"),
        (("--lost-gpus", 1000), "lost_gpus"),
    ],
)
def test_what_cannot_be_is_refused(
    refused: Callable[..., str], jobs: Path, options: tuple[Any, ...], words: str
) -> None:
    assert words in refused("reconfigure", "--jobs", jobs, *RATE, *options)


@pytest.mark.slow
def test_nodes_do_not_move_between_clusters(
    faultline: Callable[..., Any], own_store: Path, tmp_path: Path
) -> None:
    other = SACCT.replace("|c|", "|d|")
    (tmp_path / "other.txt").write_text(other, encoding="utf-8")
    faultline("ingest", "sacct", tmp_path / "other.txt", "--store", own_store)
    said = faultline("reconfigure", "--store", own_store, "--format", "table")
    assert "between which no node moves (c, d)" in said.out
    found = faultline(
        "reconfigure", "--store", own_store, "--cluster", "d", "--lost-gpus", 2, "--format", "json"
    ).json
    assert [each["job"] for each in found["jobs"]] == ["3"]


def test_a_job_that_has_nothing_left_is_stopped(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "one.csv"
    file.write_text("job,gpus,min_gpus\na,8,8\n", encoding="utf-8")
    asked = ("reconfigure", "--jobs", file, *RATE, "--repair-hours", 5, "--format", "table")
    assert "it is stopped" in faultline(*asked).out


def test_a_file_needs_jobs_and_a_rate(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "none.csv"
    file.write_text("job,gpus\na,0\n", encoding="utf-8")
    assert "holds no job" in refused("reconfigure", "--jobs", file, *RATE)
    assert "rate must be stated" in refused("reconfigure", "--jobs", file)
    file.write_text("job,nodes\na,1\n", encoding="utf-8")
    assert "has no column gpus" in refused("reconfigure", "--jobs", file, *RATE)
