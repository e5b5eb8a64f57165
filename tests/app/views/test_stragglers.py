"""Stragglers: who slows the run, what would fixing it give?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.actions import Options, ingest_files
from app.answers.training import fix, fleet
from app.ask.cached import ask
from data.filters import Selection
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from tests.app.views.conftest import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/training/stragglers.py"
TABS = ["Causes and parts", "Steps and workers", "Fix and timelines", "All traces", "Add a trace"]
META = """trial_name: own <b>run</b>
run_id: 3
dp_size: 4
dsp_size: 1
pp_size: 2
tp_size: 4
vpp_size: 1
world_size: 32
"""


def _store(
    folder: Path, *, slow: float = 2.0, launch: float = 0.0, meta: str | None = META
) -> Path:
    """A store of one trace, without jobs; worker dp 1, stage 0 computes `slow` times as long."""
    forward = np.full((3, 4, 2, 1, 4), 0.1)
    forward[:, 1, 0] *= slow
    shape = TraceShape(dp=4, pp=2, micro_batches=4, steps=(1, 2, 5), tp=4)
    costs = TraceCosts(forward=forward, backward=2 * forward, launch=launch)
    columns = trace_columns(shape, costs)
    columns["optype"] = columns["optype"].astype(str).tolist()
    pq.write_table(pa.table(columns), folder / "trace.parquet")
    stated = None
    if meta is not None:
        (folder / "meta.yaml").write_text(meta)
        stated = str(folder / "meta.yaml")
    options = Options(meta=stated)
    ingest_files(folder / "store", "straggler-trace", [str(folder / "trace.parquet")], options)
    return folder / "store"


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, as most tests want it; only to be read."""
    return _store(tmp_path_factory.mktemp("own"))


def _says(page: AppTest, words: str) -> bool:
    return any(words in each.value for each in [*page.markdown, *page.caption, *page.warning])


def _named(page: AppTest, name: str) -> str:
    return next(option for option in page.selectbox(key="trace").options if name in option)


def test_the_answer_names_worker_and_node(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _named(open_page(demo_store, PAGE, period="all"), "slow worker")
    page = open_page(demo_store, PAGE, period="all", trace=name)
    assert not page.exception
    assert page.title[0].value.startswith("Worker dp ")
    assert page.title[0].value.endswith(" times its ideal")
    assert " times its ideal; fixing it gives back " in whole(page)
    assert "synthetic data" in page.caption[0].value
    assert [metric.label for metric in page.metric] == [
        "Slowdown",
        "GPU-time wasted",
        "Wasted, GPU-h a day",
        "Due to slowest workers",
        "Due to last stage",
        "Launch slowdown",
    ]
    named = whole(page).split("(")[1].split(")")[0]
    assert _says(page, f"[{named}](node?")
    assert _says(page, "in the order of the node list of job")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slow last stage", "Stage 3 slows the run to 1.15 times its ideal; levelling the stages"),
        ("uneven sequences", "Uneven sequence lengths slow the run to 1.53 times its ideal; "),
    ],
)
def test_every_cause_has_its_sentence(
    open_page: Callable[..., AppTest], demo_store: Path, name: str, words: str
) -> None:
    label = _named(open_page(demo_store, PAGE, period="all"), name)
    page = open_page(demo_store, PAGE, period="all", trace=label)
    assert page.title[0].value == words.partition(";")[0]
    assert whole(page).startswith(words)
    assert " gives back " in whole(page)


def test_commands_never_put_a_trace_into_the_demo(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", stragglers_tab=TABS[4])
    ingest, serve, _, alone = page.code[0].value.split("\n")
    assert ingest.startswith("faultline ingest straggler-trace ")
    assert ingest.endswith(" --store ./store")
    assert serve == "faultline serve --store ./store"
    assert "--store" not in alone


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_link_opens(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", stragglers_tab=tab)
    assert not page.exception
    assert len(page.get("plotly_chart")) == {TABS[0]: 4, TABS[1]: 3, TABS[4]: 1}.get(tab, 2)


@pytest.mark.parametrize(
    ("name", "value"), [("s_w", "min"), ("cluster", "demo"), ("period", "90d")]
)
def test_every_choice_of_a_link_is_followed(
    open_page: Callable[..., AppTest], demo_store: Path, name: str, value: str
) -> None:
    page = open_page(demo_store, PAGE, **({"period": "all"} | {name: value}))
    assert not page.exception
    assert page.session_state[name] == value
    assert page.metric


def test_all_traces_stand_beside_what_was_published(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", stragglers_tab="All traces")
    shares = page.dataframe[0].value
    assert list(shares["published"]) == pytest.approx([42.5, 10.4, 7.8, 21.3, 45.0])
    assert shares["here"][0] == 100.0
    assert shares["here_interval"][0].endswith(" % to 100 %")
    assert sorted(page.dataframe[1].value["traces"]) == [1, 1, 1]
    assert len(page.dataframe[2].value) == 3


def test_when_and_where_a_run_straggles_is_said(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _named(open_page(demo_store, PAGE, period="all"), "slow worker")
    page = open_page(demo_store, PAGE, period="all", trace=name, stragglers_tab=TABS[1])
    assert _says(page, "**When:** 100 % of ")
    where = next(each.value for each in page.markdown if each.value.startswith("**Where:**"))
    assert where.count("Gini") == 4
    assert "; node " in where


@pytest.mark.parametrize("part", ["worker:1,0", "stage:1", "type:forward-compute"])
def test_a_fix_of_a_link_says_what_it_gives_back(
    open_page: Callable[..., AppTest], own_store: Path, part: str
) -> None:
    page = open_page(own_store, PAGE, stragglers_tab="Fix and timelines", fix=part)
    assert not page.exception
    assert page.session_state["fix"] == part
    assert _says(page, "of the step time")
    assert _says(page, "GPU-hours a day of training")


def test_a_timeline_is_that_of_the_trace(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(own_store))
    trace = ask(fleet.traces, Selection())["trace_id"][0]
    text = ask(fix.timeline, trace, "fixed", part="worker:1,0", steps=[2])
    events = json.loads(text)["traceEvents"]
    assert {event["args"]["step"] for event in events if event["ph"] == "X"} == {2}


def test_a_store_of_traces_alone_is_no_empty_store(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE)
    assert not page.exception
    assert page.title[0].value.startswith("Worker dp 1, stage 0 slows the run to ")
    assert "own" in page.caption[0].value
    assert "<b>" not in page.caption[0].value.replace("\\<b\\>", "")
    assert _says(page, "so nodes are unknown")


def test_hours_are_unknown_without_a_meta_file(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(_store(tmp_path, meta=None), PAGE)
    assert page.metric[2].value == "unknown"
    assert "GPUs unknown" in page.caption[0].value


def test_a_healthy_run_is_said_to_be_so(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    page = open_page(_store(tmp_path, slow=1.0), PAGE)
    assert not page.exception
    assert "does not straggle" in page.title[0].value
    assert _says(page, "No cause gives back")


def test_a_simulation_that_is_off_is_warned_of(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(_store(tmp_path, launch=0.5), PAGE)
    assert not page.exception
    assert "the paper leaves out traces above 5 %" in page.warning[0].value


def test_an_empty_store_says_what_would_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path, tmp_path: Path
) -> None:
    for store in (empty_store, tmp_path / "none"):
        page = open_page(store, PAGE)
        assert not page.exception
        assert page.title[0].value == "No traced run yet"
        assert page.code[0].value.startswith("faultline ingest straggler-trace")


def test_traces_outside_the_selection_are_counted(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", min_gpus="100000")
    assert page.title[0].value == "No traced run in this selection"
    assert _says(page, "holds 3 outside of it")


@pytest.mark.parametrize("metric", ["Slowdown", "Due to slowest workers", "Due to last stage"])
def test_every_headline_opens_its_rows(
    open_page: Callable[..., AppTest], own_store: Path, metric: str
) -> None:
    page = open_page(own_store, PAGE)
    page.button(key=f"rows_{metric}").click().run()
    assert not page.exception
    assert len(page.dataframe) == 2


@pytest.mark.parametrize("tab", TABS)
def test_a_trace_that_the_address_names_is_shown_whatever_the_selection(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    name = _named(open_page(demo_store, PAGE, period="all"), "slow worker")
    within = open_page(demo_store, PAGE, period="all", trace=name)
    period = {"period": "custom", "from": "1990-01-01T00:00", "to": "1990-01-02T00:00"}
    page = open_page(demo_store, PAGE, trace=name, stragglers_tab=tab, **period)
    assert not page.exception
    assert page.title[0].value == within.title[0].value
    assert _says(page, "outside the selection")
    assert not _says(within, "outside the selection")


def test_a_trace_that_is_not_stored_is_not_another_one(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", trace="nope")
    assert not page.exception
    assert _says(page, "holds no trace nope")
