"""A link whose errors come back, and a machine of a job that moved away from the others."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from app.alerts.rule import Watch
from app.alerts.rules import faulty_link, faulty_machine
from app.answers.fleet.actions import rows
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.alerts.rule import Found, Rule

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
EVENTS = (
    ("again", 74, None, 0.0), ("again", 74, None, 5.0), ("again", 74, None, 6.0),
    ("again", 74, None, 80.0),
    ("once", 74, None, 1.0), ("once", 74, None, 1.05),
    ("apart", 74, None, 0.0), ("apart", 74, None, 30.0),
    ("memory", 48, None, 0.0), ("memory", 48, None, 5.0),
)  # fmt: skip
"""Node, XID, check and hours: critical events."""
NODES = [f"n{number}" for number in range(6)]
STEP_S = 30


def samples(cluster: str, bad: str | None) -> pd.DataFrame:
    """Half an hour of two metrics of six nodes; one node slows down half way."""
    rng = np.random.default_rng(5)
    parts = []
    for metric, level in (("DCGM_FI_DEV_SM_CLOCK", 1_900.0), ("DCGM_FI_DEV_GPU_TEMP", 60.0)):
        for node in NODES:
            value = level + rng.normal(0, level / 200, 60)
            if node == bad:
                value[24:] -= level / 3
            parts.append(pd.DataFrame({
                "cluster": cluster, "node": node, "metric": metric, "reading": value,
                "observed_at": [START + timedelta(seconds=STEP_S * n) for n in range(60)],
            }))  # fmt: skip
    return pd.concat(parts)


def job(cluster: str, nodes: str, n_nodes: int) -> dict[str, object]:
    return {
        "cluster": cluster, "attempt_key": f"{cluster} 7", "job_id": "7", "state": "RUNNING",
        "n_gpus": 8 * n_nodes, "n_nodes": n_nodes, "node_list": nodes, "submit_at": START - HOUR,
        "start_at": START - HOUR,
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("nodes") / "store"
    events = pd.DataFrame([
        {"cluster": "links", "event_id": str(n), "node": node, "xid": xid, "check_name": "xid",
         "severity": "critical", "source": "kernel", "observed_at": START + hours * HOUR}
        for n, (node, xid, _, hours) in enumerate(EVENTS)
    ])  # fmt: skip
    jobs = [job("bad", "n[0-5]", 6), job("sound", "n[0-5]", 6), job("small", "n[0-1]", 2)]
    with writer(root) as building:
        building.load({
            "jobs": pd.DataFrame(jobs),
            "job_nodes": pd.DataFrame([
                {"cluster": each["cluster"], "attempt_key": each["attempt_key"], "node": node,
                 "n_gpus": 8, "start_at": START - HOUR, "end_at": None}
                for each in jobs for node in NODES[: int(str(each["n_nodes"]))]
            ]),
            "health_events": events,
            "node_metrics": pd.concat([
                samples("bad", "n3"), samples("sound", None), samples("small", None)
            ]),
        })  # fmt: skip
        building.publish()
    with closing(Store.open(root)) as opened:
        yield opened


def found(rule: Rule, store: Store, cluster: str, hours: float = 1.0) -> Found:
    now = START + hours * HOUR
    watch = Watch(Selection(cluster), START - 90 * 24 * HOUR, now, AlertSettings(), 0.1)
    return rule.find(of_store(store), watch)


def test_a_link_is_told_when_its_errors_come_back_within_a_day(store: Store) -> None:
    (one,) = found(faulty_link.RULE, store, "links", 200).episodes
    assert one.target == rows.target("node", "links", "again")
    assert (one.since_at, one.raised_at) == (START, START + 5 * HOUR)
    assert one.ended_at == START + 30 * HOUR
    assert one.sentence == (
        "again: NVLink or NVSwitch error, 3 times from 5 Jan 2026 00:00 to 5 Jan 2026 06:00 UTC, "
        "by health events"
    )


def test_by_earlier_records_it_is_told_at_the_same_time_and_stands(store: Store) -> None:
    assert found(faulty_link.RULE, store, "links", 4).episodes == ()
    (one,) = found(faulty_link.RULE, store, "links", 7).episodes
    assert (one.raised_at, one.ended_at) == (START + 5 * HOUR, None)


def test_a_machine_that_slows_down_in_a_running_job_is_told(store: Store) -> None:
    (one,) = found(faulty_machine.RULE, store, "bad").episodes
    assert one.named == {"node": "n3", "cluster": "bad"}
    assert one.target == rows.target("node", "bad", "n3")
    assert abs(one.since_at - (START + 12 * MINUTE)) <= 3 * MINUTE
    assert one.since_at < one.raised_at <= START + 30 * MINUTE
    assert one.ended_at is None
    assert one.sentence.startswith("n3 moved away from the others of 6 machines of job 7 by DCGM_")


def test_samples_of_days_ago_say_nothing_of_now(store: Store) -> None:
    (one,) = found(faulty_machine.RULE, store, "bad", hours=48).episodes
    assert one.ended_at is not None


def test_sound_machines_are_not_told_and_too_few_cannot_be_judged(store: Store) -> None:
    sound = found(faulty_machine.RULE, store, "sound")
    assert (sound.episodes, sound.blind) == ((), None)
    assert found(faulty_machine.RULE, store, "small").blind == faulty_machine.NO_JOB
    assert found(faulty_machine.RULE, store, "elsewhere").blind == faulty_machine.NO_JOB


def test_where_no_node_was_watched_links_cannot_be_judged(store: Store) -> None:
    assert found(faulty_link.RULE, store, "bad").blind == faulty_link.BLIND
