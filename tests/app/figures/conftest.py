"""Results that figures draw, made of round numbers."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from analytics.frames import CountedFailures, FailureCounts
from analytics.reliability.mttf import GroupRate, MttfReport, group_rates, mttf_report

FIRST_DAY = pd.Timestamp("2026-01-05", tz="UTC")
N_DAYS = 28


@pytest.fixture
def report() -> MttfReport:
    """28 days of 100 node-days: 18 failures; sizes 1 (none failed), 8 and 256 GPUs."""
    return _report(failures_a_day=[1, 0, 1, 0, 1, 1, 0] * 4)


@pytest.fixture
def quiet_report() -> MttfReport:
    """The same without any failure."""
    return _report(failures_a_day=[0] * N_DAYS)


@pytest.fixture
def weeks() -> tuple[GroupRate, ...]:
    """Four weeks, of which nothing ran in the third; the fourth stands alone."""
    rows = [
        (str((FIRST_DAY + pd.Timedelta(weeks=week)).date()), FIRST_DAY, week, 100.0)
        for week in (0, 1, 3)
    ]
    return _groups(rows)


@pytest.fixture
def racks() -> tuple[GroupRate, ...]:
    """40 racks, the last with the highest rate, one of unknown rate."""
    rows = [(f"r{i:02d}", FIRST_DAY, i, 100.0) for i in range(40)]
    return _groups([*rows, ("unknown", FIRST_DAY, 1, 0.0)])


def _report(failures_a_day: list[int]) -> MttfReport:
    days = pd.date_range(FIRST_DAY, periods=N_DAYS, freq="D").tz_convert(None)
    failures = pd.Series(failures_a_day)
    by_day = pd.DataFrame(
        {
            "day": days,
            "failures": failures,
            "incidents": failures,
            "exposure_node_days": 100.0,
        }
    )
    sizes = [
        pd.DataFrame({"n_gpus": n, "day": days, "failures": count, "running_days": running})
        for n, count, running in ((1, 0, 50.0), (8, 0, 20.0), (256, failures, 2.0))
    ]
    return mttf_report(
        FailureCounts(
            by_day=by_day,
            by_size=pd.concat(sizes),
            starts_hours=pd.Series(range(int(failures.sum())), dtype=float),
            repair_minutes=pd.Series(dtype=float),
            exposure_known=True,
            basis="gpu_time",
            gpus_per_node=8.0,
            from_at=datetime(2026, 1, 5, tzinfo=UTC),
            to_at=datetime(2026, 2, 2, tzinfo=UTC),
            attempts_without_gpus=0,
            counted=CountedFailures({}, 0, 0, 0),
        )
    )


def _groups(rows: list[tuple[str, pd.Timestamp, int, float]]) -> tuple[GroupRate, ...]:
    columns = ["group", "day", "failures", "exposure_node_days"]
    return group_rates(pd.DataFrame(rows, columns=columns))
