"""What counts as exposure and as a failure, one rule of the data model at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from analytics.frames import RATE_GROUPS
from analytics.reliability.mttf import group_rates, mttf_report
from data.filters import MTTF_MIN_GPUS, Selection
from data.queries import rate_groups, reliability, sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)

PLANTED: list[Callable[[Any], None]] = []
"""What makes the rows of one cluster each, of all in one store: a fifth of a second each, were it a
store each."""


def planted(make: Callable[[Any], None]) -> Callable[[Any], None]:
    """A cluster of the store that tests look at together, called like what makes its rows."""
    PLANTED.append(make)
    return make


@pytest.fixture
def rows(rows_of: Callable[..., Any]) -> Any:
    """No rows yet; GPU nodes of 8."""
    return rows_of(gpus_per_node={"gpu": 8})


@pytest.fixture(scope="module")
def clusters(rows_of: Callable[..., Any], shared_store_of: Callable[[Any], Store]) -> Store:
    """All that is planted; only to be read."""
    together = rows_of()
    for make in PLANTED:
        rows = rows_of(gpus_per_node={"gpu": 8})
        make(rows)
        for table in ("jobs", "job_nodes", "nodes", "node_failures"):
            found = getattr(rows, table)
            for row in found:
                if row["cluster"] in rows.gpus_per_node:
                    together.gpus_per_node[make.__name__] = rows.gpus_per_node[row["cluster"]]
                getattr(together, table).append(row | {"cluster": make.__name__})
    return shared_store_of(together)


@pytest.fixture
def report_of(store_of: Callable[[Any], Store]) -> Callable[..., Any]:
    """The report on rows, for a selection; rows are published when first asked about."""
    stores: dict[int, Store] = {}

    def report(rows: Any, **filters: Any) -> Any:
        if id(rows) not in stores:
            stores[id(rows)] = store_of(rows)
        return mttf_report(reliability.failure_counts(stores[id(rows)], Selection(**filters)))

    return report


@pytest.fixture
def planted_report_of(clusters: Store) -> Callable[..., Any]:
    """The report on a planted cluster, for a selection."""

    def report(make: Callable[[Any], None], **filters: Any) -> Any:
        selection = Selection(cluster=make.__name__, **filters)
        return mttf_report(reliability.failure_counts(clusters, selection))

    return report


@planted
def eight_jobs(rows: Any) -> None:
    for index in range(8):
        rows.job(f"j{index}", ("n0",), n_gpus=1, start_at=BASE, end_at=BASE + DAY)


def test_eight_jobs_of_one_gpu_are_one_node(planted_report_of: Callable[..., Any]) -> None:
    assert planted_report_of(eight_jobs).rate.exposure == 1.0


@planted
def over_the_period(rows: Any) -> None:
    rows.job("before", start_at=BASE - DAY, end_at=BASE)
    rows.job("over the start", start_at=BASE - DAY, end_at=BASE + 6 * HOUR)
    rows.job("over both", n_gpus=16, start_at=BASE - DAY, end_at=BASE + 5 * DAY)
    rows.job("over the end", start_at=BASE + DAY + 18 * HOUR, end_at=BASE + 9 * DAY)
    rows.job("after", start_at=BASE + 2 * DAY, end_at=BASE + 3 * DAY)


def test_exposure_is_cut_to_the_period(planted_report_of: Callable[..., Any]) -> None:
    report = planted_report_of(over_the_period, from_at=BASE, to_at=BASE + 2 * DAY)
    assert report.rate.exposure == 0.25 + 2 * 2 + 0.25
    assert (report.from_at, report.to_at) == (BASE, BASE + 2 * DAY)


@planted
def ends_at_bounds(rows: Any) -> None:
    for index, end_at in enumerate(
        (BASE - timedelta(microseconds=1), BASE, BASE + DAY, BASE + 2 * DAY, BASE + 3 * DAY)
    ):
        rows.job(f"j{index}", state="NODE_FAIL", start_at=BASE - DAY, end_at=end_at)


def test_a_failure_counts_by_its_end_in_a_half_open_period(
    planted_report_of: Callable[..., Any],
) -> None:
    assert planted_report_of(ends_at_bounds, from_at=BASE, to_at=BASE + 2 * DAY).rate.failures == 2
    assert planted_report_of(ends_at_bounds, to_at=BASE).rate.failures == 1
    assert planted_report_of(ends_at_bounds, from_at=BASE + 2 * DAY).rate.failures == 2


@planted
def running_and_preempted(rows: Any) -> None:
    rows.job("preempted", state="PREEMPTED", start_at=BASE, end_at=BASE + 12 * HOUR)
    rows.job("running", state="RUNNING", start_at=BASE + DAY)
    rows.job("last record", start_at=BASE + 2 * DAY, end_at=BASE + 3 * DAY)


def test_running_and_preempted_attempts_are_exposure_without_a_failure(
    planted_report_of: Callable[..., Any],
) -> None:
    report = planted_report_of(running_and_preempted)
    assert report.rate.failures == 0
    assert report.rate.exposure == 0.5 + 2 + 1
    assert report.to_at == BASE + 3 * DAY


@planted
def large_jobs(rows: Any) -> None:
    for n_gpus in (128, 129, 136):
        rows.job(f"j{n_gpus}", state="NODE_FAIL", n_gpus=n_gpus, start_at=BASE, end_at=BASE + DAY)


def test_the_smallest_job_is_included(planted_report_of: Callable[..., Any]) -> None:
    assert MTTF_MIN_GPUS == 129
    assert planted_report_of(large_jobs, min_gpus=129).rate.failures == 2
    assert planted_report_of(large_jobs, min_gpus=130).rate.failures == 1
    assert planted_report_of(large_jobs).rate.failures == 3


@planted
def sizes(rows: Any) -> None:
    for n_gpus in (1, 8, 12, 14, 200):
        rows.job(f"j{n_gpus}", n_gpus=n_gpus, start_at=BASE, end_at=BASE + DAY)


def test_size_classes_hold_all_sizes_unless_a_smallest_one_was_asked_for(
    planted_report_of: Callable[..., Any],
) -> None:
    by_default = planted_report_of(sizes, min_gpus=129).by_size
    assert [c.gpus_from for c in by_default] == [1, 2, 9, 129]
    asked = planted_report_of(sizes, min_gpus=13, by_size_min_gpus=13).by_size
    assert [(c.gpus_from, c.running_hours) for c in asked] == [(9, 24.0), (129, 24.0)]


@planted
def one_class(rows: Any) -> None:
    rows.job("a", n_gpus=16, start_at=BASE, end_at=BASE + 30 * HOUR)
    rows.job("b", n_gpus=9, state="NODE_FAIL", start_at=BASE, end_at=BASE + 10 * HOUR)


def test_a_class_has_the_running_hours_and_failures_of_its_attempts(
    planted_report_of: Callable[..., Any],
) -> None:
    (size,) = planted_report_of(one_class).by_size
    assert (size.gpus_from, size.gpus_to, size.running_hours) == (9, 16, 40.0)
    assert (size.mttf_hours.value, size.mttf_hours.n) == (40.0, 1)


@planted
def gpus_unknown(rows: Any) -> None:
    rows.job("gpus", start_at=BASE, end_at=BASE + DAY)
    rows.job("none", n_gpus=None, state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)


@planted
def gpus_none(rows: Any) -> None:
    rows.job("gpus", start_at=BASE, end_at=BASE + DAY)
    rows.job("none", n_gpus=0, state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)


@pytest.mark.parametrize("make", [gpus_unknown, gpus_none])
def test_an_attempt_without_gpus_counts_neither_way(
    planted_report_of: Callable[..., Any], make: Callable[[Any], None]
) -> None:
    report = planted_report_of(make)
    assert (report.rate.failures, report.rate.exposure) == (0, 1.0)
    assert report.attempts_without_gpus == 1
    assert any("1 attempt" in note for note in report.notes)


@planted
def no_gpus(rows: Any) -> None:
    rows.job("a", n_gpus=0, n_nodes=4, start_at=BASE, end_at=BASE + DAY)
    rows.job("b", n_gpus=None, n_nodes=2, state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)


def test_a_cluster_without_gpus_is_measured_in_nodes(planted_report_of: Callable[..., Any]) -> None:
    report = planted_report_of(no_gpus, min_gpus=129)
    assert (report.rate.failures, report.rate.exposure) == (1, 6.0)
    assert (report.basis, report.by_size, report.attempts_without_gpus) == ("node_time", (), 0)
    assert any("the smallest job size is ignored" in note for note in report.notes)


@planted
def never_started(rows: Any) -> None:
    rows.job("a", state="NODE_FAIL", n_gpus=None, n_nodes=None, start_at=None, end_at=BASE)


def test_jobs_that_never_started_have_failures_and_no_exposure(
    planted_report_of: Callable[..., Any],
) -> None:
    report = planted_report_of(never_started, min_gpus=129)
    assert (report.rate.failures, report.rate.exposure, report.rate.rate.value) == (1, 0.0, None)


def test_failures_without_a_size_do_not_disturb_the_classes_of_another_cluster(
    rows: Any, report_of: Callable[..., Any]
) -> None:
    rows.job("gpu", state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)
    rows.job("cpu", cluster="cpu", n_gpus=0, start_at=BASE, end_at=BASE + DAY)
    rows.job("bare", cluster="cpu", state="NODE_FAIL", n_gpus=None, n_nodes=None,
             start_at=BASE, end_at=BASE + DAY)  # fmt: skip
    report = report_of(rows)
    assert [(c.gpus_from, c.mttf_hours.n) for c in report.by_size] == [(2, 1)]
    assert report.rate.failures == 2
    assert report.gpus_per_node is None


@planted
def unknown_nodes(rows: Any) -> None:
    rows.gpus_per_node = {}
    rows.job("a", n_gpus=8, n_nodes=None, state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)


def test_where_the_gpus_of_a_node_are_not_known_the_exposure_is_not(
    planted_report_of: Callable[..., Any],
) -> None:
    report = planted_report_of(unknown_nodes)
    assert (report.rate.failures, report.rate.exposure, report.rate.rate.value) == (1, None, None)
    (size,) = report.by_size
    assert size.mttf_hours.value == 24.0


def log(rows: Any, *starts: datetime, nodes: int = 0, cluster: str = "log") -> None:
    for index, start_at in enumerate(starts):
        rows.node_failures.append(
            {"cluster": cluster, "failure_key": f"{cluster}{index}", "node": "n0",
             "start_at": start_at, "repair_minutes": 60.0 * (index + 1)}
        )  # fmt: skip
    for index in range(nodes):
        rows.nodes.append(
            {"cluster": cluster, "node": f"n{index}", "first_seen_at": None, "rack": "r1",
             "source": "inventory"}
        )  # fmt: skip


@planted
def log_of_four_nodes(rows: Any) -> None:
    log(rows, BASE, BASE + 6 * HOUR, BASE + 2 * DAY, nodes=4)


def test_node_failures_alone_count_by_start_over_known_nodes_times_the_period(
    planted_report_of: Callable[..., Any],
) -> None:
    report = planted_report_of(log_of_four_nodes, min_gpus=129)
    assert (report.rate.failures, report.rate.exposure) == (3, 4 * 2.0)
    assert report.mean_time_between_failures_hours.value == 24.0
    assert report.mean_repair_hours.value == 2.0
    clipped = planted_report_of(log_of_four_nodes, from_at=BASE + HOUR, to_at=BASE + 11 * DAY)
    assert (clipped.rate.failures, clipped.rate.exposure) == (2, pytest.approx(4 * (11 - 1 / 24)))


@planted
def log_at_midnight(rows: Any) -> None:
    log(rows, BASE)


@planted
def log_by_day(rows: Any) -> None:
    log(rows, BASE + HOUR)


@planted
def log_of_two(rows: Any) -> None:
    log(rows, BASE, BASE + DAY)


@pytest.mark.parametrize(
    ("make", "n"),
    [(log_at_midnight, 1), (log_by_day, 1), (log_of_two, 2)],
    ids=["midnight", "day", "two"],
)
def test_where_the_nodes_are_not_known_the_exposure_is_not(
    planted_report_of: Callable[..., Any], make: Callable[[Any], None], n: int
) -> None:
    report = planted_report_of(make)
    assert (report.rate.failures, report.rate.exposure) == (n, None)
    assert report.rate.rate_per_1000_node_days.n == n
    assert any("exposure and rate are unknown" in note for note in report.notes)


def test_one_cluster_of_unknown_exposure_is_left_out_of_the_rate_and_named(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    log(rows, BASE, BASE + 8 * DAY, nodes=2)
    log(rows, BASE, BASE + DAY, cluster="dark")
    store = store_of(rows)
    reports = {
        cluster: mttf_report(reliability.failure_counts(store, Selection(cluster=cluster)))
        for cluster in (None, "log", "dark")
    }
    exposure = {cluster: report.rate.exposure for cluster, report in reports.items()}
    assert exposure == {None: 16.0, "log": 16.0, "dark": None}
    assert reports[None].rate.failures == reports["log"].rate.failures
    assert reports[None].without_exposure == ("dark",)
    assert any(note.startswith("dark is left out of the rate") for note in reports[None].notes)
    weeks = group_rates(rate_groups.groups(store, Selection(), "week"))
    assert [(w.group, w.estimate.failures, w.estimate.exposure) for w in weeks] == [
        ("2026-01-05", 1, 14.0),
        ("2026-01-12", 1, 2.0),
    ]


@planted
def log_of_two_nodes(rows: Any) -> None:
    log(rows, BASE, BASE + 2 * DAY, nodes=2)


@pytest.mark.parametrize(
    "from_at",
    [
        pytest.param(datetime(1, 1, 1, 12, tzinfo=UTC), marks=pytest.mark.slow),  # 740,000 days
        datetime(1960, 6, 1, 12, tzinfo=UTC),
        BASE + 9 * DAY,
    ],
    ids=["year 1", "1960", "after all"],
)
def test_a_period_may_begin_long_before_or_after_all_records(
    planted_report_of: Callable[..., Any], from_at: datetime
) -> None:
    days = max(0.0, (BASE + 2 * DAY - from_at) / DAY)
    report = planted_report_of(log_of_two_nodes, from_at=from_at)
    assert report.rate.exposure == pytest.approx(2 * days)


def test_node_failures_of_a_cluster_with_jobs_give_the_repair_alone(
    rows: Any, report_of: Callable[..., Any]
) -> None:
    rows.job("a", state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)
    log(rows, BASE, BASE + HOUR, nodes=4, cluster="gpu")
    report = report_of(rows)
    assert (report.basis, report.rate.failures, report.rate.exposure) == ("gpu_time", 1, 1.0)
    assert (report.mean_repair_hours.value, report.mean_repair_hours.n) == (1.5, 2)
    assert report_of(rows, partition="a").mean_repair_hours.n == 0


@planted
def one_incident(rows: Any) -> None:
    for index, (node, minute) in enumerate(
        [("n0", 0), ("n0", 14), ("n0", 60), ("n1", 110), ("n2", 200), ("n3", 300)]
    ):
        rows.job(f"j{index}", state="NODE_FAIL", n_nodes=2, failed_node=node, start_at=BASE - DAY,
                 end_at=BASE + timedelta(minutes=minute))  # fmt: skip


def test_failures_of_one_incident_count_once(planted_report_of: Callable[..., Any]) -> None:
    report = planted_report_of(one_incident)
    assert (report.rate.failures, report.incident_rate.failures) == (6, 5)
    assert report.incident_rate.exposure == report.rate.exposure


@planted
def log_within_an_hour(rows: Any) -> None:
    log(rows, BASE, BASE + HOUR / 2, BASE + HOUR, nodes=4)


def test_without_jobs_failures_of_a_node_within_one_hour_are_one_incident(
    planted_report_of: Callable[..., Any],
) -> None:
    report = planted_report_of(log_within_an_hour)
    assert report.rate.failures == 3
    assert report.incident_rate.failures == 2


@planted
def nameless(rows: Any) -> None:
    rows.nodes = [{"cluster": "gpu", "node": "n0", "first_seen_at": BASE - 40 * DAY, "rack": "r1",
                   "source": "inventory"}]  # fmt: skip
    rows.job("named", ("n0", "n1"), n_gpus=16, start_at=BASE, end_at=BASE + DAY)
    rows.job("nameless", n_gpus=16, state="NODE_FAIL", start_at=BASE, end_at=BASE + DAY)


def test_node_time_without_a_named_node_is_of_the_group_unknown(clusters: Store) -> None:
    for by, known in (("rack", "r1"), ("node_age", "1 to 3 months")):
        found = {
            rate.group: (rate.estimate.failures, rate.estimate.exposure)
            for rate in group_rates(rate_groups.groups(clusters, Selection(cluster="nameless"), by))
        }
        assert found == {known: (0, 1.0), "unknown": (1, 3.0)}


@planted
def odd_gpus(rows: Any) -> None:
    rows.nodes = [
        {"cluster": "gpu", "node": f"n{i}", "first_seen_at": None, "rack": f"r{i}",
         "source": "inventory"} for i in range(3)
    ]  # fmt: skip
    rows.job("odd", ("n0", "n1", "n2"), n_gpus=16, start_at=BASE, end_at=BASE + 3 * DAY)


def test_gpus_that_do_not_divide_over_the_nodes_are_shared_evenly(clusters: Store) -> None:
    table = rate_groups.groups(clusters, Selection(cluster="odd_gpus"), "rack")
    by_rack = table.groupby("group")["exposure_node_days"].sum().to_dict()
    assert by_rack == pytest.approx({"r0": 2.0, "r1": 2.0, "r2": 2.0})


@planted
def over_monday(rows: Any) -> None:
    rows.job("a", start_at=BASE - HOUR, end_at=BASE + HOUR, state="NODE_FAIL")


def test_weeks_begin_on_monday_in_utc(clusters: Store) -> None:
    table = rate_groups.groups(clusters, Selection(cluster="over_monday"), "week")
    assert table[["group", "failures", "exposure_node_days"]].values.tolist() == [
        ["2025-12-29", 0.0, pytest.approx(1 / 24)],
        ["2026-01-05", 1.0, pytest.approx(1 / 24)],
    ]


def test_the_groups_of_nothing_are_none(empty_store: Any) -> None:
    from data.store import Store

    store = Store.open(empty_store)
    for by in RATE_GROUPS:
        assert rate_groups.groups(store, Selection(), by).empty
    counts = reliability.failure_counts(store, Selection())
    assert (counts.basis, counts.exposure_known, counts.from_at) == ("nothing", True, None)
    assert mttf_report(counts).rate.rate.value is None
    store.close()


def test_failure_rows_are_those_the_rate_counts(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    store = store_of(random_rows(3))
    for selection in (Selection(), Selection(min_gpus=9), Selection(cluster="log"),
                      Selection(from_at=BASE + 3 * DAY, to_at=BASE + 7 * DAY)):  # fmt: skip
        shown = reliability.failure_rows(store, selection, 1000)
        counted = reliability.failure_counts(store, selection)
        assert len(shown) == int(counted.by_day["failures"].sum()) > 0
        assert shown["failed_at"].is_monotonic_decreasing
        assert len(reliability.failure_rows(store, selection, 1)) == 1


def test_attempt_rows_are_those_of_the_class(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    store = store_of(random_rows(4))
    for selection in (Selection(min_gpus=129), Selection(by_size_min_gpus=12)):
        for size in mttf_report(reliability.failure_counts(store, selection)).by_size:
            gpus = (size.gpus_from, size.gpus_to)
            shown = reliability.attempt_rows(store, selection, gpus=gpus, limit=1000)
            assert shown["running_hours"].sum() == pytest.approx(size.running_hours)
            assert int(shown["failed"].sum()) == size.mttf_hours.n
            assert shown["running_hours"].is_monotonic_decreasing
            first = reliability.attempt_rows(store, selection, gpus=gpus, limit=1)
            pd.testing.assert_frame_equal(first, shown.head(1))


def test_a_failure_of_what_nodes_share_counts_once_for_its_cluster_and_for_no_node(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    """A rack that failed twice within an hour, a file system, a node, and one that says nothing."""
    rows = rows_of()
    rows.nodes += [
        {"cluster": "log", "node": f"n{n}", "source": "inventory", "role": "compute",
         "first_seen_at": BASE} for n in range(4)
    ]  # fmt: skip
    hits = [(None, "rack r1", 0), (None, "rack r1", 10), (None, "scratch", 90), ("n1", None, 95),
            (None, None, 2880)]  # fmt: skip
    rows.node_failures += [
        {"cluster": "log", "failure_key": f"f{at}", "node": node, "hit": hit,
         "start_at": BASE + timedelta(minutes=at)} for node, hit, at in hits
    ]  # fmt: skip
    store = store_of(rows)
    counts = reliability.failure_counts(store, Selection(), by_node=True)
    assert (counts.by_day["failures"].sum(), counts.by_day["incidents"].sum()) == (5, 4)
    assert counts.by_day["exposure_node_days"].sum() == pytest.approx(8.0)
    assert counts.by_node is not None
    assert counts.by_node["failures"].tolist() == [0, 1, 0, 0]
    assert counts.without_node == {"rack r1": 2, None: 1, "scratch": 1}
    by_lost_nodes = reliability.failure_counts(store, Selection(definition="scheduler"))
    assert by_lost_nodes.by_day["failures"].sum() == 2, "a rack is no lost node"
    assert by_lost_nodes.by_day["exposure_node_days"].sum() == pytest.approx(8.0)
    judged = sensitivity.judged_days(store, Selection(definition="scheduler"))
    assert {name: judged[name].sum() for name in ("infrastructure", "hardware", "scheduler")} == {
        "infrastructure": 5, "hardware": 2, "scheduler": 2,
    }  # fmt: skip
    assert store.rows("SELECT DISTINCT node FROM nodes ORDER BY 1") == [
        (f"n{n}",) for n in range(4)
    ]
