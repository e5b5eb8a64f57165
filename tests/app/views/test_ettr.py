"""ETTR: what did the big runs get out of their time?"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from analytics.reliability.failure_rate import size_label
from app.actions import Options, build_ledger, ingest_files
from app.answers.content import Chart, Part
from app.answers.efficiency import ettr
from app.ask import FEW, of_store
from data.filters import Selection
from data.store import Store
from tests.app.views.conftest import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/efficiency/ettr.py"
HEADER = "JobID|Cluster|JobName|User|State|Submit|Eligible|Start|End|NNodes|AllocTRES|NodeList\n"
TWICE = (
    "7|c|llm|u|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|"
    "2026-01-05T11:00:00|32|gres/gpu=256|n[1-32]\n"
    "7|c|llm|u|COMPLETED|2026-01-05T11:00:00|2026-01-05T11:00:00|2026-01-05T12:00:00|"
    "2026-01-06T00:00:00|32|gres/gpu=256|n[1-32]\n"
)
SMALL = (
    "1|c|one|u|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:00|"
    "2026-01-02T00:00:00|1|gres/gpu=8|n1\n"
)
NO_GPUS = (
    "1|c|one|u|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:00|"
    "2026-01-02T00:00:00|4||n[1-4]\n"
)
NO_SUBMIT = (
    "1|c|two|u|COMPLETED|Unknown|Unknown|2026-01-01T00:00:00|2026-01-02T00:00:00|2|gres/gpu=16|"
    "n[1-2]\n"
)


def store_of(folder: Path, rows: str) -> Path:
    (folder / "sacct.txt").write_text(HEADER + rows)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    return folder / "store"


def listed(page: AppTest) -> list[str]:
    frame = next(f.value for f in page.dataframe if "run_id" in f.value.columns)
    return [str(run) for run in frame["run_id"]]


def test_bands_and_weeks_open_their_runs(demo_store: Path) -> None:
    selection = Selection(min_gpus=129)
    with closing(Store.open(demo_store)) as store:
        ask = of_store(store)
        answer = ettr.answer_beside_expected(ask, selection)
        bands, weeks = answer.table("ettr_by_gpus"), answer.table("ettr_by_week")
        whole = answer.numbers[2].exact
        smaller = [row for row in bands.values if int(row[0].partition("-")[0]) < 129]
        assert smaller  # as for MTTF: of all sizes where nobody asked for one
        assert bands.note == "Runs of all sizes, those below 129 GPUs too."
        assert sum(row[2] for row in bands.values if row not in smaller) == whole
        chart = answer.chart("ettr_sizes")
        assert isinstance(chart, Chart)
        assert isinstance(chart.opens, Part)
        for size, _, n_runs, *_ in bands.values:
            for part in (bands.opens.behind({"gpus": size}), chart.opens.behind({"mark": size})):
                opened = part.opened(ask, limit=FEW)
                gpus = [column.key for column in opened.columns].index("n_gpus")
                assert len(opened) == min(n_runs, FEW)
                assert {size_label(row[gpus]) for row in opened.values} == {size}
        assert sum(row[2] for row in weeks.values) == whole
        for week, monday, n_runs, *_ in weeks.values:
            assert monday.strftime("%a %G-W%V") == f"Mon {week}"
            assert len(weeks.opens.behind({"week": week}).opened(ask, limit=FEW)) == n_runs


def test_the_answer_comes_first(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert " of 129 GPUs and more trained " in page.title[0].value
    assert [metric.label for metric in page.metric] == [
        "ETTR, 129+ GPUs",
        "ETTR, median run",
        "Runs",
        "Failures per run",
        "Mean wait to start",
    ]
    assert len(page.get("plotly_chart")) == 2
    assert page.metric[2].value == f"{len(listed(page)):,}"


def test_the_smallest_job_changes_the_runs(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    large, all_sizes = (
        len(listed(open_page(demo_store, PAGE, period="all", min_gpus=size)))
        for size in ("129", "0")
    )
    assert 0 < large < all_sizes


@pytest.mark.parametrize(
    ("filters", "changes"),
    [({"period": "24h"}, True), ({"cluster": "demo"}, False)],
)
def test_every_filter_changes_the_answer_where_the_runs_differ(
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
    filters: dict[str, str],
    changes: bool,
) -> None:
    page, changed = answers(demo_store, PAGE, filters, period="all", min_gpus="0")
    assert re.match(r"\d+ runs trained [\d.]+\s% of their time$", page.title[0].value)
    assert whole(page).startswith(f"{page.title[0].value} (")
    assert changed == changes  # all runs are of the one cluster


def test_a_number_opens_the_runs_behind_it_beside_those_of_the_page(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    page.button(key="rows_Runs").click().run()
    assert not page.exception
    assert page.text_input(key="search_runs_behind").value == ""


def test_a_link_opens_one_run(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    run = listed(open_page(demo_store, PAGE, period="all"))[0]
    page = open_page(demo_store, PAGE, period="all", run=run)
    assert not page.exception
    assert page.title[0].value.startswith(f"Run {run} trained ")
    assert len(page.get("plotly_chart")) == 1
    next(button for button in page.button if button.label == "All runs").click().run()
    assert " of 129 GPUs and more trained " in page.title[0].value


@pytest.mark.slow
def test_a_run_says_what_interrupted_it_with_links(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(store_of(tmp_path, TWICE), PAGE, period="all", run="7")
    assert not page.exception
    assert "1 interruption in 2 attempts" in page.title[0].value
    ended = next(f.value for f in page.dataframe if "lost_min" in f.value.columns)
    assert ended["job_id"].tolist() == ["7"]
    assert ended["incident_id"].notna().all()
    assert ended["lost_min"].tolist() == [pytest.approx(30.5)]
    frame = next(f.value for f in page.dataframe if "lost_h" in f.value.columns)
    assert frame["waited_h"].tolist() == [1.0, 1.0]
    assert frame["lost_h"].tolist() == [pytest.approx(0.508, abs=0.001), 0.0]


def test_an_unknown_run_is_a_notice(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, run="nope")
    assert not page.exception
    assert "is not in the store" in page.warning[0].value
    assert page.text_input(key="run").value == "nope"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (SMALL, "No run of 129 GPUs and more on several nodes is known in this selection"),
        (NO_GPUS, "No job of c states GPUs: time is counted in node-hours (nodes x running time), 96.0"),
    ],
    ids=["one node", "no GPUs"],
)  # fmt: skip
def test_without_runs_on_several_nodes_the_page_says_what_would_fill_it(
    open_page: Callable[..., AppTest], tmp_path: Path, rows: str, said: str
) -> None:
    page = open_page(store_of(tmp_path, rows), PAGE, period="all")
    assert not page.exception
    texts = [page.title[0].value, *(text.value for text in page.markdown)]
    assert any(text.startswith(said) for text in texts)
    assert said.startswith(page.title[0].value)
    assert "faultline ingest sacct sacct.txt" in page.code[0].value


def test_runs_that_are_left_out_are_told_where_no_other_is_known(tmp_path: Path) -> None:
    root = store_of(tmp_path, NO_SUBMIT)
    build_ledger(root, lambda _step: None)
    with closing(Store.open(root)) as store:
        answer = ettr.answer_beside_expected(of_store(store), Selection())
    assert answer.numbers == ()
    assert "1 run is left out: its records do not say since when it waited." in answer.notes


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "faultline ingest" in page.code[0].value
