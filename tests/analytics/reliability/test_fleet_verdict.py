"""The verdict on a fleet, and the job size that its MTTF is told for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import ShapeError
from analytics.estimate import Estimate, unknown
from analytics.reliability.fleet_verdict import fleet_verdict, largest_usual_size

RSC1 = Estimate(6.5, 6.5, 6.5, 0.9, 0)
QUARTER = Estimate(6.5, 5.5, 7.5, 0.9, 100)


def _rate(value: float | None, lower: float | None, upper: float | None, n: int = 40) -> Estimate:
    return Estimate(value, lower, upper, 0.9, n)


@pytest.mark.parametrize(
    ("now", "reference", "verdict"),
    [
        (_rate(9.0, 7.0, 11.0), RSC1, "act"),
        (_rate(9.0, 7.0, 11.0), QUARTER, "watch"),
        (_rate(9.0, 7.6, 11.0), QUARTER, "act"),
        (_rate(6.9, 5.0, 9.0), RSC1, "well"),
        (_rate(2.0, 1.0, 4.0), RSC1, "well"),
        (_rate(4.1, 0.7, 12.8, n=2), RSC1, "unknown"),
        (_rate(0.0, 0.0, 3.0, n=0), RSC1, "well"),
        (_rate(40.0, 10.0, 90.0, n=3), RSC1, "act"),
        (_rate(None, 7.0, 900.0), RSC1, "act"),
        (_rate(None, 0.0, 900.0), RSC1, "unknown"),
        (_rate(None, 0.0, 3.0), RSC1, "well"),
        (_rate(6.0, 5.0, 7.0), unknown(0.9, 0), "unknown"),
        (unknown(0.9, 0), RSC1, "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.value} n={value.n}",
)
def test_a_rate_is_judged_by_its_interval(now: Estimate, reference: Estimate, verdict: str) -> None:
    assert fleet_verdict(now, reference) == verdict


@given(st.lists(st.tuples(st.integers(1, 4096), st.floats(0.01, 1e3)), min_size=1, max_size=40))
def test_jobs_up_to_the_usual_size_hold_95_percent_and_smaller_ones_do_not(
    jobs: list[tuple[int, float]],
) -> None:
    found = largest_usual_size(*zip(*jobs, strict=True))
    assert found is not None
    whole = sum(gpus * days for gpus, days in jobs)
    held = sum(gpus * days for gpus, days in jobs if gpus <= found)
    below = sum(gpus * days for gpus, days in jobs if gpus < found)
    assert held >= 0.95 * whole * (1 - 1e-9)
    assert below <= 0.95 * whole * (1 + 1e-9)


def test_nothing_that_ran_has_no_usual_size() -> None:
    assert largest_usual_size([], []) is None
    assert largest_usual_size([8, 16], [0.0, 0.0]) is None
    with pytest.raises(ShapeError, match="differ in length"):
        largest_usual_size([8], [])
