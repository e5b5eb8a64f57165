"""A page names a period only where what it shows goes by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PERIOD = {"period": "custom", "from": "2025-12-03T03:07", "to": "2025-12-09T04:09"}
BY_TIME = "SELECT start_at, n_gpus FROM jobs WHERE start_at >= $from_at"
NOT_BY_TIME = "SELECT start_at, n_gpus FROM jobs WHERE n_gpus >= $min_gpus"
CASES = [
    ("views/explore/sql.py", {"sql": NOT_BY_TIME, "sql_tab": "Chart"}, False),
    ("views/explore/sql.py", {"sql": BY_TIME, "sql_tab": "Chart"}, True),
    ("views/training/stragglers.py", {}, False),
    ("views/nodes/diagnose.py", {}, False),
    ("views/nodes/diagnose.py", {"diagnose_tab": "Links"}, False),
    ("views/explore/find.py", {"find": "gpu"}, False),
    ("views/reliability/mttf.py", {}, True),
    ("views/nodes/lemons.py", {"lemons_tab": "Repairs"}, True),
]


def _texts(page: AppTest) -> list[str]:
    """What is read on a page, in its figures too."""
    shown = [*page.title, *page.caption, *page.markdown]
    figures = [chart.proto.spec for chart in page.get("plotly_chart")]
    return [each.value for each in shown] + figures


@pytest.mark.slow
@pytest.mark.parametrize(("name", "address", "by_time"), CASES)
def test_a_period_is_named_where_it_counts(
    open_page: Callable[..., AppTest],
    demo_store: Path,
    name: str,
    address: dict[str, str],
    *,
    by_time: bool,
) -> None:
    page = open_page(demo_store, name, **PERIOD, **address)
    if "sql" in address:
        page.button(key="sql_run").click().run()
        while "sql_job" in page.session_state:
            page.run()
        assert page.get("plotly_chart")
    assert not page.exception
    texts = [text for text in _texts(page) if "3 Dec 2025 03:07" in text]
    assert bool(texts) == by_time, texts
