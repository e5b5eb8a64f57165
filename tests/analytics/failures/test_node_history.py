"""What was recorded of a node, by kind, and as lanes along time."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from analytics.failures.node_history import Node

HISTORY = ["kind", "key", "start_at", "end_at", "what", "severity", "text"]
ATTEMPTS = ["job_id", "state", "start_at", "end_at", "cause", "domain", "here"]


def _at(day: float | None) -> pd.Timestamp:
    return pd.NaT if day is None else pd.Timestamp("2026-01-01", tz="UTC") + pd.Timedelta(days=day)


def _frame(rows: list[tuple], columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(**{c: pd.to_datetime(frame[c], utc=True) for c in ("start_at", "end_at")})


def _node(history: list[tuple] = (), attempts: list[tuple] = (), said: list[tuple] = ()) -> Node:
    return Node(
        "c", "n1", pd.DataFrame(), _frame(list(history), HISTORY),
        _frame(list(attempts), ATTEMPTS), pd.DataFrame(list(said), columns=["field", "value"]),
    )  # fmt: skip


def _event(day: float | None, severity: str | None, what: str = "XID 79") -> tuple:
    return ("health_event", "k", _at(day), _at(None), what, severity, f"{what} seen")


OUTAGES = [
    ("node_event", "k", _at(2), _at(3), "DOWN", None, "Not responding"),
    ("node_event", "k", _at(5), _at(None), "planned DRAIN", None, None),
]
TICKETS = [("ticket", "T1", _at(2), _at(4), "dimm", None, "swapped"),
           ("ticket", "T2", _at(6), _at(None), "gpu", None, "open")]  # fmt: skip
FAILED = [
    ("1", "NODE_FAIL", _at(0), _at(1), "gpu_memory", "hardware", True),
    ("2", "NODE_FAIL", _at(0), _at(1.5), "node_lost", "unknown", True),
    ("3", "FAILED", _at(0), _at(2), "python_error", "user", True),
    ("4", "FAILED", _at(0), _at(3), "gpu_memory", "hardware", False),
    ("5", "FAILED", _at(0), _at(None), "unknown", "unknown", None),
    ("6", "COMPLETED", _at(0), _at(4), None, None, None),
]


def test_records_are_told_apart_by_kind() -> None:
    node = _node([*OUTAGES, *TICKETS, _event(1, "fatal"), _event(2, "critical"), _event(3, None)])
    assert [len(rows) for rows in (node.outages, node.planned, node.events, node.urgent)] == [
        2, 1, 3, 2,
    ]  # fmt: skip
    assert (len(node.tickets), node.n_open_tickets) == (2, 1)


def test_a_node_ended_what_its_verdict_names_unless_the_program_was_at_fault() -> None:
    node = _node(attempts=FAILED)
    assert node.failed["job_id"].tolist() == ["1", "2", "3", "4", "5"]
    assert node.failed_here["job_id"].tolist() == ["1", "2"]
    assert node.n_unknown == 2


def test_its_status_is_what_people_said() -> None:
    assert _node(said=[("status", "suspect"), ("note", "hot")]).status == ["suspect"]


def test_the_period_is_that_of_the_records_unless_one_was_chosen() -> None:
    node = _node([_event(3, "fatal")], FAILED[:1])
    assert node.period(None, None) == (_at(0), _at(3))
    chosen = datetime(2025, 12, 1, tzinfo=UTC)
    assert node.period(chosen, None) == (pd.Timestamp(chosen), _at(3))
    assert _node().period(chosen, chosen) is None


def test_lanes_hold_every_record_that_has_a_time() -> None:
    events = [_event(1, "fatal"), _event(2, "warning"), _event(None, "fatal")]
    timeline = _node([*OUTAGES, *TICKETS, *events], FAILED).timeline(None, None)
    assert timeline is not None
    assert [(lane.source, lane.title, len(lane.marks)) for lane in timeline.lanes] == [
        ("failed attempts", "ended by this node", 2),
        ("failed attempts", "for another reason", 2),
        ("node state", "out of service", 2),
        ("health events", "critical, fatal", 1),
        ("health events", "others", 1),
        ("tickets", "opened", 2),
    ]
    assert (timeline.from_at, timeline.to_at) == (_at(1), _at(6))
    out = timeline.lanes[2].marks
    assert [(mark.signal, mark.text, mark.end_at) for mark in out] == [
        ("DOWN", "Not responding", _at(3)),
        ("planned DRAIN", "planned DRAIN", None),
    ]


def test_a_node_without_a_record_has_no_timeline() -> None:
    assert _node().timeline(None, None) is None
    assert _node(attempts=FAILED[-1:]).timeline(None, None) is None


def test_the_axis_is_that_of_the_period_and_an_hour_long_at_least() -> None:
    node = _node([_event(1, "fatal")])
    alone = node.timeline(None, None)
    assert alone is not None
    assert alone.to_at - alone.from_at == pd.Timedelta("1h")
    chosen = node.timeline(_at(0).to_pydatetime(), _at(9).to_pydatetime())
    assert chosen is not None
    assert (chosen.from_at, chosen.to_at) == (_at(0), _at(9))


@pytest.mark.parametrize(("what", "n_marks"), [("XID 79", 2), (None, 3)])
def test_moments_alike_that_are_close_are_one_mark(what: str | None, n_marks: int) -> None:
    others = [_event(1.001, "fatal", what or "check-sensors"), _event(101, "fatal")]
    timeline = _node([_event(1, "fatal"), *others]).timeline(None, None)
    assert timeline is not None
    (lane,) = timeline.lanes
    assert len(lane.marks) == n_marks
    assert sum(mark.n for mark in lane.marks) == 3
