"""The members of an incident on one axis."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analytics.failures.incidents.incident import LANES_PER_SOURCE, Lane, Timeline, timeline

AT = pd.Timestamp("2026-01-05T12:00Z")
NO_LINES = pd.DataFrame(columns=["job_id", "node", "at", "text", "role"])
COLUMNS = ["kind", "key", "start_at", "end_at", "node", "text", "severity", "role", "signal",
           "source", "job_id", "n_gpus", "began_at", "domain"]  # fmt: skip


def member(minute: float, kind: str = "health_event", **given: Any) -> dict[str, Any]:
    at = AT + pd.Timedelta(minutes=minute)
    source = {"health_event": "kernel", "node_event": "node_events"}.get(kind, "scheduler")
    base = {"kind": kind, "key": f"{kind}{minute}", "start_at": at, "end_at": at, "node": "n1",
            "text": "said", "severity": None, "role": "seed", "signal": "XID 79", "source": source,
            "job_id": None, "n_gpus": None, "began_at": pd.NaT, "domain": None}  # fmt: skip
    return base | given


def drawn(*members: dict[str, Any], lines: pd.DataFrame = NO_LINES) -> Timeline:
    return timeline(pd.DataFrame(list(members), columns=COLUMNS), lines)


def lane(found: Timeline, source: str) -> Lane:
    (only,) = (each for each in found.lanes if each.source == source)
    return only


def test_the_axis_holds_every_moment_and_cuts_what_lasts() -> None:
    found = drawn(
        member(0, "failure", job_id="7", began_at=AT - pd.Timedelta(days=3)),
        member(1, "node_event", role="consequence", end_at=AT + pd.Timedelta(days=9)),
        member(20),
    )
    assert AT - pd.Timedelta(minutes=2) < found.from_at < AT
    assert AT + pd.Timedelta(minutes=20) < found.to_at < AT + pd.Timedelta(minutes=23)
    assert found.first_at == AT
    assert [mark.role for mark in lane(found, "scheduler").marks] == ["running", "seed"]
    assert lane(found, "node state").marks[0].end_at == AT + pd.Timedelta(days=9)


def test_sources_stand_in_one_order_each_node_in_its_own_lane() -> None:
    found = drawn(
        member(0, source="health_check"),
        member(1, node="n2"),
        member(2, "node_event", role="consequence"),
        member(3, "failure", job_id="7"),
    )
    assert [(each.source, each.title) for each in found.lanes] == [
        ("scheduler", "job 7"),
        ("node state", "n1"),
        ("kernel", "n2"),
        ("health checks", "n1"),
    ]


def test_preempted_jobs_share_a_lane_that_counts_jobs_and_gpus() -> None:
    found = drawn(
        member(0, "failure", job_id="7"),
        *(
            member(5, "preemption", key=f"k{n}", job_id=str(n % 30), n_gpus=8, role="consequence")
            for n in range(40)
        ),
    )
    aside = found.lanes[1]
    assert aside.title == "30 jobs preempted (240 GPUs)"
    assert [mark.n for mark in aside.marks] == [40]
    assert aside.signals == (("XID 79", 40),)


def test_what_lies_far_apart_stays_apart() -> None:
    found = drawn(member(0), member(30), member(60))
    assert [mark.n for mark in lane(found, "kernel").marks] == [1, 1, 1]


def test_a_storm_of_nodes_keeps_few_lanes_those_with_seeds_first() -> None:
    context = [member(n / 100, node=f"c{n}", role="context") for n in range(50)]
    found = drawn(*context, member(9, node="guilty"))
    titles = [each.title for each in found.lanes]
    assert len(titles) == LANES_PER_SOURCE
    assert titles[0] == "guilty"
    assert titles[-1] == "44 more"
    assert sum(mark.n for each in found.lanes for mark in each.marks) == 51


def test_lines_of_logs_have_their_lane() -> None:
    lines = pd.DataFrame([{"job_id": "7", "node": "n1", "at": AT, "text": "ECC", "role": "cause"}])
    found = drawn(member(0, "failure", job_id="7"), lines=lines)
    assert lane(found, "job logs").marks[0].text == "ECC"


@pytest.mark.parametrize("source", [None, float("nan"), "a new source"])
def test_an_event_of_unknown_source_is_shown(source: object) -> None:
    assert drawn(member(0, source=source)).lanes[0].source == "events"


def test_one_moment_has_an_axis() -> None:
    found = drawn(member(0))
    assert found.to_at > found.from_at


def test_nothing_has_no_lane() -> None:
    assert drawn().lanes == ()


def test_failures_are_those_of_jobs_in_order_of_time() -> None:
    members = [member(5, "failure", job_id="8"), member(0), member(2, "failure", job_id="7",
               began_at=AT - pd.Timedelta(hours=1))]  # fmt: skip
    assert drawn(*members).failures == (
        (AT + pd.Timedelta(minutes=2), "job 7"),
        (AT + pd.Timedelta(minutes=5), "job 8"),
    )
