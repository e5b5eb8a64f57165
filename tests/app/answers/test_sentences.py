"""Sentences say what the numbers support and no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from analytics.estimate import Estimate, unknown
from analytics.fleet.coverage import Coverage
from analytics.frames import CountedFailures
from analytics.reliability.detection import Detection
from analytics.reliability.failure_rate import RateEstimate
from analytics.reliability.mttf import MttfReport, SizeClass
from app.answers.fleet import coverage
from app.answers.reliability import mttf
from data.filters import Selection


def _report(rate: RateEstimate, detection: Detection | None = None) -> MttfReport:
    return MttfReport(
        rate=rate,
        incident_rate=rate,
        mean_time_between_failures_hours=unknown(0.9, 0),
        mean_repair_hours=unknown(0.9, 0),
        by_size=(SizeClass(1025, 2048, 1000.0, Estimate(None, 9.3, None, 0.9, 0)),),
        projection=(),
        basis="gpu_time",
        gpus_per_node=8.0,
        from_at=None,
        to_at=None,
        attempts_without_gpus=0,
        counted=CountedFailures({}, 0, 0, 0),
        detection=detection,
    )


def _job(report: MttfReport) -> mttf.OfSize:
    return mttf.OfSize(2048, report.mttf_of(2048), None, report, Selection())


KNOWN = RateEstimate(100, 15385.0, Estimate(0.0065, 0.0058, 0.0073, 0.9, 100), None)
NONE_FAILED = RateEstimate(0, 3400.0, Estimate(0.0, 0.0, 0.000881, 0.9, 0), None)
NOTHING = RateEstimate(0, 0.0, unknown(0.9, 0), None)
NO_EXPOSURE = RateEstimate(309, None, unknown(0.9, 309), None)
IN_RANGE = Detection(
    failures=100, exposure_node_days=15385.0, detectable_exposure_node_days=0.0, unexplained=7,
    blind_clusters=(), missed=7, rate_if_unexplained_count=KNOWN, rate_where_detectable=NOTHING, sources=(),
    scope="range",
)  # fmt: skip


def test_a_known_rate_and_its_projection_are_one_sentence_with_intervals_and_n() -> None:
    report = _report(KNOWN)
    assert mttf.fleet_sentence(report, _job(report)) == (
        "6.50 failures per 1,000 node-days (5.80 to 7.30, n = 100); "
        "a job of 2,048 GPUs runs 14.4 h between failures, projected from jobs of all sizes "
        "(12.8 to 16.2 h, n = 100)."
    )


def test_without_failures_only_bounds_are_said() -> None:
    report = _report(NONE_FAILED)
    assert mttf.fleet_sentence(report, _job(report)) == (
        "No failure in 3,400 node-days: at most 0.881 per 1,000 node-days; "
        "a job of 2,048 GPUs runs at least 4.43 d between failures, projected from jobs of all "
        "sizes: none has failed."
    )
    in_part = _report(NONE_FAILED, replace(IN_RANGE, scope="detectable"))
    assert mttf.sentence(in_part, _job(in_part)).endswith(": no failure could be seen.")


def test_an_mttf_whose_failures_could_not_all_be_seen_has_a_range_and_no_value() -> None:
    report = _report(KNOWN, IN_RANGE)
    assert mttf.sentence(report, _job(report)) == (
        "A job of 2,048 GPUs runs 12.8 to 16.2 h between failures, projected from jobs of all "
        "sizes, as not all could be seen."
    )


def test_a_rate_of_large_jobs_says_so() -> None:
    large = replace(_report(KNOWN), min_gpus=129)
    assert mttf.fleet_sentence(large).startswith(
        "6.50 failures per 1,000 node-days, 129+ GPUs (5.80 to 7.30, n = 100)"
    )
    assert "projected from jobs of 129 GPUs and more (" in mttf.sentence(large, _job(large))
    none = replace(_report(NONE_FAILED), min_gpus=129)
    assert "3,400 node-days of jobs of 129 GPUs and more: at most" in mttf.fleet_sentence(none)


def test_clusters_with_other_gpus_per_node_have_a_rate_and_no_projection() -> None:
    report = replace(_report(KNOWN), gpus_per_node=None)
    assert mttf.sentence(report, _job(report)) == (
        "6.50 failures per 1,000 node-days (5.80 to 7.30, n = 100)."
    )
    shown = mttf.projected_number(_job(report))
    assert (shown.value, shown.basis.endswith("choose a cluster")) == ("unknown", True)
    in_nodes = replace(report, basis="node_time")
    assert mttf.projected_number(_job(in_nodes)).basis == "no job states GPUs"


def test_failures_without_exposure_have_no_rate() -> None:
    report = replace(
        _report(NO_EXPOSURE),
        mean_time_between_failures_hours=Estimate(2.17, 1.9, 2.44, 0.9, 309),
    )
    assert mttf.sentence(report, None) == (
        "309 failures, one every 2.17 h on average (1.90 to 2.44 h); "
        "how often a node fails is unknown."
    )


def test_nothing_is_said_to_be_nothing() -> None:
    expected = "Nothing ran and nothing failed in this selection."
    assert mttf.fleet_sentence(_report(NOTHING)) == expected


def _coverage(days: dict[str, list[str]], missing: tuple[str, ...] = ()) -> Coverage:
    rows = [
        ("c", source, pd.Timestamp(day, tz="UTC"), 1) for source in days for day in days[source]
    ]
    frame = pd.DataFrame(rows, columns=["cluster", "source", "day", "n_rows"])
    sources = frame[["cluster", "source"]].drop_duplicates()
    return Coverage(frame, sources, missing, frame.iloc[:0])


PERIOD = Selection(from_at=datetime(2026, 1, 1, tzinfo=UTC), to_at=datetime(2026, 1, 4, tzinfo=UTC))
"""Three days."""


def test_coverage_names_complete_sources_then_gaps_then_what_is_missing() -> None:
    whole = ["2026-01-01", "2026-01-02", "2026-01-03"]
    held = _coverage({"tickets": whole[:1], "jobs": whole}, missing=("node_events",))
    assert coverage.basis(held, PERIOD) == (
        "Records: jobs on all 3 days; tickets on 1 of 3 days; none of node_events."
    )


@pytest.mark.parametrize(
    ("missing", "ending"),
    [
        ((), "2 of 2 sources have records in this period."),
        (("a",), "2 of 3 sources have records in this period; a has none."),
        (("a", "b", "c"), "2 of 5 sources have records in this period; a, b and c have none."),
    ],
)
def test_the_data_page_counts_sources(missing: tuple[str, ...], ending: str) -> None:
    held = _coverage({"jobs": ["2026-01-01"], "tickets": ["2026-01-01"]}, missing)
    assert coverage.sentence(held) == ending
