"""Incidents that people merged, and attempts that they took out of one or put into another."""

from __future__ import annotations

import pandas as pd

from analytics.failures.incidents import IncidentOptions
from analytics.failures.incidents.arranged import Move, arranged, one_of
from analytics.failures.incidents.members import given


def _anew(cluster, moves=(), same=None):
    """Incidents of a cluster, with what people said of them."""
    derived = cluster.incidents()
    held = derived.members.merge(derived.incidents[["incident_id", "cluster"]], on="incident_id")
    held["incident_id"] = held["incident_id"].map(lambda one: (same or {}).get(one, one))
    return derived, arranged(given(cluster.frames()), held, moves, IncidentOptions())


def _ids(derived) -> dict[str, str]:
    """Attempt -> its incident."""
    failed = derived.members[derived.members["kind"] == "failure"]
    return dict(zip(failed["key"], failed["incident_id"], strict=True))


def _two_nodes_of_one_attempt(cluster) -> tuple[str, str]:
    """Two failures of one incident, on a node each, each with an event and an outage of its own.

    They share an attempt's window on n2, so that what both see stays with the one that stays.
    """
    first = cluster.fails(100, "n1", on=("n1", "n2"))
    second = cluster.fails(104, "n3", on=("n2", "n3"))
    cluster.shows(98, "n1", xid=48)
    cluster.shows(102, "n2", xid=79)
    cluster.shows(103, "n3", xid=94)
    cluster.shows(103, "n3", severity="warning", xid=63)
    cluster.goes_down(105, "n3", 300)
    return first, second


def test_what_is_held_as_it_was_says_the_same(cluster) -> None:
    _two_nodes_of_one_attempt(cluster)
    for number in range(4):
        cluster.fails(2000 + 60 * number, "n9", job_id="7", restarted=2010 + 60 * number)
    cluster.is_preempted(2005, "7")
    cluster.fails(5000, "n4", n_gpus=None)
    derived, anew = _anew(cluster)
    assert len(derived.incidents) == 3
    for before, after, by in (
        (derived.incidents, anew.incidents, ["incident_id"]),
        (derived.members, anew.members, ["incident_id", "kind", "key"]),
    ):
        before, after = (
            each.astype(object).sort_values(by, ignore_index=True) for each in (before, after)
        )
        pd.testing.assert_frame_equal(before, after)


def test_two_that_are_one_have_what_both_had(cluster) -> None:
    cluster.fails(100, "n1", job_id="1")
    cluster.fails(900, "n2", job_id="2", cause="ib_link")
    cluster.is_preempted(95, "1")
    cluster.shows(899, "n2", times=3)
    derived, _ = _anew(cluster)
    first, second = derived.incidents["incident_id"]
    _, anew = _anew(cluster, same={first: second})
    (row,) = anew.incidents.to_dict("records")
    both = derived.incidents
    assert row["incident_id"] == second
    assert row["start_at"] == both["start_at"].min()
    for name in ("n_jobs", "n_gpus", "n_nodes", "n_events", "lost_gpu_seconds"):
        assert row[name] == both[name].sum(), name
    assert row["nodes"] == ("n1", "n2")
    assert len(anew.members) == len(derived.members)


def test_an_attempt_leaves_with_what_only_it_explains(cluster) -> None:
    first, second = _two_nodes_of_one_attempt(cluster)
    derived, _ = _anew(cluster)
    (incident,) = set(_ids(derived).values())
    _, anew = _anew(cluster, [Move("c", second, incident, None)])
    (row,) = anew.incidents.to_dict("records")
    assert (row["n_failures"], row["n_events"], row["nodes"]) == (1, 2, ("n1", "n2"))
    assert set(anew.members["node"]) == {"n1", "n2"}, "nothing of n3 is left"
    _, anew = _anew(cluster, [Move("c", first, incident, None)])
    (row,) = anew.incidents.to_dict("records")
    assert (row["n_failures"], row["n_events"], row["nodes"]) == (1, 2, ("n2", "n3"))
    assert "outage" in set(anew.members["signal"])


def test_an_attempt_that_moves_brings_its_events_and_what_it_preempted(cluster) -> None:
    cluster.fails(100, "n1", job_id="1")
    moving = cluster.fails(900, "n2", job_id="2", restarted=930)
    cluster.is_preempted(925, "2")
    cluster.shows(899, "n2", severity="warning", xid=63)
    derived, _ = _anew(cluster)
    first, second = derived.incidents["incident_id"]
    _, anew = _anew(cluster, [Move("c", moving, second, first)])
    (row,) = anew.incidents.to_dict("records")
    assert (row["incident_id"], row["n_failures"], row["n_preempted"]) == (first, 2, 1)
    assert set(anew.members["kind"]) == {"failure", "preemption", "health_event"}
    assert row["lost_gpu_seconds"] == derived.incidents["lost_gpu_seconds"].sum()


def test_a_crash_loop_is_counted_without_what_was_taken_out(cluster) -> None:
    keys = [cluster.fails(60 * n, "n1", job_id="7", restarted=60 * n + 10) for n in range(4)]
    derived, _ = _anew(cluster)
    assert derived.incidents["loop_failures"].tolist() == [4]
    (incident,) = set(_ids(derived).values())
    _, anew = _anew(cluster, [Move("c", keys[3], incident, None)])
    assert anew.incidents["loop_failures"].tolist() == [3]


def test_an_incident_without_a_seed_is_none(cluster) -> None:
    key = cluster.fails(100, "n1")
    cluster.goes_down(101, "n1")
    derived, _ = _anew(cluster)
    (incident,) = derived.incidents["incident_id"]
    _, anew = _anew(cluster, [Move("c", key, incident, None)])
    assert len(anew.incidents) == 0


def test_of_a_chain_the_last_stands_for_all_and_a_circle_changes_nothing() -> None:
    assert one_of([("a", "b"), ("b", "c")]) == {"a": "c", "b": "c"}
    assert one_of([("b", "c"), ("a", "b")]) == {"a": "c", "b": "c"}
    assert one_of([("a", "b"), ("b", "a")]) == {"a": "b"}
    assert one_of([("a", "a")]) == {}
