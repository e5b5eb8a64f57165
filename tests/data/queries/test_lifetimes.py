"""Lives of nodes: a failure counts only with an attempt whose nodes are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from data.filters import Selection
from data.queries.lifetimes import node_lives

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def test_failures_of_attempts_on_unknown_nodes_are_no_lives(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of()
    common: dict[str, Any] = {"cluster": "cpu", "n_gpus": 0, "start_at": BASE, "end_at": BASE + DAY}
    rows.job("good", n_nodes=1, **common)
    for n, n_nodes in enumerate((None, 0, 1)):
        rows.job(f"lost{n}", state="NODE_FAIL", **common | {"n_nodes": n_nodes})
    lives = node_lives(store_of(rows), Selection())
    assert lives["attempts"].tolist() == [2]
    assert lives["nodes"].tolist() == [2.0]
    assert lives["failures"].tolist() == [1.0]
