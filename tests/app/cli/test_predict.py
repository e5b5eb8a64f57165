"""faultline predict: the fleet, a job, and what cannot be foretold."""

from __future__ import annotations

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


@pytest.fixture
def watched_store(faultline: Callable[..., Any], tmp_path: Path) -> Path:
    """Sixty days of a node of 8 GPUs, lost on every third, whose kernel was listened to."""
    head = "JobID|Cluster|State|Start|End|NNodes|AllocTRES|NodeList"
    days = [f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(60)]
    jobs = [
        f"{number}|c|{'NODE_FAIL' if number % 3 == 0 else 'COMPLETED'}|{day}T00:00:00|"
        f"{day}T23:00:00|1|gres/gpu=8|n1"
        for number, day in enumerate(days)
    ]
    lines = [
        f"{day}T12:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:07:00): 13, pid=1, name=a"
        for day in days
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([head, *jobs]) + "\n")
    (tmp_path / "kernel.log").write_text("\n".join(lines) + "\n")
    root = tmp_path / "store"
    for source, file in (("sacct", "sacct.txt"), ("kernel-log", "kernel.log")):
        said = faultline("ingest", source, tmp_path / file, "--cluster", "c", "--store", root)
        assert said.code == 0, said
    return root


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
