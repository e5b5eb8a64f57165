"""The replay of an incident: states of nodes over time, its phases, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from analytics.failures.incidents.recovery import NodeEventDays
from analytics.failures.incidents.replay import MOST_MOMENTS, Records, Replay, State, replay, window

DAY = 20_458
"""5 January 2026 in days since 1970."""


def at(clock: str) -> pd.Timestamp:
    """A time of 5 January 2026."""
    return pd.Timestamp(f"2026-01-05T{clock}Z")


def rows(*given: dict[str, Any], columns: str) -> pd.DataFrame:
    """Rows with these columns, null where a row says nothing; times as DuckDB gives them."""
    frame = pd.DataFrame(given, columns=columns.split())
    times = [name for name in frame if name.endswith("_at")]
    return frame.assign(**{name: pd.to_datetime(frame[name], utc=True) for name in times})


def member(kind: str, key: str, clock: str, node: str | None = None, **more: Any) -> dict[str, Any]:
    """A member of an incident."""
    role = "consequence" if kind in ("preemption", "node_event") else "seed"
    return {"kind": kind, "key": key, "start_at": at(clock), "node": node, "role": role,
            "text": f"{kind} {key}"} | more  # fmt: skip


def members(*given: dict[str, Any]) -> pd.DataFrame:
    """Members of an incident."""
    return rows(*given, columns="kind key start_at end_at node text role job_id")


def ran(node: str, key: str, job: str, start: str, end: str | None) -> dict[str, Any]:
    """An attempt on a node."""
    ended = None if end is None else at(end)
    return {"node": node, "attempt_key": key, "job_id": job, "start_at": at(start), "end_at": ended}


MEMBERS = members(
    member("health_event", "xid", "12:00:00", "n10"),
    member("failure", "big1", "12:05:00", "n10", job_id="big"),
    member("node_event", "n10@", "12:05:00", "n10", end_at=at("15:00:00")),
    member("preemption", "aside", "12:30:00", job_id="small"),
)
HELD = rows(
    ran("n9", "big1", "big", "08:00:00", "12:05:00"),
    ran("n10", "big1", "big", "08:00:00", "12:05:00"),
    ran("n11", "aside", "small", "11:00:00", "12:30:00"),
    ran("n9", "big2", "big", "12:30:00", None),
    ran("n11", "big2", "big", "12:30:00", None),
    ran("n10", "other", "other", "16:00:00", None),
    columns="node attempt_key job_id start_at end_at",
)
RECORDS = Records(
    nodes=rows({"node": "n10"}, {"node": "n11"}, {"node": "n9"}, columns="node rack"),
    attempts=rows(
        {"attempt_key": "big1", "job_id": "big", "end_at": at("12:05:00"),
         "restarted_at": at("12:30:00")},
        {"attempt_key": "aside", "job_id": "small", "end_at": at("12:30:00"),
         "restarted_at": at("16:30:00")},
        columns="attempt_key job_id end_at restarted_at",
    ),
    held=HELD,
    outages=rows({"node": "n10", "start_at": at("12:05:00"), "end_at": at("15:00:00")},
                 columns="node start_at end_at"),
    collected=NodeEventDays(range(DAY - 40, DAY + 1), (DAY - 40, DAY)),
    preemptors_known=True,
)  # fmt: skip


def states(found: Replay, node: str) -> list[tuple[str, str]]:
    """When a node came into which state."""
    held = found.states
    own = held.place == found.nodes.index(node)
    return [
        (f"{pd.Timestamp(time, unit='us'):%H:%M:%S}", State(state).name)
        for time, state in zip(held.at[own].tolist(), held.state[own].tolist(), strict=True)
    ]


def test_each_node_goes_through_what_its_records_say() -> None:
    found = replay(MEMBERS, RECORDS)
    assert found.nodes == ("n9", "n10", "n11")  # by the size of the number
    assert states(found, "n9") == [
        ("11:59:00", "HIT_JOB"), ("12:05:00", "FAILED"), ("12:30:00", "AGAIN"),
    ]  # fmt: skip
    assert states(found, "n10") == [
        ("11:59:00", "HIT_JOB"), ("12:00:00", "EVIDENCE"), ("12:05:00", "OUT"),
        ("15:00:00", "IDLE"), ("16:00:00", "OTHER_JOB"),
    ]  # fmt: skip
    assert states(found, "n11") == [("11:59:00", "HIT_JOB"), ("12:30:00", "AGAIN")]


def test_phases_have_the_times_that_records_show() -> None:
    found = replay(MEMBERS, RECORDS)
    assert [(p.name, p.from_at, p.to_at) for p in found.phases] == [
        ("first event", at("12:00:00"), at("12:00:00")),
        ("spread", at("12:05:00"), at("12:05:00")),
        ("preemptions", at("12:30:00"), at("12:30:00")),
        ("recovery", at("12:30:00"), at("16:30:00")),
    ]
    assert (found.n_first, found.n_hit, found.n_preempted) == (1, 2, 1)
    assert found.first_nodes == ("n10",)
    assert found.recovery.hours == 4.5
    assert [(f"{moment.at:%H:%M}", moment.phase) for moment in found.moments] == [
        ("11:59", "before"), ("12:00", "first event"), ("12:05", "spread"),
        ("12:30", "preemptions and recovery"), ("15:00", "recovery"), ("16:00", "recovery"),
        ("16:30", "recovered"),
    ]  # fmt: skip
    assert found.moments[2].counts == {State.FAILED: 1, State.OUT: 1, State.HIT_JOB: 1}


@pytest.mark.parametrize("days", [[], range(DAY - 40, DAY - 30), range(DAY + 30, DAY + 40)])
def test_without_node_events_a_node_is_unknown_and_never_in_service(days: Any) -> None:
    records = replace(RECORDS, collected=NodeEventDays(days, (DAY - 40, DAY + 40)))
    found = replay(MEMBERS, records)
    seen = {state for _, state in states(found, "n10")}
    assert "NOT_COLLECTED" in seen
    assert State.IDLE not in found.shown
    assert (found.recovery.hours, found.moments[-1].phase) == (None, "recovery")
    assert states(found, "n9") == states(replay(MEMBERS, RECORDS), "n9")  # jobs ran: that is known


def test_what_was_not_recorded_of_the_recovery_stays_unknown() -> None:
    attempts = RECORDS.attempts.assign(restarted_at=pd.to_datetime([None, None], utc=True))
    lasting = MEMBERS.assign(end_at=pd.to_datetime([None] * 4, utc=True))
    found = replay(lasting, replace(RECORDS, attempts=attempts))
    assert (found.phase("recovery").from_at, found.recovery.hours) == (None, None)
    assert "recover" not in found.moments[-1].phase
    one_back = replay(MEMBERS, replace(RECORDS, attempts=attempts))
    assert one_back.phase("recovery").from_at == at("15:00:00")
    assert (one_back.recovery.recovered_at, one_back.moments[-1].phase) == (None, "recovery")


def test_an_outage_alone_is_an_incident_without_spread() -> None:
    only = members(member("node_event", "n10@", "12:05:00", "n10", end_at=at("15:00:00")))
    none = RECORDS.attempts[:0]
    found = replay(only, replace(RECORDS, nodes=RECORDS.nodes[:1], attempts=none, held=HELD[:0]))
    assert [phase.from_at for phase in found.phases] == [
        at("12:05:00"), None, None, at("15:00:00"),
    ]  # fmt: skip
    assert states(found, "n10")[1:] == [("12:05:00", "OUT"), ("15:00:00", "IDLE")]


def test_without_any_node_the_phases_remain() -> None:
    lost = members(member("failure", "big1", "12:05:00", job_id="big"))
    found = replay(
        lost, replace(RECORDS, nodes=RECORDS.nodes[:0], held=HELD[:0], outages=RECORDS.outages[:0])
    )
    assert (found.nodes, found.n_hit, found.shown.shape[0]) == ((), 0, 0)
    assert found.phase("first event").from_at == at("12:05:00")


def test_of_many_changes_those_of_the_incident_come_first() -> None:
    churn = rows(
        *(ran("n9", f"o{n}", f"o{n}", f"13:{n:02d}:00", f"13:{n:02d}:30") for n in range(59)),
        columns="node attempt_key job_id start_at end_at",
    )
    held = pd.concat([HELD[HELD["attempt_key"].ne("big2")], churn])
    found = replay(MEMBERS, replace(RECORDS, held=held))
    assert found.n_changes > MOST_MOMENTS == len(found.moments)
    times = {f"{moment.at:%H:%M}" for moment in found.moments}
    assert {"11:59", "12:00", "12:05", "12:30", "15:00", "16:30"} <= times


def test_nodes_are_followed_for_two_weeks_at_most() -> None:
    late = RECORDS.attempts.assign(restarted_at=at("12:30:00") + pd.Timedelta(days=29))
    first, last = window(MEMBERS, late)
    assert (first, last) == (at("12:00:00"), at("12:30:00") + pd.Timedelta(days=14))
    found = replay(MEMBERS, replace(RECORDS, attempts=late))
    assert found.phase("recovery").to_at > found.followed_to
    assert found.moments[-1].at <= found.followed_to
    assert "recovered" not in {moment.phase for moment in found.moments}


def test_the_order_of_the_records_is_irrelevant() -> None:
    turned = replace(RECORDS, held=HELD[::-1], nodes=RECORDS.nodes[::-1])
    assert replay(MEMBERS[::-1], turned).moments == replay(MEMBERS, RECORDS).moments
