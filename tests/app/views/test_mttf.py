"""MTTF: how long until a job of N GPUs fails?"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.answers.reliability import sensitivity
from app.words import numbers
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/reliability/mttf.py"
SMALL = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""


def test_the_answer_comes_first(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value.startswith("A job of ")
    assert [metric.label for metric in page.metric][1:4] == [
        "MTTF of one node",
        "Failures per 1,000 node-days",
        "Incidents per 1,000 node-days",
    ]
    assert len(page.get("plotly_chart")) == 2


def test_the_job_of_the_answer_is_that_of_the_address(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", job_gpus="4096")
    assert page.title[0].value.startswith("A job of 4,096 GPUs runs ")
    assert page.metric[0].label == "MTTF, 4,096 GPUs"


def test_the_rate_is_that_of_overview_and_of_large_jobs_where_it_is_asked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    shown = {m.label: m.value for m in open_page(demo_store, PAGE, period="all").metric}
    first = open_page(demo_store, period="all").metric[0]
    assert shown[first.label] == first.value
    large = open_page(demo_store, PAGE, period="all", min_gpus="129")
    assert large.metric[2].label == "Failures per 1,000 node-days, 129+ GPUs"


@pytest.mark.slow
def test_the_smallest_job_changes_the_rate(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    rates = {
        open_page(demo_store, PAGE, period="all", min_gpus=size).metric[2].value
        for size in ("1", "65")
    }
    assert len(rates) == 2


@pytest.mark.slow
def test_an_explicit_smallest_job_restricts_the_classes_and_the_default_does_not(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    def smallest(**filters: str) -> int:
        page = open_page(demo_store, PAGE, period="all", **filters)
        frame = next(f.value for f in page.dataframe if "gpus_from" in f.value.columns)
        return int(frame["gpus_from"].min())

    assert smallest() == smallest(min_gpus="0") == 1
    assert smallest(min_gpus="9") == smallest(min_gpus="16") == 9


@pytest.mark.parametrize("by", ["week", "partition", "rack", "node_age"])
def test_the_rate_by_every_grouping(
    open_page: Callable[..., AppTest], demo_store: Path, by: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", min_gpus="1", by=by)
    assert not page.exception
    assert len(page.get("plotly_chart")) == (3 if by == "rack" else 2)  # with its rate ratios


def test_a_selection_without_such_jobs_has_no_rate_and_says_why(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", min_gpus="100000")
    assert not page.exception
    assert page.metric[2].value == "unknown"
    assert any("a smaller job size, or reset" in text.value for text in page.markdown)


def test_small_jobs_alone_have_a_rate(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(SMALL)
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "sacct.txt")], Options())
    page = open_page(tmp_path / "store", PAGE, period="all")
    assert not page.exception
    assert page.metric[2].label == "Failures per 1,000 node-days"
    assert page.metric[2].value != "unknown"
    assert any("gpus_from" in frame.value.columns for frame in page.dataframe)


def test_a_given_rate_projects_as_published(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    assert page.metric[-1].value == "1.80 h"
    page.number_input(key="gpus").set_value(131072).run()
    assert page.metric[-1].value == "13.5 min"


def test_published_figures_that_do_not_follow_are_marked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    table = next(f.value for f in page.dataframe if "published" in f.value.columns)
    verdicts = dict(zip(table["gpus"], table["follows"], strict=True))
    assert verdicts[1024] == verdicts[8] == "does not follow from r_f"
    assert verdicts[16384] == verdicts[131072] == "yes"


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "faultline ingest" in page.code[0].value


def test_the_definition_lives_in_the_address_and_changes_the_rate(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    with closing(Store.open(demo_store)) as store:
        found = sensitivity.measured(store, Selection())
    for chosen in ("infrastructure", "scheduler"):
        page = open_page(demo_store, PAGE, period="all", definition=chosen)
        assert not page.exception
        row = found.of(chosen)
        shown = {metric.label: metric.value for metric in page.metric}
        assert shown["Failures per 1,000 node-days"] == numbers.number(
            row.rate_per_1000_node_days.value
        )
        (table,) = (one.value for one in page.dataframe if "definition" in one.value.columns)
        assert len(table) == 5
    assert any("by definition scheduler" in caption.value for caption in page.caption)


def test_the_rate_by_driver_is_a_ratio_with_what_it_rests_on(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", min_gpus="1", by="driver")
    assert not page.exception
    assert any("535.161.08" in text.value for text in page.markdown)
    (ratios,) = (frame.value for frame in page.dataframe if "crude_ratio" in frame.value.columns)
    assert sorted(ratios["level"]) == ["535.161.08", "550.127.05"]


def test_lifetimes_stand_in_a_tab_of_their_own(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, mttf_tab="Lifetimes", lives_by="size")
    assert not page.exception
    assert any("nodes in jobs" in text.value for text in page.markdown)
    assert "Weibull shape" in {metric.label for metric in page.metric}
    assert any("log-rank" in text.value for text in page.caption)


def test_where_no_failure_could_be_seen_lifetimes_cannot_be_judged(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, PAGE, mttf_tab="Lifetimes", period="custom",
        **{"from": "1999-01-01T00:00", "to": "1999-02-01T00:00"},
    )  # fmt: skip
    assert not page.exception
    assert "Weibull shape" not in {metric.label for metric in page.metric}
    assert any("cannot be judged" in text.value for text in page.markdown)


def test_others_definitions_stand_in_a_tab_beside_ours(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, mttf_tab="Others' definitions", period="all")
    assert not page.exception
    (table,) = (frame.value for frame in page.dataframe if "why_it_differs" in frame.value.columns)
    assert "NVSentinel, ADR-044" in table["source"].tolist()
    assert any("between outages of a node" in text.value for text in page.markdown)
