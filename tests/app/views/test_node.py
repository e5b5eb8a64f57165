"""Node: outages, health events, tickets and the jobs that ran on it."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.widgets.page_head import KNOWN
from data.state import State
from data.store import Store
from tests.app.views.conftest import behind, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/failures/node.py"
TABS = ["Jobs", "Events", "Outages", "Tickets", "Facts", "Metrics", "What people say"]
SACCT = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|{0}|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture(scope="module")
def two_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two clusters that both have a node n1, and nothing but jobs; only to be read."""
    tmp_path = tmp_path_factory.mktemp("clusters")
    for cluster in ("a", "b"):
        (tmp_path / f"{cluster}.txt").write_text(SACCT.format(cluster))
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    ingest_files(tmp_path / "store", "sacct", files, Options())
    return tmp_path / "store"


def _busy_node(store: Path) -> str:
    """The node that ended most attempts."""
    opened = Store.open(store)
    ((name,),) = opened.rows(
        "SELECT node FROM failures WHERE node IS NOT NULL AND method = 'health_event' "
        "GROUP BY node ORDER BY count(*) DESC, node LIMIT 1"
    )
    opened.close()
    return name


def test_without_a_node_those_out_of_service_can_be_picked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "Which node?"


def test_a_link_shows_what_happened_on_one_axis(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _busy_node(demo_store)
    page = open_page(demo_store, PAGE, period="all", node=name, cluster="demo")
    assert not page.exception
    assert re.match(rf"{name} (is a lemon[^:]*: it )?was out of service ", page.title[0].value)
    assert [metric.label for metric in page.metric] == [
        "Times out of service",
        "Critical or fatal events",
        "Attempts ended by this node",
        "Tickets",
    ]
    assert int(page.metric[2].value) >= 1
    assert len(page.get("plotly_chart")) == 1
    assert "Cluster demo · " in behind(page, KNOWN)
    assert any("](incident?" in text.value for text in page.markdown)


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_link_opens(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    name = _busy_node(demo_store)
    assert not open_page(demo_store, PAGE, period="all", node=name, node_tab=tab).exception


@pytest.mark.parametrize("period", ["24h", "7d", "28d", "custom"])
def test_every_period_of_a_link_is_followed(
    open_page: Callable[..., AppTest], demo_store: Path, period: str
) -> None:
    page = open_page(demo_store, PAGE, period=period, node=_busy_node(demo_store))
    assert not page.exception
    assert page.metric


def test_an_unknown_node_is_a_notice_that_says_what_was_meant(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _busy_node(demo_store)
    page = open_page(demo_store, PAGE, period="all", node=f"{name}9")
    assert not page.exception
    assert "did you mean demo/gpu" in page.warning[0].value


def test_a_name_that_several_clusters_have_asks_for_one(
    open_page: Callable[..., AppTest], two_clusters: Path
) -> None:
    page = open_page(two_clusters, PAGE, period="all", node="n1")
    assert page.warning[0].value == "node 'n1' is in a, b: choose one cluster"
    chosen = open_page(two_clusters, PAGE, period="all", node="n1", cluster="b")
    assert not chosen.exception
    assert not chosen.warning
    assert chosen.title[0].value.startswith("Nothing was seen of n1 in this period")
    assert "Cluster b" in behind(chosen, KNOWN)


def test_a_period_without_any_record_says_what_to_do(
    open_page: Callable[..., AppTest], two_clusters: Path
) -> None:
    page = open_page(
        two_clusters, PAGE, period="custom", to="2025-06-01T00:00", node="n1", cluster="a"
    )
    assert not page.exception
    assert any("Nothing was recorded of this node" in text.value for text in page.markdown)


@pytest.mark.slow
def test_what_people_say_of_a_node_stands_on_its_page(
    open_page: Callable[..., AppTest], demo_store: Path, tmp_path: Path
) -> None:
    store, name = shutil.copytree(demo_store, tmp_path / "store"), _busy_node(demo_store)
    page = open_page(store, PAGE, period="all", node=name, node_tab="What people say")
    page.selectbox(key="said_status").set_value("acknowledged")
    next(button for button in page.button if button.label == "Save").click().run()
    assert not page.exception
    assert any("status acknowledged" in caption.value for caption in page.caption)
    assert State(store).history(f"node:demo/{name}")[0].value == "acknowledged"


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE, node="n1")
    assert not page.exception
    assert "faultline ingest" in page.code[0].value


@pytest.mark.slow
def test_metrics_of_the_period_stand_by_gpu(
    open_page: Callable[..., AppTest], two_clusters: Path, tmp_path: Path
) -> None:
    noon = 1767268800  # 2026-01-01 12:00 UTC
    lines = [
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="{gpu}",Hostname="n1"}} {value} {noon + 60 * minute}000'
        for gpu, minute, value in ((0, 0, 40), (0, 1, 44), (1, 0, 90))
    ]
    (tmp_path / "dcgm.txt").write_text("\n".join(lines))
    store = shutil.copytree(two_clusters, tmp_path / "store")
    ingest_files(store, "dcgm", [str(tmp_path / "dcgm.txt")], Options(cluster="a"))
    tab = {"period": "all", "node": "n1", "node_tab": "Metrics"}
    frame = open_page(store, PAGE, cluster="a", **tab).dataframe[-1]
    shown = frame.value[["gpu", "minimum", "mean", "maximum", "n"]]
    assert shown.to_numpy().tolist() == [["0", 40, 42, 44, 2], ["1", 90, 90, 90, 1]]
    nothing = open_page(store, PAGE, cluster="b", **tab)
    assert any("No metric of this node" in text.value for text in nothing.markdown)


@pytest.mark.slow
def test_a_host_without_jobs_opens_with_its_events(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    """Of a store of kernel logs alone."""
    lines = "".join(
        f"2026-01-01T0{n}:00:00+00:00 login1 kernel: INFO: task bash:1 blocked for more than 120 "
        "seconds.\n"
        for n in range(3)
    )
    (tmp_path / "kernel.log").write_text(lines)
    ingest_files(tmp_path / "store", "kernel-log", [str(tmp_path / "kernel.log")], Options())
    page = open_page(tmp_path / "store", PAGE, node="login1", period="all")
    assert not page.exception
    assert page.title[0].value.startswith("login1 had 3 health events")
    assert "no job" in whole(page)
    assert page.metric[2].value == "unknown"
    assert len(page.dataframe[0].value) == 3
    overview = open_page(tmp_path / "store", period="all")
    assert any("Look after host login1" in text.value for text in overview.markdown)
