"""Causes that rose: what is told, what it is worth, and how often chance alone is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from analytics.errors import ShapeError
from analytics.reliability.risen_causes import risen_causes

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAYS = pd.DataFrame({"day": range(56), "now": np.arange(56) >= 28, "node_days": 100.0})


def _rows(cause: str, counts: NDArray[np.int64] | list[int]) -> pd.DataFrame:
    """Occurrences of one cause on each day."""
    rows = DAYS[["day", "now"]].assign(cause=cause, domain="hardware", n=counts, failures=counts)
    return rows[rows["n"] > 0]


def test_a_cause_that_tripled_is_told_first_with_what_its_excess_cost() -> None:
    tripled = _rows("nvlink", [1] * 28 + [3] * 28)
    found = risen_causes(
        pd.concat([_rows("ecc", [1] * 56), tripled]),
        DAYS,
        lost_gpu_hours={"nvlink": 840.0, "ecc": 1e6},
    )
    first, second = found
    assert (first.cause, first.now, first.before, first.risen) == ("nvlink", 84, 28, True)
    assert first.ratio.value == pytest.approx(3.0)
    assert first.stake_gpu_hours.value == pytest.approx(560.0)  # 84 - 28 occurrences of 10 each
    assert first.stake_gpu_hours.lower is not None
    assert first.stake_gpu_hours.upper is not None
    assert 400 < first.stake_gpu_hours.lower < 560 < first.stake_gpu_hours.upper < 840
    assert (second.cause, second.risen, second.stake_gpu_hours.value) == ("ecc", False, 0.0)


def test_a_cause_nobody_saw_before_is_told_and_a_single_occurrence_is_not() -> None:
    new = _rows("gsp", [0] * 32 + [1] * 24)
    once = _rows("psu", [0] * 55 + [1])
    found = {each.cause: each for each in risen_causes(
        pd.concat([new, once]), DAYS, lost_gpu_hours={"gsp": 32.0})}  # fmt: skip
    assert found["gsp"].risen
    assert found["gsp"].stake_gpu_hours.value == 32.0
    assert not found["psu"].risen
    assert found["psu"].stake_gpu_hours.value is None, "nothing says what it lost"


def test_one_bad_day_is_no_rise() -> None:
    (storm,) = risen_causes(_rows("oom", [1] * 55 + [40]), DAYS, lost_gpu_hours={})
    assert storm.dispersion > 10
    assert not storm.risen


def test_exposure_counts_and_not_days() -> None:
    busier = DAYS.assign(node_days=np.where(DAYS["now"], 300.0, 100.0))
    (grown,) = risen_causes(_rows("ib", [1] * 28 + [3] * 28), busier, lost_gpu_hours={})
    assert grown.ratio.value == pytest.approx(1.0)
    assert not grown.risen


def test_nothing_to_compare_with_gives_no_cause() -> None:
    only_now = DAYS[DAYS["now"]]
    assert risen_causes(_rows("ib", [1] * 56), only_now, lost_gpu_hours={}) == ()
    assert risen_causes(_rows("ib", [0] * 56), DAYS, lost_gpu_hours={}) == ()
    with pytest.raises(ShapeError, match="days must have the columns day, now, node_days"):
        risen_causes(_rows("ib", [1] * 56), DAYS.drop(columns="node_days"), lost_gpu_hours={})


def _false_alarms(dispersion: float, *, over_days: int, fleets: int = 60) -> float:
    """Share of fleets of 20 causes that did not change of which one is told as risen."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(fleets):
        causes = []
        for n in range(20):
            daily = np.exp(rng.uniform(np.log(0.05), np.log(5.0)))
            mean = np.full(56, daily)
            if dispersion > 1:
                shape = daily * over_days / (dispersion - 1)
                mean *= np.repeat(rng.gamma(shape, 1 / shape, 56 // over_days), over_days)
            causes.append(_rows(f"c{n}", rng.poisson(mean)))
        alarms += any(
            each.risen for each in risen_causes(pd.concat(causes), DAYS, lost_gpu_hours={})
        )
    return alarms / fleets


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dispersion", "over_days", "most"),
    [(1.0, 1, 0.06), (3.0, 1, 0.07), (2.0, 7, 0.12), (5.0, 7, 0.2)],
)
def test_false_alarms_of_simulated_fleets_are_few(
    dispersion: float, over_days: int, most: float
) -> None:
    assert _false_alarms(dispersion, over_days=over_days) <= most
