"""Ledger: where did every GPU-hour go?"""

from __future__ import annotations

import contextlib
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from analytics.efficiency.goodput import FREE
from app.actions import Options, build_ledger, ingest_files
from app.answers.efficiency import ledger as ledger_answer
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.store import Store
from tests.app.views.conftest import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from analytics.efficiency.goodput import GoodputLedger

PAGE = "views/efficiency/ledger.py"
OUT = ("drained", "down_planned", "down_unplanned")
TABS = ["Over time", "By group", "Lost work", "All buckets"]
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|u|b|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""
FAILURE_LOG = """\
Date,Hardware Identifier,What Failed,Description of Failure,Action Taken
1/1/2026 7:00,node 13,DISK,I/O error on a drive,REPLACE
1/2/2026 8:00,node 14,DIMM,memory errors,REPLACE
"""


@pytest.fixture(scope="module")
def _first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _ingested(tmp_path_factory.mktemp("ledger"), SACCT)


@pytest.fixture
def own_store(_first: Path, tmp_path: Path) -> Path:
    """A real store whose ledger was never asked for: one attempt completed, one lost its node."""
    return shutil.copytree(_first, tmp_path / "store")


@pytest.fixture(scope="module")
def built_store(_first: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its ledger; only to be read."""
    store = shutil.copytree(_first, tmp_path_factory.mktemp("built") / "store")
    build_ledger(store)
    return store


def _ingested(folder: Path, text: str) -> Path:
    (folder / "sacct.txt").write_text(text)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


def _ledger(store: Path) -> GoodputLedger:
    with contextlib.closing(Store.open(store)) as opened:
        return ledger_answer.measured(opened, Selection())


def _says(page: AppTest, words: str) -> bool:
    return any(words in each.value for each in [*page.markdown, *page.caption])


def test_the_answer_comes_first(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page, ledger = open_page(demo_store, PAGE, period="all"), _ledger(demo_store)
    assert not page.exception
    assert f"of {float(f'{ledger.total_gpu_hours:.2e}'):,.0f} GPU-hours" in page.title[0].value
    assert "lost to failures" in page.title[0].value
    assert "synthetic data" in page.caption[0].value
    assert [metric.label for metric in page.metric] == [
        "Productive",
        "Lost: failures, GPU-h",
        "Unexplained, GPU-h",
        "Preempted, GPU-h",
        "Out of service, GPU-h",
        "Idle, GPU-h",
    ]
    assert len(page.get("plotly_chart")) == 2
    assert _says(page, "a checkpoint every")
    assert _says(page, "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME")


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_link_opens(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", ledger_tab=tab)
    assert not page.exception
    assert page.dataframe if tab in TABS[2:] else len(page.get("plotly_chart")) == 2


@pytest.mark.parametrize("group", ["size", "partition", "account"])
def test_the_group_of_a_link_is_followed(
    open_page: Callable[..., AppTest], demo_store: Path, group: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", ledger_tab="By group", group=group)
    assert not page.exception
    assert page.session_state["group"] == group


BEGINS = datetime(2025, 12, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "filters",
    [{"from_at": BEGINS}, {"to_at": BEGINS}, {"min_gpus": 9}, {"partition": "learn"},
     {"account": "vision"}, {"min_gpus": 100_000}],
)  # fmt: skip
def test_every_filter_changes_the_answer_where_jobs_differ(
    demo_store: Path, filters: dict[str, Any]
) -> None:
    with contextlib.closing(Store.open(demo_store)) as store:
        whole, some = (
            ledger_answer.answer(of_store(store), Selection(**chosen)) for chosen in ({}, filters)
        )
        of_cluster = ledger_answer.answer(of_store(store), Selection(cluster="demo", **filters))
    assert some.sentence != whole.sentence
    assert of_cluster.sentence == some.sentence  # all jobs are of the one cluster


def test_the_filters_of_a_link_are_those_of_the_answer(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, PAGE, period="all", cluster="demo", partition="learn", min_gpus="9"
    )
    with contextlib.closing(Store.open(demo_store)) as store:
        chosen = Selection("demo", partition="learn", min_gpus=9)
        said = ledger_answer.answer(of_store(store), chosen).sentence
    assert said.startswith(page.title[0].value.replace("\N{NO-BREAK SPACE}", " "))


@pytest.mark.parametrize(("name", "value"), [("partition", "learn"), ("min_gpus", "9")])
def test_a_filter_that_leaves_jobs_alone_says_so(
    open_page: Callable[..., AppTest], demo_store: Path, name: str, value: str
) -> None:
    page = open_page(demo_store, PAGE, **{"period": "all", name: value})
    assert "that jobs held" in page.title[0].value
    assert _says(page, "only time that jobs held is shown")
    assert "Idle, GPU-h" not in [metric.label for metric in page.metric]


def test_whole_days_are_said_where_the_period_cuts_one(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    assert not _says(open_page(demo_store, PAGE, period="all"), "whole days of UTC")
    cut = {"period": "custom", "from": "2025-12-02T06:00", "to": "2025-12-03T00:00"}
    assert _says(open_page(demo_store, PAGE, **cut), "whole days of UTC")


def test_lost_work_stands_by_cause(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, period="all", ledger_tab="Lost work")
    table = page.dataframe[0].value
    assert {"cause", "attempts", "gpu_hours", "gpu_hours_lower"} <= set(table)
    assert len(table) == len(_ledger(demo_store).losses)


@pytest.mark.slow
def test_the_first_reader_has_it_built(open_page: Callable[..., AppTest], own_store: Path) -> None:
    page = open_page(own_store, PAGE, period="all", ledger_tab="Lost work", account="b")
    assert not page.exception
    assert not page.warning
    assert page.session_state["account"] == "b"
    assert list(page.dataframe[0].value["attempts"]) == [1]


@pytest.mark.slow
def test_without_a_price_the_setting_is_named(
    open_page: Callable[..., AppTest], built_store: Path
) -> None:
    page = open_page(built_store, PAGE, period="all", ledger_tab="All buckets")
    assert "Cost of the losses" not in [metric.label for metric in page.metric]
    assert _says(page, "gpu_hour_price")


@pytest.mark.slow
def test_a_price_shows_what_the_losses_cost(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    (own_store / "site.toml").write_text('[cluster.c]\ngpu_hour_price = 2.0\ncurrency = "EUR"\n')
    page = open_page(own_store, PAGE, period="all", ledger_tab="All buckets")
    assert page.metric[-1].label == "Cost of the losses"
    assert page.metric[-1].value.endswith(" EUR")
    table = page.dataframe[0].value.set_index("name")
    hours = _ledger(own_store).bucket("productive")
    assert hours is not None
    assert hours.cost == pytest.approx(2.0 * hours.gpu_seconds / 3600)
    assert table.loc["productive", "cost"] == pytest.approx(hours.cost, rel=0.01)


def test_another_writer_is_a_notice(open_page: Callable[..., AppTest], own_store: Path) -> None:
    with writer(own_store):
        page = open_page(own_store, PAGE, period="all")
    assert not page.exception
    assert "could not be built" in page.warning[0].value
    assert page.code[-1].value.startswith("faultline ledger --store")


def test_an_empty_store_says_what_to_do(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "holds no data yet" in page.title[0].value


def test_records_without_gpus_say_what_would_fill_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    store = _ingested(tmp_path, SACCT.replace("gres/gpu=8", "cpu=8"))
    page = open_page(store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "No job of c states GPUs"
    assert whole(page).startswith("No job of c states GPUs: time is counted in node-hours")
    assert _says(page, "No attempt says how many GPUs it had")
    assert page.code[0].value.startswith("sacct")


def test_failures_without_jobs_say_what_would_fill_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(FAILURE_LOG)
    store = tmp_path / "logged"
    ingest_files(store, "failure-log", [str(tmp_path / "log.csv")], Options(mapping="pnnl"))
    page = open_page(store, PAGE, period="all")
    assert not page.exception
    assert _says(page, "Failures of nodes are known here, but no jobs")


def test_a_selection_without_jobs_is_told_from_a_store_without_gpus(
    open_page: Callable[..., AppTest], built_store: Path
) -> None:
    page = open_page(built_store, PAGE, period="all", min_gpus="999")
    assert _says(page, "No GPU-time of a job is recorded in this selection")


def test_time_out_of_service_is_unknown_without_a_record_of_nodes_states(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    later = SACCT.replace("|2026-01-02T00:00:00|2026-01-03", "|2026-01-02T06:00:00|2026-01-03")
    store = _ingested(tmp_path, later)
    build_ledger(store)
    ledger = _ledger(store)
    bounds = {each.bucket: (each.gpu_hours.lower, each.gpu_hours.upper) for each in ledger.buckets}
    assert {bounds[name] for name in (*OUT, "queue_hold")} == {(0.0, 48.0)}
    assert bounds["idle"] == (0.0, 0.0)
    assert sum(each.gpu_seconds for each in ledger.buckets) == ledger.total_gpu_seconds
    page = open_page(store, PAGE, period="all")
    assert {metric.label: metric.value for metric in page.metric}["Out of service, GPU-h"] == (
        "unknown"
    )
    assert _says(page, "No record says when nodes were out of service")


@pytest.mark.slow
def test_of_several_clusters_only_those_without_a_record_of_nodes_states_are_bounded(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    late = SACCT.replace("|2026-01-02T00:00:00|2026-01-03", "|2026-01-02T06:00:00|2026-01-03")
    store = _ingested(tmp_path, late + "".join(late.replace("|c|", "|d|").splitlines(True)[1:]))
    (tmp_path / "events.txt").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "d|n1|2026-01-02T02:00:00|2026-01-02T04:00:00|DOWN*|Not responding|slurm(64030)\n"
    )
    options = Options(timezone="UTC")
    ingest_files(store, "sacctmgr-events", [str(tmp_path / "events.txt")], options)
    build_ledger(store)
    with contextlib.closing(Store.open(store)) as opened:
        alone = ledger_answer.measured(opened, Selection(cluster="d"))
    ledger = _ledger(store)
    assert (alone.without_states, ledger.without_states) == ((), ("c",))
    hours = {each.bucket: each.gpu_hours for each in ledger.buckets}
    recorded = {each.bucket: each.gpu_hours for each in alone.buckets}
    assert sum(recorded[name].value for name in OUT) == 16.0
    for name in OUT:
        assert hours[name].lower == hours[name].value == recorded[name].upper
        assert hours[name].upper == recorded[name].value + 48.0
    assert sum(hours[name].upper for name in FREE) == 48.0 + 32.0
    assert sum(hours[name].lower for name in FREE) == 32.0
    page = open_page(store, PAGE, period="all")
    assert _says(page, "No record says when nodes of c were out of service")
    assert any("unknown of c" in button.label for button in page.button)


def test_lost_work_opens_its_attempts(open_page: Callable[..., AppTest], built_store: Path) -> None:
    page = open_page(built_store, PAGE, period="all", ledger_tab="Lost work")
    assert list(page.dataframe[0].value["cause_name"]) == ["node_lost"]


@pytest.mark.parametrize("metric", ["Productive", "Idle, GPU-h", "Out of service, GPU-h"])
def test_every_headline_opens_its_rows(
    open_page: Callable[..., AppTest], demo_store: Path, metric: str
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    page.button(key=f"rows_{metric}").click().run()
    assert not page.exception
    assert {"day", "gpu_hours", "lower_gpu_hours"} <= set(page.dataframe[0].value)
