"""What belongs to one incident, and what does not."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from analytics.errors import OutOfRangeError, ShapeError
from analytics.failures.incidents import IncidentOptions, incidents


def parts(tables) -> set[frozenset[str]]:
    """Keys of the seeds of each incident."""
    seeds = tables.members[tables.members["role"] == "seed"]
    return {frozenset(keys) for _, keys in seeds.groupby("incident_id")["key"]}


def test_nothing_is_no_incident(cluster) -> None:
    found = cluster.incidents()
    assert found.incidents.empty
    assert found.members.empty


def arrays(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """A frame as queries give it: times without a zone, None or NaN where unknown."""
    return {
        name: pd.to_datetime(frame[name], utc=True).dt.tz_localize(None).to_numpy("datetime64[us]")
        if name.endswith("_at")
        else frame[name].to_numpy()
        for name in frame
    }


def test_arrays_give_the_same_incidents_as_frames(cluster) -> None:
    for number in range(5):
        cluster.fails(60 * number, "n1", job_id="loop", restarted=60 * number + 5)
    cluster.fails(500, None, on=("n2", "n3"), n_gpus=None)
    cluster.is_preempted(62, "loop")
    cluster.shows(501, "n2", xid=79)
    cluster.shows(502, "n3", severity="warning")
    cluster.goes_down(503, "n3")
    cluster.stands("n1", "r1")
    expected = cluster.incidents()
    found = incidents(**{name: arrays(frame) for name, frame in cluster.frames().items()})
    pd.testing.assert_frame_equal(found.incidents, expected.incidents)
    pd.testing.assert_frame_equal(found.members, expected.members)
    assert expected.incidents["loop_failures"].max() == 5
    assert expected.incidents["n_preempted"].sum() == 1


def test_users_failures_and_unexplained_ones_form_no_incident(cluster) -> None:
    cluster.fails(10, "n1", cause="attribute_error")
    cluster.fails(10, None, cause="unknown", domain="unknown")
    assert cluster.incidents().incidents.empty


def test_a_lost_node_forms_one_whatever_its_verdict(cluster) -> None:
    cluster.fails(10, "n1", cause="node_lost", state="NODE_FAIL")
    cluster.fails(5000, "n2", cause="attribute_error", state="NODE_FAIL")
    assert len(cluster.incidents().incidents) == 2


@pytest.mark.parametrize(("at", "together"), [(89.9, 2), (90, 1), (105, 1), (105.1, 2)])
def test_an_event_belongs_from_ten_minutes_before_to_five_after(cluster, at, together) -> None:
    cluster.fails(100, "n1")
    cluster.shows(at, "n1")
    assert len(cluster.incidents().incidents) == together


def test_an_event_on_any_node_of_the_job_belongs_and_one_elsewhere_does_not(cluster) -> None:
    cluster.fails(100, None, on=("n1", "n2", "n3"))
    cluster.shows(99, "n3")
    cluster.shows(99, "n4")
    assert parts(cluster.incidents()) == {frozenset({"a00000", "e00000"}), frozenset({"e00001"})}


def test_jobs_of_one_node_that_end_together_are_one_and_an_hour_later_are_two(cluster) -> None:
    cluster.fails(100, "n1")
    cluster.fails(101, "n1")
    cluster.fails(161, "n1")
    found = cluster.incidents().incidents
    assert found["n_jobs"].tolist() == [2, 1]


def test_healthy_nodes_of_a_large_job_link_nothing(cluster) -> None:
    cluster.fails(100, "n1", on=("n1", "n2", "n3"))
    cluster.fails(101, "n2")
    assert len(cluster.incidents().incidents) == 2


def test_a_job_whose_node_is_not_named_is_linked_by_all_of_its_nodes(cluster) -> None:
    cluster.fails(100, None, on=("n1", "n2", "n3"))
    cluster.fails(101, "n2")
    assert len(cluster.incidents().incidents) == 1


def test_nodes_of_the_same_name_in_two_clusters_are_two(cluster) -> None:
    cluster.fails(100, "n1")
    cluster.fails(100, "n1", cluster="d")
    cluster.shows(100, "n1", cluster="e")
    found = cluster.incidents().incidents
    assert sorted(found["cluster"]) == ["c", "d", "e"]


def test_an_outage_joins_unless_it_was_planned_or_stands_alone(cluster) -> None:
    cluster.fails(100, "n1")
    cluster.goes_down(102, "n1", 400)
    cluster.goes_down(104, "n1", 400, planned=True)
    cluster.goes_down(103, "n1", None, planned=None)
    cluster.goes_down(102, "n2")
    members = cluster.incidents().members
    outages = members[members["kind"] == "node_event"]
    assert outages["key"].tolist() == ["n1@2026-03-01T01:42:00Z", "n1@2026-03-01T01:43:00Z"]
    assert set(outages["role"]) == {"consequence"}


def test_an_event_and_the_outage_after_it_are_one_without_any_job(cluster) -> None:
    cluster.shows(100, "n1")
    cluster.goes_down(108, "n1", 400)
    cluster.shows(112, "n1", check_name="check-pci")
    found = cluster.incidents()
    assert len(found.incidents) == 1
    assert found.incidents["n_jobs"].tolist() == [0]
    assert found.incidents["lost_gpu_seconds"].tolist() == [0]


def test_warnings_join_as_context_and_seed_nothing(cluster) -> None:
    cluster.shows(95, "n1", severity="warning")
    cluster.shows(95, "n2", severity="warning")
    cluster.shows(60, "n1", severity="info")
    cluster.shows(96, "n1", severity=None, check_name="check-pci")
    cluster.fails(100, "n1", on=("n1", "n2"))
    members = cluster.incidents().members
    context = members[members["role"] == "context"]
    assert context["key"].tolist() == ["e00000", "e00003"]


def test_a_lemon_failing_every_hour_is_several_incidents(cluster) -> None:
    for hour in range(30):
        cluster.fails(60 * hour, "n1")
        cluster.shows(60 * hour - 1, "n1", times=5)
    assert len(cluster.incidents().incidents) == 30


def test_an_endless_chain_on_one_node_is_cut_every_day(cluster) -> None:
    for number in range(600):
        cluster.fails(10 * number, "n1")
    found = cluster.incidents().incidents
    assert len(found) == 5
    assert (found["end_at"] - found["start_at"]).max() <= pd.Timedelta(hours=24)


def test_a_fatal_event_repeated_for_days_does_not_hold_the_days_together(cluster) -> None:
    for number in range(3000):
        cluster.shows(2 * number, "n1", severity="fatal")
    for hour in range(0, 100, 8):
        cluster.fails(60 * hour + 30, "n1")
    found = cluster.incidents()
    failures = found.members[found.members["kind"] == "failure"]
    spans = failures.groupby("incident_id")["at"].agg(lambda at: at.max() - at.min())
    assert spans.max() <= pd.Timedelta(hours=24)


def test_a_crash_loop_is_one_incident_even_of_a_users_program(cluster) -> None:
    for number in range(4):
        cluster.fails(200 * number, f"n{number}", job_id="7", cause="attribute_error")
    found = cluster.incidents().incidents.iloc[0]
    assert (found["domain"], found["n_jobs"], found["n_failures"]) == ("user", 1, 4)
    assert (found["loop_failures"], found["loop_requeues"]) == (4, 3)


def test_a_users_crash_loop_does_not_drag_its_node_into_the_incident(cluster) -> None:
    for number in range(4):
        cluster.fails(200 * number, "n1", job_id="7", cause="attribute_error")
        cluster.fails(200 * number + 1, "n1", job_id="8", cause="attribute_error")
    cluster.shows(200, "n1")
    assert len(cluster.incidents().incidents) == 3


def test_rows_in_any_order_give_the_same_tables(cluster) -> None:
    rng = np.random.default_rng(3)
    for at in rng.uniform(0, 3000, 150):
        node = f"n{rng.integers(12)}"
        cluster.fails(
            at,
            node if rng.random() < 0.7 else None,
            on=(node, f"n{rng.integers(12)}"),
            job_id=f"j{rng.integers(60)}",
            cause=rng.choice(["ib_link", "pcie", "node_lost"]),
        )
        cluster.shows(at - rng.uniform(-10, 10), node, severity=rng.choice(["critical", "warning"]))
        cluster.goes_down(at + 1, node, at + 100)
        cluster.is_preempted(at + 3, f"j{rng.integers(60)}")
    for number in range(12):
        cluster.stands(f"n{number}", f"r{number // 4}", "p")
    one, other = cluster.incidents(), cluster.incidents(seed=1)
    pd.testing.assert_frame_equal(one.incidents, other.incidents)
    pd.testing.assert_frame_equal(one.members, other.members)
    assert one.incidents["incident_id"].is_unique
    seeds = one.members[one.members["role"] == "seed"]
    assert not seeds.duplicated(["kind", "key"]).any()
    assert set(one.members["incident_id"]) == set(one.incidents["incident_id"])


def test_a_failure_without_a_time_is_left_out(cluster) -> None:
    cluster.fails(100, "n1", failed_at=None)
    assert cluster.incidents().incidents.empty


def test_a_missing_column_and_a_time_below_zero_are_refused(cluster) -> None:
    frames = cluster.frames()
    frames["nodes"] = frames["nodes"].drop(columns="rack")
    with pytest.raises(ShapeError, match="nodes must have the columns cluster, node, rack, pod"):
        incidents(**frames)
    with pytest.raises(OutOfRangeError, match="before_minutes must be a finite number >= 0"):
        IncidentOptions(before_minutes=-1)


def test_times_are_in_utc_and_microseconds(cluster) -> None:
    cluster.shows(100, "n1")
    found = cluster.incidents()
    columns = (found.incidents["start_at"], found.incidents["end_at"], found.members["at"])
    assert {str(column.dtype) for column in columns} == {"datetime64[us, UTC]"}


@pytest.mark.benchmark
def test_a_year_of_thirty_thousand_failures_takes_seconds() -> None:
    rng, n, n_events = np.random.default_rng(0), 30_000, 500_000
    names = np.array([f"n{number}" for number in range(2000)], dtype=object)
    at, node = rng.uniform(0, 3e7, n), rng.integers(0, 2000, n)
    sizes = rng.choice([1, 4, 16, 256], n, p=[0.5, 0.3, 0.17, 0.03])
    failure = np.repeat(np.arange(n), sizes)
    offset = np.arange(len(failure)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    keys = np.array([f"a{number}" for number in range(n)], dtype=object)
    seen = rng.uniform(0, 3e7, n_events)
    where = rng.integers(0, 2000, n_events)
    seen[:n], where[:n] = at - rng.uniform(0, 300, n), node
    severity = np.where(np.arange(n_events) < n, "critical", "warning")

    def utc(seconds: np.ndarray) -> pd.Series:
        return pd.Series(pd.to_datetime(seconds, unit="s", utc=True))

    failures = pd.DataFrame(
        {"cluster": "c", "attempt_key": keys, "job_id": keys, "state": "FAILED"}
    )
    failures = failures.assign(cause="pcie", domain="hardware", failed_at=utc(at), n_gpus=8 * sizes)
    failures = failures.assign(start_at=utc(at - 9000), node=names[node])
    attempt_nodes = pd.DataFrame(
        {
            "cluster": "c",
            "attempt_key": keys[failure],
            "node": names[(node[failure] + offset) % 2000],
        }
    )
    events = pd.DataFrame({"cluster": "c", "node": names[where], "severity": severity})
    events = events.assign(first_at=utc(seen), last_at=utc(seen), n=1, check_name="check-pci")
    events["burst_id"] = [f"e{number}" for number in range(n_events)]
    outages = pd.DataFrame({"cluster": "c", "node": names[node], "start_at": utc(at + 60)})
    outages = outages.assign(end_at=utc(at + 7200), state="DOWN", reason=None, planned=False)
    racks = [f"r{number // 20}" for number in range(2000)]
    nodes = pd.DataFrame({"cluster": "c", "node": names, "rack": racks, "pod": None})
    preempted = pd.DataFrame(
        columns=["cluster", "attempt_key", "job_id", "preempted_by", "start_at", "end_at", "n_gpus"]
    )
    begun = time.process_time()
    found = incidents(
        failures, attempt_nodes, events, node_events=outages, nodes=nodes, preempted=preempted
    )
    assert time.process_time() - begun < 6
    assert 0.95 * n < len(found.incidents) <= n
