"""faultline predict: the fleet, a job, and what cannot be foretold."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_steady_log_is_foretold_by_count_and_by_cause(
    faultline: Callable[..., Any], lanl_store: Path
) -> None:
    period = ("--cluster", "lanl-18", "--from", "2004-01-01", "--to", "2005-01-01")
    found = faultline("predict", "--store", lanl_store, *period, "--format", "json").json
    month, quarter = found["failures"], found["failures_91_days"]
    assert month["kind"] == "prediction"
    assert month["lower"] < month["value"] < month["upper"]
    assert 2.5 < quarter["value"] / month["value"] < 4
    assert found["earlier"]["failures"]["kind"] == "prediction"
    assert found["earlier"]["came"] > 0
    causes = [each["failures"]["value"] for each in found["by_cause"]]
    assert sum(causes) == pytest.approx(month["value"], rel=0.2)
    out = faultline("predict", "--store", lanl_store, *period, "--format", "table").out
    assert "failures in the next 28 days" in out


def test_a_job_has_its_odds(faultline: Callable[..., Any], watched_store: Path) -> None:
    common = ("--store", watched_store, "--days", 2, "--format", "json")
    small, large = (faultline("predict", "--gpus", gpus, *common).json for gpus in (8, 4096))
    assert small["p_uninterrupted"]["value"] > large["p_uninterrupted"]["value"]
    assert small["widened"] == 1.0 < large["widened"]
    assert large["failures"]["kind"] == "prediction"
    assert small["failures"]["value"] == pytest.approx(2 * 20 / (60 * 23 / 24), rel=0.1)
    said = faultline("predict", "--gpus", 4096, *common)
    assert "The largest job that ran" in said.err


def test_a_short_period_is_foretold_from_half_a_year_before_its_end(
    faultline: Callable[..., Any], lanl_store: Path
) -> None:
    common = ("predict", "--store", lanl_store, "--cluster", "lanl-18", "--format", "json")
    month, half, year = (
        faultline(*common, "--from", begin, "--to", "2005-01-01").json["failures"]
        for begin in ("2004-12-04", "2004-07-03", "2004-01-01")
    )
    assert month == half
    assert year["n"] > half["n"] > 100


def test_gpus_and_days_go_together_within_bounds(
    faultline: Callable[..., Any], refused: Callable[..., str], demo_store: Path
) -> None:
    assert "go together" in refused("predict", "--gpus", 8, "--store", demo_store)
    assert "go together" in refused("predict", "--days", 8, "--store", demo_store)
    for days in (0, -1, "nan", 1e9):
        said = faultline("predict", "--gpus", 8, "--days", days, "--store", demo_store)
        assert said.code == 2
        assert "must be above 0 and at most 3,660 days" in said.err


def test_accounting_alone_foretells_nothing(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    found = faultline("predict", "--store", sacct_store, "--format", "json").json
    assert found["failures"]["value"] is None
    job = faultline("predict", "--store", sacct_store, "--gpus", 8, "--days", 1, "--format", "json")
    assert job.json["p_uninterrupted"]["value"] is None
    said = faultline("predict", "--store", sacct_store, "--lead-time", 28, "--format", "json")
    assert said.json["parts"] == []
    said = faultline("predict", "--store", sacct_store, "--gpus", 8, "--days", 1, "--lines")
    assert said.out.strip() == ""


def test_parts_that_last_a_lead_time_grow_with_it(
    faultline: Callable[..., Any], lanl_store: Path
) -> None:
    period = ("--cluster", "lanl-18", "--from", "2004-01-01", "--to", "2005-01-01")
    month, quarter = (
        faultline(
            "predict", "--store", lanl_store, *period, "--lead-time", days, "--format", "json"
        ).json["parts"]
        for days in (28, 84)
    )
    assert {part["component"] for part in month} == {part["component"] for part in quarter}
    assert month[0]["seen"] > 0
    for part in month:
        assert part["keep"] >= part["foretold"]
        (longer,) = [each for each in quarter if each["component"] == part["component"]]
        assert longer["foretold"] == pytest.approx(3 * part["foretold"], rel=0.15)
        assert part["keep"] <= longer["keep"]
    out = faultline(
        "predict", "--store", lanl_store, *period, "--lead-time", 28, "--format", "table"
    ).out
    assert "in 19 of 20" in out


@pytest.mark.slow
def test_lines_for_a_batch_script_are_of_a_job(
    faultline: Callable[..., Any], refused: Callable[..., str], watched_store: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(watched_store, tmp_path / "store")
    job = ("predict", "--gpus", 8, "--days", 2, "--store", own)
    first, *rest = faultline(*job, "--lines").out.splitlines()
    assert first.startswith("# A job of 8 GPUs that computes 2 days meets")
    assert rest == ["#SBATCH --requeue", "#SBATCH --open-mode=append"]
    assert "`faultline ledger`" in faultline(*job, "--format", "table").err
    assert faultline("ledger", "--store", own).code == 0
    found = faultline(*job, "--format", "json").json
    minutes = found["save_every_min"]["value"]
    assert found["batch_script"][-1] == f"export CHECKPOINT_INTERVAL_MIN={round(minutes)}"
    assert "name its --gpus" in refused("predict", "--lines", "--store", watched_store)
    assert "of the fleet" in refused(*job, "--lead-time", 28)
