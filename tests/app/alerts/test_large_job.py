"""From how many GPUs on a failed job is told: as a site states, else by its cluster's size."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.alerts import asked
from app.alerts.rule import Watch
from app.alerts.rules import large_job
from app.ask import of_store
from app.reports.redaction import names, redacting
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2026, 1, 5, tzinfo=UTC)
NODES = {"listed": 300, "small": 20}
"""Nodes of eight GPUs in an inventory; of the third cluster nobody knows any."""
SIZES = (64, 128, 599, 600)


def failed(cluster: str, gpus: int) -> dict[str, Any]:
    return {
        "cluster": cluster, "attempt_key": f"{cluster}{gpus}", "job_id": f"{gpus}", "user": "ann",
        "state": "NODE_FAIL", "failed_node": "n1", "n_gpus": gpus, "submit_at": START,
        "start_at": START, "end_at": START + timedelta(hours=gpus),
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("large") / "store"
    nodes = [{"cluster": cluster, "node": f"n{n}", "gpus": 8, "source": "inventory",
              "first_seen_at": START}
             for cluster, n_nodes in NODES.items() for n in range(n_nodes)]  # fmt: skip
    jobs = [failed(cluster, gpus) for cluster in (*NODES, "unknown") for gpus in SIZES]
    events = [{"cluster": cluster, "event_id": f"{cluster}{day}", "node": "n1", "source": "kernel",
               "severity": "info", "observed_at": START + timedelta(days=day)}
              for cluster in (*NODES, "unknown") for day in range(30)]  # fmt: skip
    tables = {"jobs": jobs, "nodes": nodes, "health_events": events}
    with writer(root) as building:
        building.load({name: pd.DataFrame(rows) for name, rows in tables.items()})
        building.publish()
    with closing(Store.open(root)) as opened:
        yield opened


def told(store: Store, cluster: str, stated: int | None = None) -> list[str]:
    """Jobs that are told."""
    watch = Watch(Selection(cluster), START, START + timedelta(days=30),
                  AlertSettings(large_gpus=stated), 0.0)  # fmt: skip
    found = large_job.RULE.find(of_store(store), watch)
    assert found.blind is None
    return [each.named["job"] for each in found.episodes]


def test_a_job_on_a_quarter_of_the_cluster_is_large(store: Store) -> None:
    assert told(store, "listed") == ["600"]


def test_of_a_small_cluster_or_one_of_unknown_size_it_is_large_from_128_gpus_on(
    store: Store,
) -> None:
    assert told(store, "small") == ["128", "599", "600"]
    assert told(store, "unknown") == ["128", "599", "600"]


def test_what_site_toml_states_counts(store: Store) -> None:
    assert told(store, "listed", 128) == ["128", "599", "600"]
    assert told(store, "unknown", 599) == ["599", "600"]


def test_a_redacted_back_test_tells_the_same_and_names_nobody(store: Store) -> None:
    now = START + timedelta(days=30)
    ask = of_store(store)
    plain = ask(asked.past_of, large_job.RULE, now, "small")
    shown = redacting(ask, names(store, redact=True))(asked.past_of, large_job.RULE, now, "small")
    assert [one.episode.owner for one in plain.told] == ["ann"] * 3
    hidden = names(store, redact=True).user("ann")
    assert [one.episode.owner for one in shown.told] == [hidden] * 3
    assert "ann" not in str(asked.of_past(shown))
