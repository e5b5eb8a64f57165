"""Steps of nodes: what held when it failed, at the edges of days and of the period, and by level."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from data.filters import Selection
from data.queries import node_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def rows_of_step(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("node", "step", "level", "age")
    return [*zip(*(found[name].tolist() for name in names), strict=True)]


@pytest.mark.parametrize("base", [BASE, datetime(1968, 6, 3, tzinfo=UTC)])
@pytest.mark.parametrize("days", [1, 7])
def test_a_failure_at_midnight_is_of_the_step_in_which_its_job_ran(
    base: datetime, days: int, store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of()
    for n in range(4):
        end = base + (n + 1) * 24 * HOUR
        rows.job(f"j{n}", ("n0",), state="NODE_FAIL", failed_node="n0", start_at=end - 24 * HOUR,
                 end_at=end)  # fmt: skip
    store = store_of(rows)
    ran = node_steps.steps(store, Selection(), "driver", days=days)
    struck = node_steps.incidents(store, Selection(), "driver", days=days)
    assert ran["exposure"].sum() * days == pytest.approx(4.0)
    assert {*rows_of_step(struck)} <= {*rows_of_step(ran)}
    assert struck["inside"].all()


def test_a_step_is_split_where_a_fact_changes(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of()
    rows.job("j", ("n0",), state="NODE_FAIL", failed_node="n0", start_at=BASE,
             end_at=BASE + 18 * HOUR)  # fmt: skip
    for value, at in (("1", BASE - HOUR), ("2", BASE + 6 * HOUR)):
        rows.node_facts.append(
            {"cluster": "gpu", "node": "n0", "key": "driver", "value": value, "from_at": at}
        )
    store = store_of(rows)
    ran = node_steps.steps(store, Selection(), "driver", days=1)
    held = dict(zip(ran["level"].tolist(), (24 * ran["exposure"]).tolist(), strict=True))
    assert held == pytest.approx({"1": 6.0, "2": 12.0})
    struck = node_steps.incidents(store, Selection(), "driver", days=1)
    assert struck["level"].tolist() == ["2"]
    assert node_steps.levels(store, Selection(), "driver") == [("gpu", "n0", "2")]
    early = Selection(to_at=BASE + HOUR)
    assert node_steps.levels(store, early, "driver") == [("gpu", "n0", "1")]


def test_what_failed_before_the_period_is_no_failure_of_it(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of()
    for n, hour in enumerate((2, 8)):
        rows.job(f"j{n}", ("n0",), state="NODE_FAIL", failed_node="n0",
                 start_at=BASE + (hour - 1) * HOUR, end_at=BASE + hour * HOUR)  # fmt: skip
    period = Selection(from_at=BASE + 6 * HOUR)
    struck = node_steps.incidents(store_of(rows), period, "driver", days=1)
    assert struck["inside"].tolist() == [False, True]
