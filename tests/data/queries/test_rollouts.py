"""What was changed on a cluster: who took a new driver, which nodes came and went, new checks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from data.filters import Selection
from data.queries.rollouts import rollouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def fact(node: str, key: str, value: str, day: float, **values: Any) -> dict[str, Any]:
    return {"cluster": "gpu", "node": node, "key": key, "value": value,
            "from_at": BASE + day * DAY, "to_at": None, "gpu": None} | values  # fmt: skip


def node(name: str, first: float, last: float | None = None) -> dict[str, Any]:
    return {"cluster": "gpu", "node": name, "first_seen_at": BASE + first * DAY,
            "last_seen_at": None if last is None else BASE + last * DAY,
            "source": "inventory"}  # fmt: skip


def event(check: str, day: float) -> dict[str, Any]:
    return {"cluster": "gpu", "event_id": f"{check}{day}", "node": "n0", "source": "health_check",
            "check_name": check, "severity": "warning", "observed_at": BASE + day * DAY}  # fmt: skip


def at(day: int) -> date:
    return (BASE + day * DAY).date()


@pytest.fixture
def store(rows_of: Callable[..., Any], store_of: Callable[[Any], Store]) -> Store:
    """Ten nodes. n0 to n4 take driver 550, of n4 only the GPUs say so; n5 by its inventory; n6 was
    new with it. n8 and n9 came later, n7 went. check-b is new, check-a was there before.
    """
    rows = rows_of(gpus_per_node={"gpu": 8})
    rows.nodes = [
        *(node(f"n{k}", 0) for k in range(7)),
        node("n7", 0, 20),
        node("n8", 30),
        node("n9", 30.4),
    ]
    rows.job("whole", ("n0",), start_at=BASE, end_at=BASE + 40 * DAY)
    for k in range(4):
        rows.node_facts += [
            fact(f"n{k}", "Driver", "535", 0),
            fact(f"n{k}", "driver", "550", 10 + k),
        ]
        rows.node_facts += [
            fact(f"n{k}", "serial", f"s{k}", 0),
            fact(f"n{k}", "serial", f"t{k}", 9),
        ]
    for gpu in ("0", "1"):
        rows.node_facts += [fact("n4", "driver", "535", 0, gpu=gpu),
                            fact("n4", "driver", "550", 14, gpu=gpu)]  # fmt: skip
    rows.node_facts.append(fact("n6", "driver", "550", 0))
    rows.node_inventory = [
        {"cluster": "gpu", "node": name, "observed_at": BASE + day * DAY, "driver": driver,
         "source": "scontrol-nodes"}
        for name, day, driver in (("n5", 1, "535"), ("n5", 15, "550"), ("n0", 25, "560"))
    ]  # fmt: skip
    rows.health_events = [event("check-a", 0), event("check-a", 30), event("check-b", 22)]
    return store_of(rows)


def test_a_roll_out_has_its_nodes_and_the_days_of_most_of_them(store: Store) -> None:
    found = {(kind, value): row for _, kind, _, value, *row in rollouts(store, Selection())}
    assert found["driver", "550"] == [6, 10, at(10), at(15)]
    assert ("driver", "535") not in found, "what a node began with was rolled out on none"
    assert ("driver", "560") not in found, "an inventory is asked only of nodes without facts"
    assert not any(kind == "serial" for kind, _ in found)
    before = {row[2] for row in rollouts(store, Selection()) if row[1] == "driver"}
    assert before == {"535"}


def test_nodes_that_came_and_went_and_checks_that_are_new(store: Store) -> None:
    found = {(kind, value): row for _, kind, _, value, *row in rollouts(store, Selection())}
    assert found["nodes added", str(at(30))] == [2, 10, at(30), at(30)]
    assert found["nodes removed", str(at(20))] == [1, 10, at(20), at(20)]
    assert found["check", "check-b"] == [None, None, at(22), at(22)]
    assert ("check", "check-a") not in found


def test_another_cluster_is_another(store: Store) -> None:
    assert rollouts(store, Selection(cluster="other")) == []


def test_a_node_that_is_listed_anew_neither_came_nor_went(
    rows_of: Callable[..., Any], store_of: Callable[[Any], Store]
) -> None:
    rows = rows_of(gpus_per_node={"gpu": 8})
    rows.nodes = [
        row
        for k in range(4)
        for row in (node(f"n{k}", 0, 20) | {"rack": "r1"}, node(f"n{k}", 20) | {"rack": "r2"})
    ]
    rows.job("whole", ("n0",), start_at=BASE, end_at=BASE + 40 * DAY)
    assert not any(row[1].startswith("nodes ") for row in rollouts(store_of(rows), Selection()))
