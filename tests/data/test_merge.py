"""What a set of records is worth does not depend on files, their order or their overlap."""

from __future__ import annotations

import itertools
import random
import weakref
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.publish.merge import merge
from data.tables import records, tables

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
Row = dict[str, Any]


def at(hours: float | None) -> datetime | None:
    return None if hours is None else BEGIN + timedelta(hours=hours)


def job(job_id: int, state: str, times: tuple[Any, Any, Any], **more: Any) -> Row:
    """A record: `times` are the hours of submit, start and end."""
    submit, start, end = map(at, times)
    sluid = more.pop("sluid", None)
    key = sluid or f"{job_id}/{submit}/{start}"
    row = {"cluster": "a", "attempt_key": key, "job_id": str(job_id), "sluid": sluid,
           "state": state, "submit_at": submit, "start_at": start, "end_at": end,
           "node_list": "n[1-2]", "n_gpus": 16}  # fmt: skip
    return row | more


DATABASES = duckdb.connect(config={"threads": 1})
"""All of them are attached to one: to make one anew takes ten times as long."""
DATABASES.execute("SET GLOBAL TimeZone='UTC'")


def _forget(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    connection.execute(f"USE memory; DETACH {name}")


FOLLOWING = {
    "jobs": ("job_nodes",), "pod_runs": ("jobs", "job_nodes", "queue_changes"),
    "queue_changes": ("jobs", "job_nodes", "pod_runs"), "node_conditions": ("node_events",),
}  # fmt: skip
"""Tables whose rows are made as others are merged."""


class Merged:
    """A database into which batches of rows are merged one after another."""

    def __init__(self, *batches: tuple[str, list[Row]]) -> None:
        self.connection = DATABASES.cursor()
        self.connection.execute(f"ATTACH ':memory:' AS merged_{id(self)}; USE merged_{id(self)}")
        weakref.finalize(self, _forget, self.connection, f"merged_{id(self)}")
        self.tables = {table for table, _ in batches}
        self.tables |= {other for table in self.tables for other in FOLLOWING.get(table, ())}
        for table in self.tables:  # without comments: far sooner
            columns = (
                f'"{name}" {column.type}' for name, column in tables()[table].columns.items()
            )
            self.connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        self.counts = [self.merge(table, rows) for table, rows in batches]

    def merge(self, table: str, rows: list[Row]) -> dict[str, int]:
        kinds = tables()[table].columns
        frame = pd.DataFrame(rows, dtype="object")
        for name in frame.columns:
            if kinds[name].type == "TIMESTAMPTZ":
                frame[name] = pd.to_datetime(frame[name], utc=True)
        self.connection.execute("BEGIN")
        self.connection.register("incoming", frame)
        counts = merge(self.connection, table, "incoming")
        self.connection.unregister("incoming")
        self.connection.execute("COMMIT")
        return counts

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        wanted = ", ".join(columns) or "*"
        return self.connection.execute(f"SELECT {wanted} FROM {table} ORDER BY ALL").fetchall()

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        return {table: self.rows(table) for table in self.tables}

    def assert_keys_are_unique(self) -> None:
        keys = {table: rule.key for table, rule in records().items()}
        keys["job_nodes"] = ("cluster", "attempt_key", "node")
        for table in self.tables:
            names = ", ".join(f'"{name}"' for name in keys[table])
            (twice,) = self.connection.execute(
                f"SELECT count(*) - count(DISTINCT ({names})) FROM {table}"
            ).fetchall()
            assert twice == (0,), table


@st.composite
def versions(draw: st.DrawFn) -> list[Row]:
    """Records of one attempt as dumps of different days show it."""
    number, round_ = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    sluid = draw(st.sampled_from([None, f"s{number}.{round_}"]))
    submit = 100 * number + 10 * round_
    end = draw(st.integers(3, 5))
    state = draw(st.sampled_from(["COMPLETED", "FAILED", "NODE_FAIL", "REQUEUED"]))
    nodes = draw(st.sampled_from(["n1", "n[1-2]", "n[2-4]", "n[broken"]))
    pending = job(number, "PENDING", (submit, None, None), sluid=sluid, node_list=None)
    running = job(number, "RUNNING", (submit, submit + 1, None), sluid=sluid, node_list=nodes)
    final = job(number, state, (submit, submit + 1, submit + end), sluid=sluid, node_list=nodes)
    return draw(st.lists(st.sampled_from([pending, running, final]), min_size=1, max_size=4))


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(st.lists(versions(), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_and_split_of_job_records_do_not_matter(
    attempts: list[list[Row]], chance: random.Random
) -> None:
    records = list(itertools.chain(*attempts))
    whole = Merged(("jobs", records))
    shuffled = [*records, *chance.choices(records, k=2)]
    chance.shuffle(shuffled)
    cuts = sorted(chance.choices(range(len(shuffled) + 1), k=2))
    parts = [shuffled[: cuts[0]], shuffled[cuts[0] : cuts[1]], shuffled[cuts[1] :]]
    split = Merged(*(("jobs", part) for part in parts if part))
    assert split.content() == whole.content()
    split.assert_keys_are_unique()
    assert set(split.merge("jobs", shuffled).values()) == {0}
    assert split.content() == whole.content()


EVENT = {"cluster": "a", "node": "n1", "start_at": at(0), "state": "DOWN"}
OTHERS: dict[str, list[Row]] = {
    "node_events": [
        EVENT | {"end_at": end, "reason": reason}
        for end in (None, at(1), at(2)) for reason in (None, "x", "y")
    ] + [EVENT | {"node": "n2"}, EVENT | {"cluster": "b"}, EVENT | {"start_at": at(1)}],
    "health_events": [
        {"cluster": "a", "event_id": event_id, "node": "n1", "xid": 79, "message": "lost"}
        for event_id in ("first", "second")
    ],
    "node_failures": [
        {"cluster": "a", "failure_key": key, "node": "n1", "start_at": at(0), "end_at": end}
        for key in ("1", "2") for end in (None, at(1))
    ],
    "tickets": [
        {"cluster": "a", "ticket_id": "T1", "closed_at": end, "action": action}
        for end in (None, at(1)) for action in ("none", "swap")
    ],
    "nodes": [
        {"cluster": "a", "node": "n1", "first_seen_at": at(first), "last_seen_at": at(last)}
        for first in (0, 5) for last in (6, 7)
    ],
    "node_inventory": [
        {"cluster": "a", "node": node, "observed_at": at(when), "source": source, "gpus": gpus}
        for node in ("n1", "n2") for when in (0, 1) for source in ("sinfo", "scontrol-nodes")
        for gpus in (8, None)
    ],
    "node_facts": [
        {"cluster": "a", "node": "n1", "gpu": gpu, "key": "driver", "from_at": at(0), "to_at": end}
        for gpu in (None, "0") for end in (None, at(1))
    ],
    "job_logs": [
        {"cluster": "a", "attempt_key": "1", "file": "out", "line_no": line, "text": text}
        for line in (1, 2) for text in ("x", "y")
    ],
    "training_metrics": [
        {"cluster": "a", "job_id": job, "run_id": run, "step": step, "rank": rank,
         "logged_at": at(1), "loss": loss, "checkpoint_event": event}
        for job, run in (("7", None), (None, "r"), (None, "s"))
        for step in (1, 2) for rank in (None, 0) for loss in (1.5, None)
        for event in (None, "saved")
    ],
    "node_metrics": [
        {"cluster": "a", "node": "n1", "gpu": gpu, "metric": "m", "observed_at": at(when),
         "labels": labels, "reading": value, "pod_name": pod}
        for gpu in (None, "0") for when in (0, 1) for labels in (None, "{}") for value in (1.0, 2.0)
        for pod in (None, "p")
    ],
    "node_metrics_reduced": [
        {"cluster": "a", "node": "n1", "gpu": gpu, "metric": "m", "hour_at": at(when),
         "labels": labels, "n": n, "mean": mean}
        for gpu in (None, "0") for when in (0, 1) for labels in (None, "{}") for n in (1, 2)
        for mean in (1.0, 2.0)
    ],
    "node_metrics_kept": [
        {"cluster": "a", "node": node, "from_at": at(begin), "until_at": at(end)}
        for node in ("n1", "n2") for begin in (0, 1) for end in (2, 3)
    ],
    "pod_runs": [
        {"cluster": "a", "job_id": "ns/j", "pod_uid": uid, "run": run, "slot": "0", "state": state,
         "is_over": state == "FAILED", "created_at": at(0), "start_at": at(1), "end_at": end,
         "host": "n1", "n_gpus": 8, "decides": False, "version": version}
        for uid in ("x", "y") for run in (0, 1)
        for state, end, version in (("RUNNING", None, 2), ("FAILED", at(2), 4))
    ],
    "queue_changes": [
        {"cluster": "a", "job_id": "ns/j", "object_uid": uid, "change": change, "state": state,
         "changed_at": at(when), "queue": queue, "version": version}
        for uid in ("x", "y") for when in (0, 2)
        for change, state in (("submitted", "PENDING"), ("started", "RUNNING"),
                              ("evicted", "PREEMPTED"))
        for queue, version in (("q", 1), ("r", 2))
    ],
    "node_conditions": [
        {"cluster": "a", "host": host, "condition": "Ready", "since_at": at(when), "holds": holds}
        for host in ("n1", "n2") for when in (0, 1, 2) for holds in (True, False)
    ],
    "flight_dumps": [
        {"cluster": "a", "dump_id": key, "job_id": job, "rank": rank, "host": host}
        for key, rank in (("x", 0), ("y", 1)) for job in ("7", "8") for host in (None, "n1")
    ],
    "collectives": [
        {"dump_id": key, "place": place, "state": state}
        for key in ("x", "y") for place in (0, 1) for state in ("started", "completed")
    ],
    "rank_stacks": [
        {"cluster": "a", "dump_id": key, "job_id": job, "thread_no": thread, "rank": rank}
        for key in ("x", "y") for job in ("7", "8") for thread in (0, 1) for rank in (None, 3)
    ],
    "straggler_traces": [
        {"trace_id": key, "name": name, "job_id": job, "n_gpus": gpus}
        for key in ("1", "2") for name in ("x", "y") for job in (None, "7") for gpus in (None, 64)
    ],
}  # fmt: skip


def test_every_table_with_a_rule_is_tried() -> None:
    assert {"jobs", *OTHERS} == records().keys()


def test_of_one_trace_the_row_that_states_job_and_sizes_stays() -> None:
    stated = {"trace_id": "1", "name": "a", "job_id": "7", "n_gpus": 64}
    partly = [stated | {"job_id": None}, stated | {"n_gpus": None, "name": "b"}]
    for rows in itertools.permutations([stated, *partly]):
        merged = Merged(*(("straggler_traces", [row]) for row in rows))
        assert merged.rows("straggler_traces", "name", "job_id", "n_gpus") == [("a", "7", 64)]


def test_what_was_said_of_a_trace_can_be_corrected() -> None:
    said = {"trace_id": "1", "name": "a", "job_id": "7", "n_gpus": 64, "cluster": "c"}
    for name, value in (("job_id", "8"), ("n_gpus", 8), ("cluster", "d")):
        corrected = said | {name: value}
        merged = Merged(*(("straggler_traces", [row]) for row in (said, corrected)))
        assert merged.rows("straggler_traces", name) == [(value,)]
        back = Merged(*(("straggler_traces", [row]) for row in (said, corrected, said)))
        assert back.rows("straggler_traces", name) == [(said[name],)]
        unsaid = Merged(*(("straggler_traces", [row]) for row in (said, said | {name: None})))
        assert unsaid.rows("straggler_traces", name) == [(said[name],)]


@pytest.mark.slow
@pytest.mark.parametrize("table", OTHERS)
@pytest.mark.parametrize("n_orders", [1, 5])
def test_the_order_of_other_records_does_not_matter(table: str, n_orders: int) -> None:
    rows = OTHERS[table]
    whole = Merged((table, rows))
    whole.assert_keys_are_unique()
    chance = random.Random(0)
    for _ in range(n_orders):
        chance.shuffle(rows)
        cuts = sorted(chance.sample(range(1, len(rows)), k=min(5, len(rows) - 1)))
        pieces = [rows[begin:end] for begin, end in pairwise([0, *cuts, len(rows)])]
        split = Merged(*((table, piece) for piece in pieces))
        assert split.content() == whole.content()
        assert split.merge(table, rows) == {table: 0}


def test_an_interval_that_ended_takes_the_place_of_the_open_one() -> None:
    merged = Merged(("node_events", [EVENT]), ("node_events", [EVENT | {"end_at": at(3)}]))
    assert merged.rows("node_events", "end_at") == [(at(3),)]
    assert merged.counts == [{"node_events": 1}, {"node_events": 1}]
    assert merged.merge("node_events", [EVENT]) == {"node_events": 0}


def test_of_one_key_the_later_end_wins() -> None:
    early, late = (job(1, "FAILED", (0, 1, end), sluid="s") for end in (2, 3))
    for batches in ([early, late], [late, early]):
        merged = Merged(*(("jobs", [row]) for row in batches))
        assert merged.rows("jobs", "end_at") == [(at(3),)]


def test_a_requeue_is_a_new_attempt() -> None:
    first, second = job(1, "NODE_FAIL", (0, 1, 2)), job(1, "COMPLETED", (3, 4, 5))
    again = job(1, "PENDING", (6, None, None))
    merged = Merged(("jobs", [again]), ("jobs", [second]), ("jobs", [first]))
    assert [row[0] for row in merged.rows("jobs", "state")] == ["COMPLETED", "NODE_FAIL", "PENDING"]


def test_pending_and_running_records_give_way_to_the_final_one() -> None:
    records = [
        job(1, "PENDING", (0, None, None), node_list=None),
        job(1, "RUNNING", (0, 1, None), node_list="n[1-3]"),
        job(1, "FAILED", (0, 1, 2), node_list="n[1-2]"),
    ]
    for order in itertools.permutations(records):
        merged = Merged(*(("jobs", [row]) for row in order))
        assert merged.rows("jobs", "state") == [("FAILED",)]
        assert [row[0] for row in merged.rows("job_nodes", "node")] == ["n1", "n2"]


def test_a_record_with_sluid_stands_for_the_same_one_without() -> None:
    with_sluid = job(1, "FAILED", (0, 1, 2), sluid="s1")
    without = job(1, "FAILED", (0, 1, 2))
    for order in itertools.permutations([with_sluid, without]):
        merged = Merged(*(("jobs", [row]) for row in order))
        assert merged.rows("jobs", "attempt_key") == [("s1",)]
        assert len(merged.rows("job_nodes")) == 2


def test_the_same_job_on_two_clusters_is_two_jobs() -> None:
    rows = [job(1, "FAILED", (0, 1, 2), sluid="s", cluster=cluster) for cluster in "ab"]
    assert len(Merged(("jobs", rows)).rows("jobs")) == 2


def test_the_counts_are_rows_added_or_changed() -> None:
    first = [job(number, "RUNNING", (number, 10, None)) for number in (1, 2)]
    merged = Merged(("jobs", first))
    assert merged.counts == [{"jobs": 2, "job_nodes": 4}]
    assert merged.merge("jobs", first) == {"jobs": 0}
    ended = job(2, "FAILED", (2, 10, 20), node_list="n[1-3]")
    new = job(3, "FAILED", (3, 10, 20), node_list=None)
    assert merged.merge("jobs", [*first, ended, new]) == {"jobs": 2, "job_nodes": 3}


@pytest.mark.parametrize(
    ("node_list", "n_gpus", "expected"),
    [
        ("n[1-2]", 16, [("n1", 8), ("n2", 8)]),
        ("n[1-3]", 16, [("n1", None), ("n2", None), ("n3", None)]),
        ("n1,n1", 8, [("n1", 8)]),
        ("n1", None, [("n1", None)]),
        ("n[1", 8, []),
        (None, 8, []),
    ],
)
def test_an_attempt_has_its_nodes(node_list: str | None, n_gpus: int | None, expected: Any) -> None:
    merged = Merged(("jobs", [job(1, "FAILED", (0, 1, 2), node_list=node_list, n_gpus=n_gpus)]))
    assert merged.rows("job_nodes", "node", "n_gpus") == expected
    assert len(merged.rows("jobs")) == 1


def test_columns_that_a_source_lacks_become_null() -> None:
    merged = Merged(("jobs", [{"attempt_key": "1", "cluster": "a", "state": "FAILED"}]))
    assert merged.rows("jobs", "job_id", "end_at", "node_list") == [(None, None, None)]
