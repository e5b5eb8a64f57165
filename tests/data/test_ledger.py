"""The ledger and the runs of a store, by hand and against the demo's truth."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app import actions
from app.answers.efficiency import ettr, ledger, ledger_parts
from app.answers.efficiency import run as run_answer
from app.answers.failures import verdicts
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.queries import efficiency
from data.queries.efficiency import LedgerMissingError
from data.store import Store
from data.synthetic import DemoSpec
from data.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from data.synthetic import DemoTruth

DAY = datetime(2024, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL = Selection()
FIXED = ("queue_hold", "drained", "down_planned", "down_unplanned", "idle")
Row = dict[str, Any]


def job(job_id: str, begin: float, end: float | None, **more: Any) -> Row:
    """An attempt from `begin` to `end`, hours of the day; on one node of 8 GPUs."""
    row = {"cluster": "a", "attempt_key": f"k{job_id}", "job_id": job_id, "state": "COMPLETED",
           "submit_at": DAY + begin * HOUR, "eligible_at": DAY + begin * HOUR,
           "start_at": DAY + begin * HOUR, "end_at": None if end is None else DAY + end * HOUR,
           "node_list": "n1", "n_nodes": 1, "n_gpus": 8, "user": "u", "name": "x"}  # fmt: skip
    return row | more


def outage(node: str, begin: float, end: float | None, state: str, **more: Any) -> Row:
    until = None if end is None else DAY + end * HOUR
    return {"cluster": "a", "node": node, "start_at": DAY + begin * HOUR, "end_at": until,
            "state": state, "reason": None, "planned": None} | more  # fmt: skip


def inventory(*nodes: str, gpus: int = 8, until: float = 24) -> list[Row]:
    return [
        {"cluster": "a", "node": node, "first_seen_at": DAY - HOUR, "role": "compute",
         "last_seen_at": DAY + until * HOUR, "gpus": gpus, "source": "inventory"}
        for node in nodes
    ]  # fmt: skip


def store_of(root: Path, **rows: list[Row]) -> Store:
    """A store with its ledger."""
    with writer(root) as building:
        for table, found in rows.items():
            frame = pd.DataFrame(found, dtype="object")
            for name in frame.columns:
                if tables()[table].columns[name].type == "TIMESTAMPTZ":
                    frame[name] = pd.to_datetime(frame[name], utc=True)
            building.merge({table: frame})
        building.publish(ledger=True)
    return Store.open(root)


PLANTED: dict[str, dict[str, list[Row]]] = {}
"""Name of a cluster -> its rows, of all in one store: half a second each, were it a store each."""


def planted(cluster: str, **rows: list[Row]) -> Selection:
    """A cluster of the store that tests look at together; what selects it."""
    PLANTED[cluster] = {
        table: [row | {"cluster": cluster} for row in found] for table, found in rows.items()
    }
    return Selection(cluster=cluster)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """All that is planted; only to be read."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for tables_of in PLANTED.values():
        for table, found in tables_of.items():
            rows[table] += found
    with closing(store_of(tmp_path_factory.mktemp("planted"), **rows)) as store:
        yield store


def hours(store: Store, selection: Selection = ALL) -> dict[str, float]:
    """GPU-hours by bucket, those that are not 0."""
    found = ledger.measured(store, selection)
    return {each.bucket: each.gpu_seconds / 3600 for each in found.buckets if each.gpu_seconds}


SMALL_DAY = planted(
    "small day",
    nodes=inventory("n1", "n2"),
    jobs=[
        job("1", 0, 0.5),
        job("2", 1, 11, node_list="n2"),
        job("3", 2, 3, eligible_at=DAY + 1.5 * HOUR, submit_at=DAY + 1.5 * HOUR),
        job("last", 23, 24),
    ],
    node_events=[
        outage("n1", 4, 6, "DOWN"),
        outage("n1", 5, 7, "DRAIN"),
        outage("n1", 8, 9, "MAINT"),
    ],
)


def test_every_hour_of_a_small_day_is_where_it_belongs(clusters: Store) -> None:
    assert hours(clusters, SMALL_DAY) == {
        "productive": (0.5 + 10 + 1 + 1) * 8,
        "queue_hold": 0.5 * 8,
        "down_unplanned": 2 * 8,
        "drained": 1 * 8,
        "down_planned": 1 * 8,
        "idle": 48 * 8 - (12.5 + 0.5 + 4) * 8,
    }


DRAINS = planted(
    "drains",
    nodes=inventory("n1"),
    jobs=[job("1", 0, 0.5), job("2", 1, 6, n_gpus=2), job("last", 23, 24)],
    node_events=[outage("n1", 2, 10, "DRAINING")],
)


def test_a_node_that_drains_counts_only_what_no_job_holds(clusters: Store) -> None:
    assert hours(clusters, DRAINS)["drained"] == 4 * 6 + 4 * 8
    assert sum(hours(clusters, DRAINS).values()) == 24 * 8


WAITING = planted("waiting",
    nodes=inventory("n1", "n2"),
    jobs=[
        job("1", 0, 10),
        job("2", 10, 12, n_gpus=16, n_nodes=2, node_list="n[1-2]", eligible_at=DAY + 4 * HOUR),
        job("never", 0, 20, start_at=None, state="CANCELLED", n_gpus=3, n_nodes=0, node_list=None,
            eligible_at=DAY + 19 * HOUR),
        job("last", 23, 24),
        job("first", 0, 0.1, node_list="n2"),
    ],
)  # fmt: skip


def test_waiting_jobs_hold_no_more_than_is_free_and_no_more_than_they_want(clusters: Store) -> None:
    assert hours(clusters, WAITING)["queue_hold"] == 6 * 8 + 1 * 3


HELD = planted(
    "held",
    nodes=inventory("n1"),
    jobs=[
        job("1", 0, 0.5),
        job("held", 2, 8, start_at=None, eligible_at=None, state="CANCELLED", node_list=None),
        job("2", 9, 10),
    ],
)


def test_a_job_that_never_became_eligible_wanted_nothing(clusters: Store) -> None:
    assert hours(clusters, HELD) == {"productive": 12.0, "idle": 68.0}


UNSTATED = planted(
    "unstated",
    nodes=inventory("n1"),
    jobs=[job("1", 0, 0.5), job("last", 23, 24)],
    node_events=[
        outage("n1", 2, 3, None),
        outage("n1", 4, 5, "DRAIN", planned=True),
        outage("n1", 6, 7, None, planned=False),
        outage("n1", 8, 9, "DOWN"),
    ],
)


def test_node_states_and_plans_that_nobody_stated_are_drained_beside_those_stated(
    clusters: Store,
) -> None:
    found = hours(clusters, UNSTATED)
    assert {name: found[name] for name in FIXED if name in found} == {
        "drained": 16.0, "down_planned": 8.0, "down_unplanned": 8.0, "idle": 22.5 * 8 - 32,
    }  # fmt: skip


TWICE_HELD = planted(
    "twice held",
    nodes=inventory("n1"),
    jobs=[job("1", 0, 0.5), job("2", 1, 3), job("3", 1, 3), job("last", 3, 4)],
    node_events=[outage("n1", 1, 3, "DRAIN")],
)


def test_jobs_that_hold_a_node_out_of_service_twice_are_excess_not_a_negative_bucket(
    clusters: Store,
) -> None:
    assert hours(clusters, TWICE_HELD) == {"productive": 44.0, "idle": 4.0}


COUNTED = planted(
    "counted",
    nodes=inventory("n1", "n2", until=48),
    jobs=[job("1", 0, 0.5), job("2", 20, 30, n_nodes=2, n_gpus=16, node_list="n[1-2]")],
)


def test_a_bucket_of_jobs_counts_the_attempts_whose_time_it_is(clusters: Store) -> None:
    found = ledger.measured(clusters, COUNTED)
    counts = {each.bucket: each.gpu_hours.n for each in found.buckets}
    assert (counts["productive"], counts["startup"], counts["lost_work"], counts["idle"]) == (
        2,
        1,
        0,
        0,
    )
    assert found.losses == ()


FILTERED = planted(
    "filtered",
    nodes=inventory("n1"),
    jobs=[
        job("1", 0, 1, partition="p", account="x"),
        job("2", 2, 4, partition="q", account="y"),
    ],
)


def test_a_filter_on_jobs_leaves_the_time_that_jobs_held(clusters: Store) -> None:
    assert hours(clusters, replace(FILTERED, partition="p")) == {"productive": 8.0}
    assert hours(clusters, replace(FILTERED, account="y")) == {"productive": 16.0}
    assert hours(clusters, replace(FILTERED, min_gpus=9)) == {}


THREE_DAYS = planted(
    "three days",
    nodes=inventory("n1", until=72),
    jobs=[job("1", 0, 1), job("2", 30, 31), job("3", 70, 72)],
)


def test_the_period_counts_the_days_it_touches(clusters: Store) -> None:
    first = replace(THREE_DAYS, from_at=DAY, to_at=DAY + 24 * HOUR)
    assert sum(hours(clusters, first).values()) == 24 * 8
    touched = replace(THREE_DAYS, from_at=DAY + 23 * HOUR, to_at=DAY + 25 * HOUR)
    assert sum(hours(clusters, touched).values()) == 48 * 8
    assert sum(hours(clusters, THREE_DAYS).values()) == 72 * 8


BEGUN_BEFORE = planted(
    "begun before",
    nodes=inventory("n1", "n2"),
    jobs=[job("1", -20, 6), job("2", 8, 24, node_list="n2")],
)


def test_records_that_begin_in_the_middle_count_from_their_first_end(clusters: Store) -> None:
    found = hours(clusters, BEGUN_BEFORE)
    assert sum(found.values()) == 18 * 2 * 8
    assert found == {"productive": 16 * 8, "idle": (36 - 16) * 8}


LONG_JOBS = planted("long jobs",
    nodes=inventory("n1", "n2"),
    jobs=[job("1", 0, 10), job("2", 0, 11, node_list="n2"), job("3", 10, 20),
          job("4", 11, 21, node_list="n2"), job("5", 20, 24)],
)  # fmt: skip


def test_records_that_begin_with_long_jobs_keep_their_first_hours(clusters: Store) -> None:
    """A day of jobs that last ten hours: before the first end none could have been missed."""
    assert hours(clusters, LONG_JOBS) == {"productive": (10 + 11 + 10 + 10 + 4) * 8, "idle": 3 * 8}


SHORT_JOBS = planted(
    "short jobs",
    nodes=inventory("n1", "n2"),
    jobs=[
        job("1", 0, 10),
        job("2", 2, 12, node_list="n2"),
        *(job(f"s{n}", n, n + 1, node_list="n2") for n in range(10, 19)),
        job("3", 12, 22),
    ],
)


def test_records_that_begin_among_short_jobs_count_from_their_first_end(clusters: Store) -> None:
    """Jobs that last an hour, nine in ten: of those before the first end only the long are listed."""
    assert sum(hours(clusters, SHORT_JOBS).values()) == 12 * 2 * 8


RUNNING = planted(
    "running",
    nodes=inventory("n1"),
    jobs=[job("1", 0, 0.5), job("2", 1, None, state="RUNNING", elapsed_s=4 * 3600)],
)


def test_a_running_job_holds_its_gpus_until_the_records_end(clusters: Store) -> None:
    assert hours(clusters, RUNNING) == {"productive": 36.0, "idle": 4.0}


LISTED_TWICE = planted(
    "listed twice",
    nodes=[
        inventory("n1")[0] | {"first_seen_at": DAY + 6 * HOUR, "gpus": 4, "rack": "r2"},
        *inventory("n1", "n2"),
    ],
    jobs=[job("1", 0, 0.5, node_list="n2"), job("2", 10, 11, node_list="n2")],
)


def test_a_node_listed_twice_is_one_node(clusters: Store) -> None:
    """The second inventory found it with four GPUs, in another rack; the first never ended."""
    assert hours(clusters, LISTED_TWICE) == {
        "productive": 12.0,
        "idle": 6 * 8 + 5 * 4 + 11 * 8 - 12,
    }


CAME_BACK = planted(
    "came back",
    nodes=[*inventory("n1", until=2), inventory("n1")[0] | {"first_seen_at": DAY + 8 * HOUR}],
    jobs=[job("1", 0, 0.5), job("2", 8, 12)],
)


def test_a_node_that_came_back_counts_in_neither_of_its_rows_between_them(clusters: Store) -> None:
    assert hours(clusters, CAME_BACK) == {"productive": 4.5 * 8, "idle": 1.5 * 8}


MORE_THAN_KNOWN = planted(
    "more than known", nodes=inventory("n1"), jobs=[job("1", 0, 1), job("2", 0, 1, node_list="n1")]
)


def test_jobs_that_hold_more_than_the_nodes_known_count_as_they_are(clusters: Store) -> None:
    assert hours(clusters, MORE_THAN_KNOWN) == {"productive": 16.0}


def test_what_jobs_hold_beyond_the_nodes_known_is_said_of_all_clusters(clusters: Store) -> None:
    """16 GPU-hours of the node out of service that two held, 8 of the node that two held at once."""
    assert any(
        "24 GPU-hours more than the nodes" in each for each in ledger.measured(clusters, ALL).notes
    )


def test_notes_are_about_the_clusters_and_days_of_the_selection(tmp_path: Path) -> None:
    store = store_of(
        tmp_path,
        nodes=inventory("n1", until=72),
        jobs=[job("1", 0, 1, state="FAILED"), job("2", 30, 31, state="FAILED"), job("3", 70, 72),
              job("4", 31, 32, n_gpus=None), job("5", 0, 5, cluster="cpu", n_gpus=0)],
        health_events=[{"cluster": "dark", "event_id": "e", "node": "n1", "observed_at": DAY}],
    )  # fmt: skip

    def said(**chosen: Any) -> str:
        return " ".join(ledger.measured(store, Selection(**chosen)).notes)

    def may_be(**chosen: Any) -> tuple[int, float | None]:
        most = ledger.measured(store, Selection(**chosen)).if_unexplained_count
        return most.n, most.upper

    everything = said()
    two = may_be()
    assert (two[0], two[1]) == (2, pytest.approx(16.0, rel=0.5)), "an hour of 8 GPUs each, at most"
    assert "of dark: no job of it was recorded" in everything
    second = said(cluster="a", from_at=DAY + 24 * HOUR, to_at=DAY + 48 * HOUR)
    one = may_be(cluster="a", from_at=DAY + 24 * HOUR, to_at=DAY + 48 * HOUR)
    assert one[0] == 1
    assert 0 < (one[1] or 0.0) < (two[1] or 0.0)
    assert "1 attempt that ran states no GPUs" in second
    assert "cpu" not in second
    third = said(from_at=DAY + 48 * HOUR)
    assert may_be(from_at=DAY + 48 * HOUR) == may_be(partition="none") == (0, 0.0)
    assert "no GPUs and" not in third


def test_clusters_without_gpus_have_no_ledger_and_the_others_do(tmp_path: Path) -> None:
    store = store_of(
        tmp_path,
        nodes=inventory("n1"),
        jobs=[job("1", 0, 1), job("2", 0, 5, cluster="cpu", n_gpus=0), job("3", 1, 2, n_gpus=None)],
    )
    assert hours(store, Selection(cluster="a")) == {"productive": 8.0, "idle": 8.0}
    assert hours(store, Selection(cluster="cpu")) == {}
    assert any("1 attempt" in each for each in ledger.measured(store, ALL).notes)


def lost(**more: Any) -> dict[str, list[Row]]:
    """A job on two nodes whose node was lost after ten hours."""
    struck = job("1", 1, 11, n_nodes=2, n_gpus=16, node_list="n[1-2]", state="NODE_FAIL",
                 failed_node="n1") | more  # fmt: skip
    first = job("first", 0, 0.1, node_list="n1")
    return {"nodes": inventory("n1", "n2"), "jobs": [first, struck, job("last", 11, 12)]}


LOST_NODE = planted("lost node", **lost())


def test_a_lost_node_loses_the_work_since_the_last_checkpoint(clusters: Store) -> None:
    found = ledger.measured(clusters, LOST_NODE)
    lost_work = found.bucket("lost_work")
    assert lost_work is not None
    assert lost_work.gpu_hours.n == 1
    assert lost_work.gpu_hours.value == pytest.approx(1830 * 16 / 3600)
    assert lost_work.gpu_hours.lower < 0.25 * lost_work.gpu_hours.value
    assert lost_work.gpu_hours.upper > 3 * lost_work.gpu_hours.value
    assert found.rule_first_order_gpu_hours == 8.0
    assert found.losses[0].cause == "node_lost"


@pytest.mark.slow
def test_site_toml_narrows_what_is_assumed_and_builds_the_ledger_anew(tmp_path: Path) -> None:
    store_of(tmp_path, **lost()).close()
    (tmp_path / "site.toml").write_text(
        "[runs]\ncheckpoint_interval_min = 30\ncheckpoint_write_min = 0\nrestart_min = 0\n",
        encoding="utf-8",
    )
    store = Store.open(tmp_path)
    with pytest.raises(LedgerMissingError, match="`faultline ledger` builds it"):
        ledger.measured(store, ALL)
    store.close()
    assert actions.build_ledger(tmp_path)
    lost_work = ledger.measured(Store.open(tmp_path), ALL).bucket("lost_work")
    assert lost_work is not None
    assert lost_work.gpu_hours.value == pytest.approx(900 * 16 / 3600)
    assert lost_work.gpu_hours.lower == pytest.approx(
        (900 - 1.645 * 1800 / 12**0.5) * 16 / 3600, abs=0.01
    )
    assert not actions.build_ledger(tmp_path)


@pytest.mark.slow
def test_what_a_person_decides_moves_the_loss(tmp_path: Path) -> None:
    store_of(tmp_path, **lost(state="FAILED", failed_node=None)).close()
    assert ledger.measured(Store.open(tmp_path), ALL).losses == ()
    said = actions.annotate(tmp_path, "attempt:a/k1", "cause", "pcie", author="me")
    assert actions.build_ledger(tmp_path)
    assert [loss.cause for loss in ledger.measured(Store.open(tmp_path), ALL).losses] == ["pcie"]
    actions.undo(tmp_path, said.annotation_id, author="me")
    assert actions.build_ledger(tmp_path)
    assert ledger.measured(Store.open(tmp_path), ALL).losses == ()


@pytest.mark.slow
def test_new_records_make_the_ledger_anew(tmp_path: Path) -> None:
    store_of(tmp_path, **lost()).close()
    store = store_of(tmp_path, jobs=[job("2", 13, 14)])
    before = sum(hours(store).values())
    store.close()
    with writer(tmp_path) as building:
        building.merge({"jobs": pd.DataFrame([job("3", 15, 16)])})
        building.publish()
    store = Store.open(tmp_path)
    assert not efficiency.has_ledger(store)
    assert store.rows("SELECT count(*) FROM gpu_time UNION ALL SELECT count(*) FROM job_runs") == [
        (0,),
        (0,),
    ]
    store.close()
    assert actions.build_ledger(tmp_path)
    assert sum(hours(Store.open(tmp_path)).values()) == before + 2 * 2 * 8


@pytest.mark.slow
def test_the_same_records_in_any_order_give_the_same_ledger(tmp_path: Path) -> None:
    rows = [job(str(i), i, i + 1.5, node_list=f"n{1 + i % 2}", state="PREEMPTED" if i % 3 else "COMPLETED")
            for i in range(8)]  # fmt: skip
    found = []
    for name, order in (("one", rows), ("two", rows[::-1])):
        store = store_of(tmp_path / name, nodes=inventory("n1", "n2"), jobs=order)
        found.append(
            store.rows("FROM gpu_time ORDER BY ALL") + store.rows("FROM job_runs ORDER BY ALL")
        )
    assert found[0] == found[1]


TWO_NODES = {"n_nodes": 2, "n_gpus": 16, "node_list": "n[1-2]"}
TWO_ATTEMPTS = planted("two attempts",
    nodes=inventory("n1", "n2"),
    jobs=[
        job("1", 0, 10, state="NODE_FAIL", failed_node="n1", **TWO_NODES),
        job("1", 11, 20, attempt_key="k1b", submit_at=DAY + 10 * HOUR, eligible_at=DAY + 10.5 * HOUR,
            **TWO_NODES),
        job("2", 20, 21),
    ],
)  # fmt: skip


def test_a_run_sums_its_attempts(clusters: Store) -> None:
    (run,) = ettr.measured(clusters, TWO_ATTEMPTS).by_run.to_dict("records")
    assert (run["run_id"], run["n_attempts"], run["n_interruptions"], run["n_failures"]) == (
        "1",
        2,
        1,
        1,
    )
    assert (run["queued_s"], run["scheduled_s"]) == (1800, 19 * 3600)
    assert run["productive_s"] == 19 * 3600 - run["startup_s"] - run["checkpoint_s"] - run["lost_s"]
    assert run["ettr"] == pytest.approx(run["productive_s"] / (19.5 * 3600))


SHRINKS = planted("shrinks",
    nodes=inventory("n1", "n2"),
    jobs=[
        job("7", 0, 4, state="NODE_FAIL", failed_node="n1", n_nodes=2, n_gpus=16, node_list="n[1-2]"),
        job("7", 5, 8, attempt_key="k7b", state="NODE_FAIL", failed_node="n2", node_list="n2",
            submit_at=DAY + 4 * HOUR, eligible_at=DAY + 4 * HOUR),
        job("7", 9, None, attempt_key="k7c", state="PENDING", start_at=None, node_list=None,
            submit_at=DAY + 8 * HOUR, eligible_at=DAY + 8 * HOUR),
        job("2", 9, 10),
    ],
)  # fmt: skip


def test_a_run_that_shrinks_to_one_node_and_waits_still_counts_whole(clusters: Store) -> None:
    (run,) = ettr.measured(clusters, SHRINKS).by_run.to_dict("records")
    assert (run["n_attempts"], run["scheduled_s"], run["queued_s"]) == (3, 7 * 3600, 3 * 3600)
    assert run_answer.measured(clusters, "7").ettr.value == pytest.approx(run["ettr"])


@pytest.fixture
def demo(demo_store: Path, demo_truth: DemoTruth) -> Iterator[tuple[Store, DemoTruth]]:
    with closing(Store.open(demo_store)) as store:
        yield store, demo_truth


def test_what_scheduler_and_node_events_fix_is_the_demos_truth(
    demo: tuple[Store, DemoTruth],
) -> None:
    store, truth = demo
    found = ledger.measured(store, ALL)
    assert found.total_gpu_seconds == pytest.approx(sum(truth.ledger.values()), rel=1e-3)
    for name in FIXED:
        bucket = found.bucket(name)
        assert bucket is not None
        assert bucket.gpu_seconds == pytest.approx(truth.ledger[name], rel=1e-3), name


def test_the_demos_estimated_buckets_cover_its_truth(demo: tuple[Store, DemoTruth]) -> None:
    """What stragglers waste has no interval of S: it counts with what was kept."""
    store, truth = demo
    found = ledger.measured(store, ALL)
    kept, slow = (found.bucket(name).gpu_hours for name in ("productive", "straggler"))  # type: ignore[union-attr]
    wanted = (truth.ledger["productive"] + truth.ledger["straggler"]) / 3600
    assert kept.lower <= wanted - slow.value <= kept.upper
    for name in (
        "checkpoint",
        "startup",
        "lost_work",
        "lost_work_preempted",
        "other",
    ):
        hours_of = found.bucket(name).gpu_hours  # type: ignore[union-attr]
        assert hours_of.lower <= truth.ledger[name] / 3600 <= hours_of.upper, name


def test_runs_with_training_metrics_are_within_one_percent_of_the_truth(
    demo: tuple[Store, DemoTruth],
) -> None:
    store, truth = demo
    runs = ettr.measured(store, ALL).by_run.set_index("run_id")
    for planted in truth.runs:
        run, wanted = runs.loc[planted["job_id"]], planted["gpu_seconds"]
        lost = sum(wanted[name] for name in ("lost_work", "lost_work_preempted", "other"))
        kept = wanted["productive"] + wanted.get("straggler", 0)
        for name, seconds in (("productive_s", kept), ("startup_s", wanted["startup"]),
                              ("checkpoint_s", wanted["checkpoint"]), ("lost_s", lost)):  # fmt: skip
            assert run[name] * planted["n_gpus"] == pytest.approx(seconds, rel=0.01), (
                planted,
                name,
            )


def covered(root: Path, seed: int, *, metrics: bool) -> dict[str, bool]:
    """Whether each bucket's interval covers the truth of a demo of 20,000 jobs."""
    built = actions.build_demo(root, DemoSpec.of(n_jobs=20_000, seed=seed))
    if not metrics:
        with writer(root) as building:
            building.connection.execute("DELETE FROM training_metrics")
            building.publish(ledger=True)
    found = ledger.measured(Store.open(root), ALL)
    result = {}
    for name in ("lost_work", "checkpoint", "startup", "productive", "lost_work_preempted"):
        hours_of = found.bucket(name).gpu_hours  # type: ignore[union-attr]
        result[name] = hours_of.lower <= built.truth.ledger[name] / 3600 <= hours_of.upper
    return result


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [True, False], ids=["metrics", "none"])
def test_intervals_cover_the_truth_for_85_of_100_seeds(tmp_path: Path, metrics: bool) -> None:
    results = pd.DataFrame(
        [covered(tmp_path / str(seed), seed, metrics=metrics) for seed in range(100)]
    )
    print(json.dumps(results.sum().to_dict()))
    assert (results.sum() >= 85).all()


def test_a_store_without_gpu_time_has_an_unknown_ledger_and_says_why(tmp_path: Path) -> None:
    store = store_of(tmp_path, jobs=[job("1", 0, 5, cluster="cpu", n_gpus=0)])
    found = ledger.measured(store, ALL)
    assert not found.known
    assert found.total_gpu_hours is found.rule_first_order_gpu_hours is None
    assert {each.gpu_hours.value for each in found.buckets} == {None}
    said = ledger.answer(of_store(store), ALL)
    assert said.sentence.startswith("No job of cpu states GPUs: time is counted in node-hours")
    assert "5.00 in this selection" in said.sentence
    assert (said.record["node_hours"], said.record["total_gpu_seconds"]) == ({"cpu": 5.0}, None)
    assert {each["gpu_seconds"] for each in said.record["buckets"]} == {None}
    got = ettr.answer(of_store(store), ALL)
    assert got.sentence.endswith("what runs got out of them is not known.")
    assert got.record["node_hours"] == {"cpu": 5.0}
    held = verdicts.summarised(store, ALL).by_state
    assert [each.gpu_hours for each in held] == [None]
    (cost,) = ledger_parts.lost_to_failures(ledger.if_built(store, ALL), ALL)
    assert (cost.value, cost.basis) == ("unknown", "no GPU-hour is known")


def test_node_hours_are_told_beside_the_gpu_hours_of_other_clusters(tmp_path: Path) -> None:
    """Also of an attempt that goes on, and only of those that the filters choose."""
    store = store_of(
        tmp_path,
        jobs=[job("1", 0, 5), job("2", 0, 3, cluster="cpu", n_gpus=None, n_nodes=2),
              job("3", 3, None, cluster="cpu", n_gpus=None), job("4", 4, 5, cluster="cpu", n_gpus=0)],
    )  # fmt: skip
    said = ledger.answer(of_store(store), ALL)
    assert said.record["total_gpu_hours"] == 40.0
    assert said.record["node_hours"] == {"cpu": 9.0}
    assert sum("No job of cpu states GPUs" in each for each in said.notes) == 1
    alone = ledger.answer(of_store(store), Selection(cluster="a"))
    assert not any("node-hours" in each for each in alone.notes)
    assert alone.record["node_hours"] == {}
