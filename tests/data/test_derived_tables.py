"""What is computed anew at every publish."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from data.publish import writer
from data.said import VERDICTS
from data.state import State
from data.store import Store
from data.tables import tables

if TYPE_CHECKING:
    from pathlib import Path

END = datetime(2024, 3, 1, 12, tzinfo=UTC)
BEFORE, AFTER, INSTANT = timedelta(minutes=10), timedelta(minutes=5), timedelta(microseconds=1)
FATAL, CRITICAL, UNCONTAINED, WARNING, INFO, UNLISTED = 79, 119, 95, 13, 63, 999
Row = dict[str, Any]


def job(job_id: str = "1", state: str = "FAILED", **more: Any) -> Row:
    row = {"cluster": "a", "attempt_key": job_id, "job_id": job_id, "state": state,
           "submit_at": END - timedelta(hours=2), "start_at": END - timedelta(hours=1),
           "end_at": END, "node_list": "n[1-2]", "n_nodes": 2, "n_gpus": 16}  # fmt: skip
    return row | more


def event(observed_at: datetime | None = END, xid: int | None = FATAL, **more: Any) -> Row:
    row = {"cluster": "a", "event_id": "e1", "node": "n1", "observed_at": observed_at,
           "source": "kernel", "check_name": "xid", "severity": None, "xid": xid}  # fmt: skip
    return row | more


def frame(table: str, rows: list[Row]) -> pd.DataFrame:
    found = pd.DataFrame(rows, dtype="object")
    for name in found.columns:
        if tables()[table].columns[name].type == "TIMESTAMPTZ":
            found[name] = pd.to_datetime(found[name], utc=True)
    return found


def published(root: Path, **rows: list[Row]) -> Store:
    """The store after one more publish with these rows."""
    with writer(root) as building:
        building.merge({table: frame(table, found) for table, found in rows.items()})
        building.publish()
    return Store.open(root)


def failures(root: Path, jobs: list[Row], events: list[Row] | None = None) -> list[tuple[Any, ...]]:
    """Attempts that count in the failure rate: key, method, node."""
    rows = {"jobs": jobs} | ({"health_events": events} if events else {})
    store = published(root, **rows)
    try:
        return store.rows(
            """SELECT attempt_key, method, node FROM failures
               WHERE domain = 'hardware' OR node_lost ORDER BY ALL"""
        )
    finally:
        store.close()


def counted(root: Path, cases: list[tuple[datetime, str, Row]]) -> list[bool]:
    """Of each case, whether an attempt with this end and state failed beside this event.

    Each attempt runs on two nodes of its own, `<case>-1` and `<case>-2`.
    """
    jobs, events = [], []
    for n, (end, state, more) in enumerate(cases):
        jobs.append(job(str(n), state, end_at=end, node_list=f"{n}-[1-2]"))
        node = more.get("node", "{}-1")
        name = node and node.format(n)
        events.append(event(**{"observed_at": end, "event_id": str(n)} | more | {"node": name}))
    failed = {key for key, *_ in failures(root, jobs, events)}
    return [str(n) in failed for n in range(len(cases))]


def test_an_event_counts_from_10_minutes_before_the_end_to_5_after(tmp_path: Path) -> None:
    offsets = {
        -BEFORE - INSTANT: False, -BEFORE: True, timedelta(): True, AFTER: True,
        AFTER + INSTANT: False,
    }  # fmt: skip
    cases = {
        (end, "FAILED", offset): counts
        for minute in range(0, 60, 7)
        for end in (END + timedelta(minutes=minute), END + timedelta(minutes=minute) + INSTANT)
        for offset, counts in offsets.items()
    }
    found = counted(tmp_path, [(end, s, {"observed_at": end + by}) for end, s, by in cases])
    assert dict(zip(cases, found, strict=True)) == cases


def test_only_a_severe_event_on_a_node_of_a_failed_attempt_counts(tmp_path: Path) -> None:
    cases: list[tuple[str, Row, bool]] = [
        ("FAILED", {"xid": FATAL}, True),
        ("FAILED", {"xid": CRITICAL}, False),  # a fault of the driver
        ("FAILED", {"xid": UNCONTAINED}, True),
        ("FAILED", {"xid": WARNING}, False),
        ("FAILED", {"xid": INFO}, False),
        ("FAILED", {"xid": UNLISTED}, False),
        ("FAILED", {"xid": None, "check_name": "check-pci", "severity": "critical"}, True),
        ("FAILED", {"xid": None, "check_name": "check-pci", "severity": "warning"}, False),
        ("FAILED", {"xid": None, "check_name": "check-pci", "severity": None}, False),
        ("FAILED", {"xid": None, "check_name": "a check of our own", "severity": "fatal"}, False),
        ("FAILED", {"node": "{}-2"}, True),
        ("FAILED", {"node": "{}-3"}, False),
        ("FAILED", {"node": None}, False),
        ("FAILED", {"cluster": "b"}, False),
        ("FAILED", {"observed_at": None}, False),
        ("COMPLETED", {}, False),
        ("CANCELLED", {}, False),
        ("TIMEOUT", {}, False),
        ("PREEMPTED", {}, False),
        ("OUT_OF_MEMORY", {}, False),
    ]
    found = counted(tmp_path, [(END, state, more) for state, more, _ in cases])
    assert found == [counts for *_, counts in cases]


def test_what_the_scheduler_says_counts_without_an_event(tmp_path: Path) -> None:
    jobs = [
        job("1", "NODE_FAIL"),
        job("2", "NODE_FAIL", node_list="n9", n_nodes=1),
        job("3", "CANCELLED", failed_node="n2"),
        job("4", "FAILED"),
        job("5", "COMPLETED"),
    ]
    assert failures(tmp_path, jobs) == [
        ("1", "none", None),
        ("2", "none", "n9"),
        ("3", "none", "n2"),
    ]


def test_the_first_of_equal_events_names_the_node_that_the_scheduler_does_not(
    tmp_path: Path,
) -> None:
    events = [
        event(END - timedelta(minutes=9), event_id="first", node="n1"),
        event(END + timedelta(minutes=1), event_id="second", node="n2"),
    ]
    assert failures(tmp_path, [job("1", "NODE_FAIL")], events) == [("1", "health_event", "n1")]
    store = Store.open(tmp_path)
    ((failed_at, evidence),) = store.rows("SELECT failed_at, evidence FROM failures")
    store.close()
    assert failed_at == END
    assert [(one["key"], one["offset_s"], one["cause"]) for one in json.loads(evidence)] == [
        ("first", -540.0, "gpu_unavailable"),
        ("second", 60.0, "gpu_unavailable"),
    ]


def test_many_events_make_one_failure(tmp_path: Path) -> None:
    events = [
        event(END + timedelta(seconds=second), event_id=f"e{second}", node=f"n{1 + second % 2}")
        for second in range(-60, 60)
    ]
    assert len(failures(tmp_path, [job()], events)) == 1


def test_the_window_is_that_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        "[attribution]\nbefore_minutes = 0.5\nafter_minutes = 60\n", encoding="utf-8"
    )
    jobs = [job(str(n), node_list=f"n{n}", n_nodes=1) for n in range(3)]
    offsets = (timedelta(seconds=-30), timedelta(seconds=-31), timedelta(minutes=60))
    events = [
        event(END + offset, event_id=str(n), node=f"n{n}") for n, offset in enumerate(offsets)
    ]
    assert [row[0] for row in failures(tmp_path, jobs, events)] == ["0", "2"]


def test_severities_are_set_again_from_the_catalog(tmp_path: Path) -> None:
    events = [
        event(event_id="xid", severity="info"),
        event(event_id="sxid", xid=None, sxid=24007, severity="info"),
        event(event_id="unlisted", xid=UNLISTED, severity="fatal"),
        event(event_id="check", xid=None, severity="warning"),
    ]
    read = "SELECT event_id, severity FROM health_events ORDER BY ALL"
    store = published(tmp_path, health_events=events)
    expected = store.rows(read)
    assert dict(expected) == {
        "check": "warning", "sxid": dict(expected)["sxid"], "unlisted": None, "xid": "fatal",
    }  # fmt: skip
    assert dict(expected)["sxid"] in ("critical", "fatal")
    store.close()
    with writer(tmp_path) as building:
        building.connection.execute("UPDATE health_events SET severity = 'info' WHERE xid > 0")
        building.merge(
            {"health_events": frame("health_events", [event(event_id="later", xid=None)])}
        )
        building.publish()
    store = Store.open(tmp_path)
    assert store.rows(read) == sorted([*expected, ("later", None)])
    store.close()


def test_attempts_are_numbered_by_submission(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    rows = [
        job("1", attempt_key=key, submit_at=END + n * hour, start_at=END + n * hour, end_at=None)
        for key, n in (("x", 2), ("y", 0), ("z", 1))
    ]
    for row in rows:  # one publish each: earlier ordinals change
        published(tmp_path, jobs=[row, job("alone")]).close()
    store = Store.open(tmp_path)
    assert store.rows("SELECT attempt_key, attempt FROM jobs ORDER BY ALL") == [
        ("alone", 1), ("x", 3), ("y", 1), ("z", 2),
    ]  # fmt: skip
    store.close()


def test_nodes_that_records_name_are_seen_from_the_first_to_the_last(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    store = published(
        tmp_path,
        jobs=[job()],
        node_events=[{"cluster": "a", "node": "n2", "start_at": END, "end_at": END + hour}],
        health_events=[event(END - 3 * hour), event(None, event_id="e2", node="n9")],
        nodes=[{"cluster": "a", "node": "n3", "first_seen_at": END, "source": "inventory"}],
        node_failures=[{"cluster": "a", "failure_key": "1", "node": "n3", "start_at": END}],
    )
    assert store.rows(
        "SELECT node, first_seen_at, last_seen_at, source FROM nodes ORDER BY node"
    ) == [
        ("n1", END - 3 * hour, END, "observed"),
        ("n2", END - hour, END + hour, "observed"),
        ("n3", END, None, "inventory"),
        ("n9", None, None, "observed"),
    ]
    store.close()


def test_a_cluster_is_what_the_site_states_else_what_the_jobs_show(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[cluster.a]\ngpus_per_node = 4\ntimezone = "Asia/Tokyo"\n', encoding="utf-8")
    jobs = [job("1"), job("2", cluster="b", n_gpus=12), job("3", cluster="c", n_gpus=None)]
    read = "SELECT cluster, gpus_per_node, timezone, scheduler, basis FROM clusters ORDER BY 1"
    store = published(tmp_path, jobs=jobs)
    assert store.rows(read) == [
        ("a", 4, "Asia/Tokyo", None, "gpu_time"),
        ("b", 6, "UTC", None, "gpu_time"),
        ("c", None, "UTC", None, "node_time"),
    ]
    store.close()
    site.unlink()
    store = published(tmp_path)
    assert store.rows(read)[0] == ("a", 8, "UTC", None, "gpu_time")
    store.close()


def test_coverage_counts_rows_by_source_and_day(tmp_path: Path) -> None:
    store = published(
        tmp_path,
        jobs=[job("1"), job("2", end_at=END + timedelta(days=1))],
        health_events=[event(), event(None, event_id="e2")],
        node_events=[{"cluster": "a", "node": "n2", "start_at": END}],
    )
    assert store.rows("SELECT * FROM coverage ORDER BY source, day") == [
        ("a", "health_events.kernel", date(2024, 3, 1), 1),
        ("a", "health_events.kernel", None, 1),
        ("a", "jobs", date(2024, 3, 1), 1),
        ("a", "jobs", date(2024, 3, 2), 1),
        ("a", "node_events", date(2024, 3, 1), 1),
    ]
    store.close()


def test_lines_say_their_severity_where_the_code_does_not(tmp_path: Path) -> None:
    told = "GPU recovery action changed from 0x0 (None) to 0x{} ({})"
    words = "RLW_REMAP {} XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000)"
    events = [
        event(event_id="reset", xid=154, message=told.format(1, "GPU Reset Required")),
        event(event_id="reboot", xid=154, message=told.format(2, "Node Reboot Required")),
        event(event_id="silent", xid=154, message="something else"),
        event(event_id="follows", xid=45, message="Ch 00000010"),
        event(event_id="nvlink", xid=145, message="145, " + words.format("Fatal")),
    ]
    facts = [{"cluster": "a", "node": "n1", "gpu": None, "key": "driver",
              "from_at": END - timedelta(days=9), "to_at": None, "value": "575.51"}]  # fmt: skip
    store = published(tmp_path, health_events=events, node_facts=facts)
    found = dict(store.rows("SELECT event_id, severity FROM health_events"))
    store.close()
    assert found == {
        "reset": "critical", "reboot": "fatal", "silent": None, "follows": "warning",
        "nvlink": "critical",
    }  # fmt: skip


def test_what_people_decide_counts_at_once_and_stays(tmp_path: Path) -> None:
    published(tmp_path, jobs=[job("1", "FAILED")]).close()
    made = State(tmp_path).annotate("attempt:a/1", "cause", "power", author="ada")
    read = f"WITH {VERDICTS} SELECT cause, domain, method, confidence, derived_cause FROM verdict"
    decided = [("power", "hardware", "human", 1.0, "unknown")]
    for again in (Store.open(tmp_path), published(tmp_path)):  # before and after a publish
        assert again.rows(read) == decided
        again.close()
    State(tmp_path).undo(made.annotation_id, author="ada")
    for again in (Store.open(tmp_path), published(tmp_path)):  # what was published is undone too
        assert again.rows(read) == [("unknown", "unknown", "none", 0.0, "unknown")]
        again.close()


def test_people_judge_attempts_that_no_rule_calls_failed(tmp_path: Path) -> None:
    published(tmp_path, jobs=[job("1", "CANCELLED")]).close()
    State(tmp_path).annotate("attempt:a/1", "cause", "nvlink", author="ada")
    store = Store.open(tmp_path)
    assert store.rows(f"WITH {VERDICTS} SELECT attempt_key, domain, state FROM verdict") == [
        ("1", "hardware", "CANCELLED")
    ]
    store.close()


def test_a_job_that_fails_again_after_each_requeue_is_one_crash_loop(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    attempts = [
        job("1", "NODE_FAIL", attempt_key=f"s{n}", original_sluid=f"s{n}", failed_node="n1",
            submit_at=END + n * hour, start_at=END + n * hour, end_at=END + (n + 0.5) * hour)
        for n in range(4)
    ]  # fmt: skip
    store = published(tmp_path, jobs=attempts)
    found = store.rows("SELECT n_failures, loop_failures, loop_requeues FROM incidents")
    store.close()
    assert found == [(4, 4, 3)]
