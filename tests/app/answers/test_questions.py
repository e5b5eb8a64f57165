"""Every question is answered for a demo, for nothing at all, and for real failures of nodes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from analytics.errors import AnalysisError
from analytics.frames import RATE_GROUPS
from analytics.reliability.failure_rate import projection_of_rate
from app.answers.fleet import coverage, nodes
from app.answers.fleet.choices import choices
from app.answers.reliability import mttf, rate_by_group
from app.ask import EVERYTHING, FEW
from data.current import SCHEMA_VERSION
from data.filters import Selection
from data.queries import fleet, reliability
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> Iterator[Store]:
    store = Store.open(demo_store)
    yield store
    store.close()


@pytest.fixture(scope="module")
def empty(empty_store: Path) -> Iterator[Store]:
    store = Store.open(empty_store)
    yield store
    store.close()


def test_the_rate_is_failures_over_exposure(demo: Store) -> None:
    report = mttf.measured(demo, Selection())
    rate = report.rate.rate_per_1000_node_days
    assert report.rate.failures > 0
    assert rate.value == pytest.approx(1000 * report.rate.failures / report.rate.exposure)
    assert rate.lower < rate.value < rate.upper
    assert report.rate.mttf_hours.value == pytest.approx(24_000 / rate.value)
    assert 0 < report.incident_rate.failures <= report.rate.failures
    assert (report.basis, report.gpus_per_node) == ("gpu_time", 8.0)


def test_running_time_by_size_adds_up_to_the_exposure(demo: Store) -> None:
    by_gpus = dict(demo.rows("SELECT n_gpus, count(*) FROM jobs WHERE n_gpus > 0 GROUP BY 1"))
    report = mttf.measured(demo, Selection())
    assert sum(size.mttf_hours.n for size in report.by_size) == report.rate.failures
    assert all(any(s.gpus_from <= n <= s.gpus_to for s in report.by_size) for n in by_gpus)
    ones = report.by_size[0]
    alone = mttf.measured(demo, Selection()).rate.exposure
    assert ones.running_hours / 24 / 8 < alone


@pytest.mark.slow
@pytest.mark.parametrize("by", RATE_GROUPS)
@pytest.mark.parametrize("min_gpus", [0, 129])
def test_groups_add_up_to_the_whole(demo: Store, by: str, min_gpus: int) -> None:
    first, last = choices(demo).first_at, choices(demo).last_at
    for selection in (
        Selection(min_gpus=min_gpus),
        Selection(min_gpus=min_gpus, from_at=first + DAY / 3, to_at=last - 1.7 * DAY),
    ):
        whole = mttf.measured(demo, selection).rate
        groups = rate_by_group.rates(demo, selection, by)
        assert sum(group.estimate.failures for group in groups) == whole.failures
        exposure = sum(group.estimate.exposure for group in groups)
        assert exposure == pytest.approx(whole.exposure, rel=1e-9)
        assert len({group.group for group in groups}) == len(groups)


def test_periods_add_up_to_the_whole(demo: Store) -> None:
    middle = choices(demo).first_at + 5.25 * DAY
    whole, early, late = (
        mttf.measured(demo, selection)
        for selection in (Selection(), Selection(to_at=middle), Selection(from_at=middle))
    )
    assert early.rate.failures + late.rate.failures == whole.rate.failures
    assert early.rate.exposure + late.rate.exposure == pytest.approx(whole.rate.exposure)


def test_before_is_the_quarter_before_the_period(demo: Store) -> None:
    first = choices(demo).first_at.replace(hour=0, minute=0, second=0, microsecond=0)
    now = Selection(from_at=first + 6 * DAY, to_at=first + 9 * DAY)
    before = mttf.measured_before(demo, now)
    assert (before.from_at, before.to_at) == (first - 85 * DAY, first + 6 * DAY)
    assert before == mttf.measured(demo, Selection(from_at=before.from_at, to_at=before.to_at))


@pytest.mark.parametrize(
    ("from_at", "to_at"),
    [
        (None, None),
        (None, datetime(2026, 1, 1, tzinfo=UTC)),
        (datetime(2001, 1, 1, tzinfo=UTC), datetime(2002, 1, 1, tzinfo=UTC)),
        (datetime(1, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
    ids=["no period", "an open one", "nothing before it", "the beginning of time"],
)
def test_without_a_period_before_there_is_no_comparison(
    demo: Store, from_at: datetime | None, to_at: datetime | None
) -> None:
    assert mttf.measured_before(demo, Selection(from_at=from_at, to_at=to_at)) is None


def test_a_projection_takes_the_sizes_asked_for(demo: Store) -> None:
    report = mttf.measured(demo, Selection(), gpus=[8, 4096])
    assert [point.gpus for point in report.projection] == [8, 4096]
    one, many = (point.mttf_hours for point in report.projection)
    assert one == report.rate.mttf_hours
    assert many.value == pytest.approx(one.value / 512)


@pytest.mark.parametrize("rate", [-6.5, float("nan"), float("inf")])
def test_a_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(AnalysisError, match="rate_per_1000_node_days must be a finite number >= 0"):
        projection_of_rate(rate, [8])


def test_a_rate_of_zero_projects_nothing() -> None:
    (point,) = projection_of_rate(0.0, [8])
    assert point.mttf_hours.value is None


def test_nodes_out_of_service_are_among_the_nodes(demo: Store) -> None:
    found = nodes.nodes(demo, Selection())
    assert found.n_nodes == 64
    assert found.n_out_of_service == len(found.out_of_service) < 64


def test_coverage_names_what_was_never_collected(demo: Store) -> None:
    found = coverage.held(demo, Selection())
    assert found.missing == ("node_failures",)
    sources = found.sources.set_index("source")
    assert sources.loc["jobs", "n_rows"] == demo.rows("SELECT count(*) FROM jobs")[0][0]
    assert (sources["days_with_rows"] + sources["days_without_rows"] >= 1).all()


def test_choices_are_those_of_the_store(demo: Store) -> None:
    found = choices(demo)
    assert found.clusters == ("demo",)
    assert found.synthetic
    assert set(found.timezones) == {"demo"}
    assert found.first_at < found.last_at
    assert found.partitions
    assert found.accounts


def test_info_notices_a_damaged_snapshot(demo_store: Path, tmp_path: Path) -> None:
    assert coverage.contents(Store.open(demo_store)).checksum_holds
    copy = shutil.copytree(demo_store, tmp_path / "copy")
    store = Store.open(copy)
    with store.path.open("ab") as stream:
        stream.write(b"x")
    found = coverage.contents(store)
    assert not found.checksum_holds
    assert (found.schema_version, found.snapshot, found.synthetic) == (SCHEMA_VERSION, 1, True)
    assert found.tables["jobs"] > 0
    store.close()


def test_rows_behind_a_number_are_as_many_as_it_counts(demo: Store) -> None:
    selection = Selection(min_gpus=9)
    report = mttf.measured(demo, selection)
    assert len(reliability.failure_rows(demo, selection, FEW)) == report.rate.failures
    largest = report.by_size[-1]
    gpus = (largest.gpus_from, largest.gpus_to)
    shown = reliability.attempt_rows(demo, selection, gpus=gpus, limit=EVERYTHING)
    assert shown["running_hours"].sum() == pytest.approx(largest.running_hours)


def test_an_empty_store_answers_every_question(empty: Store) -> None:
    report = mttf.measured(empty, Selection())
    assert (report.rate.failures, report.rate.rate.value, report.by_size) == (0, None, ())
    assert all(rate_by_group.rates(empty, Selection(), by) == () for by in RATE_GROUPS)
    found = nodes.nodes(empty, Selection())
    assert (found.n_nodes, found.n_out_of_service) == (0, None)
    held = coverage.held(empty, Selection())
    assert held.sources.empty
    assert "jobs" in held.missing
    assert choices(empty).first_at is None
    assert fleet.ingests(empty).empty
    assert fleet.rejected_rows(empty, None, limit=10).empty
    assert reliability.failure_rows(empty, Selection(), FEW).empty
    assert reliability.attempt_rows(empty, Selection(), gpus=(1, 8), limit=FEW).empty
    assert coverage.contents(empty).checksum_holds


def test_a_selection_without_rows_answers_every_question(demo: Store) -> None:
    nothing = Selection(
        from_at=datetime(1999, 1, 1, tzinfo=UTC), to_at=datetime(1999, 2, 1, tzinfo=UTC)
    )
    report = mttf.measured(demo, nothing)
    assert (report.rate.failures, report.rate.exposure, report.rate.rate.value) == (0, 0.0, None)
    assert all(rate_by_group.rates(demo, nothing, by) == () for by in RATE_GROUPS)
    assert coverage.held(demo, nothing).days.empty
    assert nodes.nodes(demo, nothing).out_of_service.empty
