"""Repairs of a store that the demo cannot make, counted by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.nodes import repairs
from app.ask import of_store
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
EVERYTHING = Selection()


def ticket(
    number: str, node: str, opened: float, closed: float | None, **of: Any
) -> dict[str, Any]:
    closed_at = None if closed is None else BASE + closed * DAY
    return {"cluster": "gpu", "ticket_id": number, "node": node, "opened_at": BASE + opened * DAY,
            "closed_at": closed_at, "action": "replaced the GPU", "component": "gpu",
            "vendor": "Acme", "serial": None} | of  # fmt: skip


def outage(node: str, start: float, end: float | None, **of: Any) -> dict[str, Any]:
    end_at = None if end is None else BASE + end * DAY
    return {"cluster": "gpu", "node": node, "start_at": BASE + start * DAY, "end_at": end_at,
            "state": "DOWN", "reason": "x", "planned": False} | of  # fmt: skip


@pytest.fixture
def store(rows_of: Callable[..., Any], store_of: Callable[[Any], Store]) -> Store:
    """Three nodes of 8 GPUs. n0 fails on days 1, 10 and 20, is drained after each, and in tickets
    its name stands in other case; n1 is maintained as planned; n2 has a ticket that nobody closed.
    """
    rows = rows_of(gpus_per_node={"gpu": 8})
    for at, day in enumerate((0, 9, 19)):
        rows.job(
            f"f{at}", ("n0",), state="NODE_FAIL", failed_node="n0", start_at=BASE + day * DAY,
            end_at=BASE + (day + 1) * DAY,
        )  # fmt: skip
        rows.node_events.append(outage("n0", day + 1, day + 2, planned=None))
    rows.job("long", ("n1",), start_at=BASE, end_at=BASE + 50 * DAY)
    rows.job("other", ("n2",), start_at=BASE, end_at=BASE + 50 * DAY)
    rows.node_events += [outage("n1", 50, 51, planned=True), outage("n2", 51, None)]
    rows.tickets = [
        ticket("T1", "N0", 1.2, 8, serial="G-1"),
        ticket("T2", "n0.example.com", 1.5, 1.8, action="Rebooted"),
        ticket("T3", "n0", 10.5, 12, action="replaced the gpu."),
        ticket("T4", "n2", 3, None),
        ticket("T5", "", 3, 4) | {"node": None},
    ]
    rows.health_events = [
        {"cluster": "gpu", "event_id": f"e{day}", "node": "n0", "source": "kernel", "gpu": "0",
         "check_name": "xid", "xid": 79, "severity": "fatal", "observed_at": BASE + day * DAY}
        for day in (10, 20)
    ]  # fmt: skip
    rows.node_facts = [
        {"cluster": "gpu", "node": "n0", "gpu": "0", "key": "serial", "value": "GPU-77",
         "from_at": BASE, "to_at": None}
    ]  # fmt: skip
    return store_of(rows)


def test_repairs_of_a_node_named_in_several_ways(store: Store) -> None:
    told = repairs.answer(of_store(store), EVERYTHING)
    found = told.record
    assert (found["repairs"], found["without_end"]) == (3, 2)  # planned work is none
    actions = {each["action"]: each for each in found["actions"]}
    assert set(actions) == {"Rebooted + replaced the GPU", "replaced the GPU", "no ticket"}
    both = actions["Rebooted + replaced the GPU"]
    assert (both["repairs"], both["failed_again"]) == (1, 1)
    assert both["exposure_node_days"] == pytest.approx(1.0)  # back on day 2, ran from 9 to 10
    assert actions["no ticket"]["failed_again"] == 0
    (node,) = found["failed_again"]
    assert (node["node"], node["did_not_hold"], node["for_vendor"]) == ("n0", 2, True)
    assert "gpu G-1" in node["serials"]
    assert "GPU 0 GPU-77" in node["serials"]
    assert node["vendors"] == "Acme"
    assert "T1, T2" in node["evidence"]
    assert "XID 79" in node["observations"]
    assert [each["days"] for each in node["returns"]] == pytest.approx([8.0, 9.0])
    assert any("without an end" in note for note in told.notes)
    assert any("1 return to service without a ticket" in note for note in told.notes)


def test_the_horizon_and_the_period_change_what_is_judged(store: Store) -> None:
    ask = of_store(store)
    short = repairs.answer(ask, EVERYTHING, horizon_days=7).record
    assert short["failed_again"] == []
    assert sum(each["exposure_node_days"] for each in short["actions"]) == pytest.approx(0.0)
    late = repairs.answer(ask, Selection(from_at=BASE + 10 * DAY)).record
    assert late["repairs"] == 2
    other = repairs.answer(ask, Selection(to_at=BASE + 0.5 * DAY))
    assert [block.key for block in other.blocks] == ["actions"]
    assert "No return to service" in other.sentence


def test_repairs_without_a_failure_that_names_a_node_are_not_judged(
    rows_of: Callable[..., Any], store_of: Callable[[Any], Store]
) -> None:
    rows = rows_of()
    rows.tickets = [ticket("T1", "n0", 1, 2)]
    told = repairs.answer(of_store(store_of(rows)), EVERYTHING)
    assert "no failure names a node" in told.sentence
    assert told.numbers == ()
    assert "Whether repairs hold cannot be judged: no failure could be seen" in told.sentence
    assert told.blocks[0].commands[-1].startswith("faultline ingest sacctmgr-events")
