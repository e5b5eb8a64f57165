"""One table: what every estimator makes of nothing, of one, of all alike, and of nonsense."""

import math

import pandas as pd
import pytest

from analytics.efficiency.expected_ettr import EttrSettings
from analytics.efficiency.simulated_ettr import simulated_ettr
from analytics.errors import AnalysisError
from analytics.estimate import Estimate
from analytics.frames import CountedFailures, FailureCounts
from analytics.reliability.failure_rate import failure_rate, poisson_rate, projected_mttf
from analytics.reliability.mttf import group_rates, mean_estimate, mean_gap_hours, mttf_report

NAN, INF = math.nan, math.inf
BOUNDS = ("value", "lower", "upper")


def rate_of(counts: list[float], exposure: list[float]) -> Estimate:
    return failure_rate(counts, exposure).rate


def ettr_of(n: int, **job: float) -> Estimate:
    given = {"gpus": 8000, "rate_per_1000_node_days": 6.5, "restart_min": 5.0} | job
    return simulated_ettr(EttrSettings(**given), n).ettr


# Of each case: estimator, its arguments, its value, whether it has a lower and an upper bound, n.
ANSWERED = {
    "a rate of no days": (rate_of, ([], []), (None, False, False), 0),
    "a rate without exposure": (rate_of, ([3], [0.0]), (None, False, False), 3),
    "a rate of nothing but zeros": (rate_of, ([0, 0], [0.0, 0.0]), (None, False, False), 0),
    "a rate without failures": (rate_of, ([0, 0], [1.0, 2.0]), (0.0, True, True), 0),
    "a rate of one day": (rate_of, ([50], [2.0]), (25.0, True, True), 50),
    "a rate of days that are alike": (rate_of, ([2] * 8, [1.0] * 8), (2.0, True, True), 16),
    "failures on a day without exposure": (rate_of, ([0, 9], [3.0, 0.0]), (3.0, True, True), 9),
    "a rate in tiny exposure": (rate_of, ([1], [1e-9]), (1e9, True, True), 1),
    "a rate in huge exposure": (rate_of, ([1], [1e15]), (1e-15, True, True), 1),
    "a million failures": (rate_of, ([500_000] * 2, [1.0] * 2), (5e5, True, True), 1_000_000),
    "a Poisson rate without exposure": (poisson_rate, (4, 0.0), (None, False, False), 4),
    "a mean gap of nothing": (mean_gap_hours, ([],), (None, False, False), 0),
    "a mean gap of one": (mean_gap_hours, ([7.0],), (None, False, False), 1),
    "a mean gap of two": (mean_gap_hours, ([7.0, 9.0],), (2.0, True, True), 2),
    "a mean gap of one moment": (mean_gap_hours, ([7.0] * 5,), (0.0, True, True), 5),
    "a mean gap before the origin": (mean_gap_hours, ([-4.0, -2.0],), (2.0, True, True), 2),
    "a mean of nothing": (mean_estimate, ([],), (None, False, False), 0),
    "a mean of one": (mean_estimate, ([3.0],), (3.0, False, False), 1),
    "a mean of values alike": (mean_estimate, ([3.0] * 4,), (3.0, True, True), 4),
    "a mean of zeros": (mean_estimate, ([0.0, 0.0],), (0.0, True, True), 2),
    "an ETTR where nothing fails": (
        lambda n: ettr_of(n, rate_per_1000_node_days=0.0),
        (3,),
        (1.0, True, True),
        3,
    ),
    "an ETTR where nothing is trained": (
        lambda n: ettr_of(n, gpus=1e9, interval_min=60.0),
        (50,),
        (0.0, False, False),
        50,
    ),
    "an ETTR of runs without end": (
        lambda n: ettr_of(n, gpus=1e9, interval_min=60.0, run_days=1.0),
        (9,),
        (None, False, False),
        0,
    ),
}
ARRAYS = {
    "not a number": [1.0, NAN],
    "infinite": [1.0, INF],
    "minus infinity": [1.0, -INF],
    "two dimensions": [[1.0, 2.0]],
    "a scalar": 1.0,
    "text": ["a", "b"],
}
ESTIMATORS = {
    "rate, failures": lambda bad: failure_rate(bad, [1.0, 1.0]),
    "rate, exposure": lambda bad: failure_rate([1, 1], bad),
    "mean gap": mean_gap_hours,
    "mean": mean_estimate,
}
REFUSED = {
    "a negative count": (
        lambda: failure_rate([-1], [1.0]),
        "failures_by_day must be finite and >=",
    ),
    "half a failure": (lambda: failure_rate([1.5], [1.0]), "failures_by_day must be whole numbers"),
    "negative exposure": (lambda: failure_rate([1], [-1.0]), "exposure_by_day must be finite"),
    "negative n": (lambda: poisson_rate(-1, 1.0), "n must be a finite number >= 0, got -1"),
    "exposure that is not a number": (lambda: poisson_rate(1, NAN), "exposure must be a finite"),
    "endless exposure": (lambda: poisson_rate(1, INF), "exposure must be a finite number >= 0"),
    "a negative duration": (lambda: mean_estimate([-1.0]), "values must be finite and >= 0"),
    "a level that is not a number": (lambda: mean_estimate([1.0], conf_level=NAN), "conf_level"),
    "a level in percent": (lambda: mean_gap_hours([1.0], conf_level=90), "pass 0.9 for 90 %"),
    "a job of no GPUs": (
        lambda: projected_mttf(Estimate(1.0, None, None, 0.9, 1), [8, 0]),
        "gpus must be a finite number > 0, got 0",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", ANSWERED.values(), ids=ANSWERED)
def test_too_little_is_answered_without_a_zero_or_an_infinity(case) -> None:
    estimator, arguments, (value, has_lower, has_upper), n = case
    found = estimator(*arguments)
    assert found.value == (None if value is None else pytest.approx(value))
    assert (found.lower is not None, found.upper is not None) == (has_lower, has_upper)
    assert found.n == n
    for bound in BOUNDS:
        number = getattr(found, bound)
        assert number is None or (math.isfinite(number) and number >= 0)
    if has_lower and has_upper:
        assert found.lower <= found.value <= found.upper


@pytest.mark.parametrize("bad", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_estimator_refuses_what_is_no_column_of_numbers(estimator, bad) -> None:
    with pytest.raises(AnalysisError, match=r"must (be|have)"):
        estimator(bad)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_nonsense_is_refused_with_what_was_found(case) -> None:
    call, message = case
    with pytest.raises(AnalysisError, match=message):
        call()


def counts(
    by_day: list[tuple[int, int, float]] = (),
    by_size: list[tuple[int, int, int, float]] = (),
    **other: object,
) -> FailureCounts:
    fields = {
        "by_day": pd.DataFrame(
            [(day, *row) for day, row in enumerate(by_day)],
            columns=["day", "failures", "incidents", "exposure_node_days"],
        ),
        "by_size": pd.DataFrame(by_size, columns=["n_gpus", "day", "failures", "running_days"]),
        "starts_hours": pd.Series(dtype="float64"),
        "repair_minutes": pd.Series(dtype="float64"),
        "exposure_known": True,
        "basis": "gpu_time",
        "gpus_per_node": 8.0,
        "from_at": None,
        "to_at": None,
        "attempts_without_gpus": 0,
        "counted": CountedFailures({}, 0, 0, 0),
    }
    return FailureCounts(**(fields | other))


def test_a_report_of_nothing_knows_nothing() -> None:
    report = mttf_report(counts())
    assert (report.rate.failures, report.rate.exposure, report.rate.rate.value) == (0, 0.0, None)
    assert report.by_size == ()
    assert {point.mttf_hours.value for point in report.projection} == {None}
    assert report.mean_repair_hours.value is None
    assert report.notes == ()


def test_a_report_without_known_exposure_says_so() -> None:
    report = mttf_report(counts([(3, 2, 0.0)], exposure_known=False))
    assert (report.rate.failures, report.incident_rate.failures) == (3, 2)
    assert report.rate.exposure is None
    assert report.rate.rate == Estimate(None, None, None, 0.9, 3)
    assert any("exposure and rate are unknown" in note for note in report.notes)


def test_a_report_without_gpus_says_so_and_projects_nothing() -> None:
    report = mttf_report(
        counts([(1, 1, 10.0)], basis="node_time", gpus_per_node=None, node_time=("c",))
    )
    assert report.rate.rate.value == pytest.approx(0.1)
    assert {point.mttf_hours.value for point in report.projection} == {None}
    assert any("the smallest job size is ignored" in note for note in report.notes)


def test_a_report_names_attempts_it_left_out() -> None:
    report = mttf_report(counts(attempts_without_gpus=1234))
    assert any(note.startswith("1,234 attempts") for note in report.notes)


def test_a_size_that_ran_without_failing_has_a_bound_alone() -> None:
    report = mttf_report(counts(by_size=[(8, 0, 0, 2.0), (7, 0, 0, 1.0), (9, 1, 2, 1.0)]))
    quiet, loud = report.by_size
    assert (quiet.gpus_from, quiet.gpus_to, quiet.running_hours) == (2, 8, 72.0)
    assert (quiet.mttf_hours.value, quiet.mttf_hours.upper) == (None, None)
    assert quiet.mttf_hours.lower == pytest.approx(72.0 / 2.996, rel=1e-4)
    assert (loud.mttf_hours.value, loud.mttf_hours.n) == (pytest.approx(12.0), 2)


def test_a_report_refuses_a_size_of_nothing_even_where_nothing_can_be_projected() -> None:
    with pytest.raises(AnalysisError, match="gpus must be a finite number > 0, got 0"):
        mttf_report(counts(gpus_per_node=None), gpus=[0])


def test_groups_of_nothing_are_no_groups() -> None:
    columns = ["group", "day", "failures", "exposure_node_days"]
    assert group_rates(pd.DataFrame(columns=columns)) == ()


def test_a_group_of_unknown_exposure_has_no_rate() -> None:
    groups = pd.DataFrame(
        {
            "group": ["a", "a", "b"],
            "day": [1, 2, 1],
            "failures": [1.0, 2.0, 3.0],
            "exposure_node_days": [5.0, NAN, 6.0],
        }
    )
    unknown, known = group_rates(groups)
    assert (unknown.group, unknown.estimate.failures, unknown.estimate.exposure) == ("a", 3, None)
    assert (known.group, known.estimate.rate.value) == ("b", 0.5)


def test_groups_refuse_a_level_in_percent_even_where_there_are_none() -> None:
    columns = ["group", "day", "failures", "exposure_node_days"]
    with pytest.raises(AnalysisError, match=r"pass 0.9 for 90 %"):
        group_rates(pd.DataFrame(columns=columns), conf_level=90)
