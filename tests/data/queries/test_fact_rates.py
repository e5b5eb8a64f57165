"""Failures and exposure by fact, against what is counted by hand and by other queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.reliability import rate_ratios
from app.ask import of_store
from data.filters import Selection
from data.queries import fact_rates
from data.queries.exposure import node_exposure

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EVERYTHING = Selection()


def fact(node: str, key: str, value: str, day: float | None, **values: Any) -> dict[str, Any]:
    from_at = None if day is None else BASE + day * DAY
    return {"cluster": "gpu", "node": node, "key": key, "value": value, "from_at": from_at,
            "to_at": None, "gpu": None} | values  # fmt: skip


@pytest.fixture
def store(rows_of: Callable[..., Any], store_of: Callable[[Any], Store]) -> Store:
    """Four nodes of 8 GPUs, ten days. n0 gets driver 550 at noon of day 4; of n1 only the GPUs say
    theirs; n2 is named in other case and says no time; n3 has an inventory alone.
    """
    rows = rows_of(gpus_per_node={"gpu": 8})
    for node in range(4):
        end_at = BASE + 10 * DAY
        rows.job(f"whole{node}", (f"n{node}",), start_at=BASE, end_at=end_at)
    failing = {"state": "NODE_FAIL", "n_gpus": 16, "failed_node": "n0"}
    rows.job("early", ("n0", "n3"), start_at=BASE, end_at=BASE + DAY, **failing)
    rows.job("late", ("n0", "n3"), start_at=BASE + 8 * DAY, end_at=BASE + 9 * DAY, **failing)
    rows.node_facts = [
        fact("n0", "Driver", "535", -5),
        fact("n0", "driver", "550", 4.5),
        fact("n1", "driver", "535", -5, gpu="0"),
        fact("n1", "driver", "550", -5, gpu="1", to_at=BASE + 2 * DAY),
        fact("N2", "driver", "535", None),
        fact("N2", "batch", "b1", -5),
    ]
    rows.node_inventory = [
        {"cluster": "gpu", "node": "n3", "observed_at": BASE + day * DAY, "source": "scontrol-nodes",
         "driver": driver, "gpu_model": "h100"}
        for day, driver in ((1, "535"), (6, "570"))
    ]  # fmt: skip
    rows.nodes = [
        {"cluster": "gpu", "node": "n0", "first_seen_at": BASE - 88 * DAY, "source": "inventory",
         "rack": "r1"}
    ]  # fmt: skip
    return store_of(rows)


def by(store: Store, key: str, *names: str, selection: Selection = EVERYTHING) -> dict[Any, Any]:
    """Sums of failures and exposure by some columns."""
    rows, sums = fact_rates.rows(store, selection, key), dict[Any, list[float]]()
    for at, n in enumerate(rows["failures"].tolist()):
        of = sums.setdefault(tuple(rows[name][at] for name in names), [0, 0.0])
        of[0] += n
        of[1] += float(rows["exposure_node_days"][at])
    return {key: (n, pytest.approx(held)) for key, (n, held) in sums.items()}


def test_exposure_splits_where_the_driver_changes(store: Store) -> None:
    assert by(store, "driver", "node", "level") == {
        ("n0", "535"): (1, 5.5),  # ten days, and a day of a job on two nodes, cut at day 4.5
        ("n0", "550"): (1, 6.5),
        ("n1", "535 + 550"): (0, 2.0),
        ("n1", "535"): (0, 8.0),
        ("n2", None): (0, 10.0),
        ("n3", None): (0, 2.0),
        ("n3", "535"): (0, 5.0),
        ("n3", "570"): (0, 5.0),
    }
    assert by(store, "batch", "level") == {("b1",): (0, 10.0), (None,): (2, 34.0)}

    # a model is taken to have been there before somebody looked
    assert by(store, "gpu_model", "node", "level")[("n3", "h100")] == (0, 12.0)
    found = by(store, "rack", "level", "age", "size")
    assert found[("r1", "under 3 months", "1 node")] == (0, 3.0)
    assert found[("r1", "under 3 months", "2 to 8 nodes")] == (1, 1.0)
    assert found[("r1", "3 to 12 months", "1 node")] == (0, 7.0)
    assert found[("r1", "3 to 12 months", "2 to 8 nodes")] == (1, 1.0)


CUT = [
    (Selection(from_at=BASE + 8 * DAY), 1, 10.0),
    (Selection(to_at=BASE + 12 * HOUR), 0, 3.0),
    (Selection(min_gpus=9), 2, 4.0),
    (Selection(cluster="gpu"), 2, 44.0),
    (Selection(partition="b"), 0, 0.0),
]


def test_filters_cut_and_what_is_not_known_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for selection, failures, days in CUT:
        rows = fact_rates.rows(store, selection, "driver")
        held = float(rows["exposure_node_days"].sum())
        assert (int(rows["failures"].sum()), held) == (failures, pytest.approx(days)), selection

    # facts without a time are left out
    assert {key: n for key, n, _ in fact_rates.known(store, EVERYTHING)} == {
        "driver": 3, "batch": 1, "gpu_model": 1, "rack": 1,
    }  # fmt: skip
    assert rate_ratios.choices(store, EVERYTHING) == ("driver",)
    ask = of_store(store)
    driver = rate_ratios.answer(ask, EVERYTHING, "Driver")
    assert "Too few nodes" in driver.sentence
    assert any("On 3 nodes the driver changed" in note for note in driver.notes)
    assert any("not known: left out" in note for note in driver.notes)
    assert (
        "All nodes whose batch is known have b1"
        in rate_ratios.answer(ask, EVERYTHING, "batch").sentence
    )
    absent = rate_ratios.answer(ask, EVERYTHING, "firmware")
    assert [block.key for block in absent.blocks] == ["rate_ratios"]
    monkeypatch.setattr(rate_ratios, "MOST_LEVELS", 2)
    many = rate_ratios.answer(ask, EVERYTHING, "driver")
    assert many.sentence == "There are 4 values of driver; up to 2 are compared."
    assert "Known are driver" in absent.blocks[0].remedy  # type: ignore[union-attr]


def test_exposure_of_nodes_is_that_of_another_query(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    store = store_of(random_rows(4))
    rows = fact_rates.rows(store, EVERYTHING, "rack")
    found: dict[Any, float] = {}
    for at, held in enumerate(rows["exposure_node_days"].tolist()):
        if held:
            key = (rows["cluster"][at], rows["node"][at])
            found[key] = found.get(key, 0.0) + held
    other = node_exposure(store, EVERYTHING)
    expected = dict(
        zip(
            zip(other["cluster"], other["node"], strict=True),
            other["exposure_node_days"],
            strict=True,
        )
    )
    assert found == pytest.approx(expected)
