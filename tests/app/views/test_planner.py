"""Planner: the same answer as the commands', by its address; one click from Overview."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.efficiency import what_if
from app.answers.recovery import policies, sites
from app.ask import of_store
from app.widgets.page_head import KNOWN
from app.words.plain import titled
from data.filters import Selection
from data.store import Store
from tests.app.views.conftest import behind, in_sight, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE, JOB = "views/recovery/planner.py", {"planner_tab": "One job"}
MONTH = "last whole month"
CHANGED = {"over": MONTH, "worst": "2", "every": "minutes", "minutes": "20", "of_gpus": "4096"}


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


@pytest.mark.slow
def test_page_and_command_say_the_same_of_what_the_address_changes(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, **CHANGED)
    assert not page.exception
    with closing(Store.open(demo_store)) as store:
        wish = what_if.Wish(worst=2, interval=20.0, gpus=4096)
        answer = what_if.answer(of_store(store), Selection(), wish)
    assert ", with checkpoints every 20 min, from " in answer.sentence
    assert whole(page).replace("\N{NO-BREAK SPACE}", " ") == answer.sentence
    assert page.title[0].value.replace("\N{NO-BREAK SPACE}", " ") == titled(answer.sentence)
    assert metrics(page) == {number.term.label: number.value for number in answer.numbers}
    assert "Best checkpoint interval, 4,096 GPUs" in metrics(page)
    assert len(page.get("plotly_chart")) == 2


@pytest.mark.slow
def test_the_month_takes_the_place_of_the_period_of_every_other_page(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    chosen = open_page(demo_store, PAGE, period="7d")
    month = open_page(demo_store, PAGE, period="7d", over=MONTH)
    assert not month.exception
    assert metrics(month) != metrics(chosen)
    same = open_page(demo_store, PAGE, period="7d", over="chosen period")
    assert metrics(same) == metrics(chosen)


@pytest.mark.slow
def test_nothing_changed_is_said(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, worst="0", every="as it was")
    assert not page.exception
    assert whole(page).startswith("Nothing is changed: ")
    assert metrics(page)["GPU-hours regained"] == "0"


@pytest.mark.slow
def test_a_node_that_is_not_there_is_a_notice(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, without="no-such-node")
    assert not page.exception
    assert "must be one of the store's" in page.warning[0].value


def test_overview_leads_there_in_one_click(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    overview = open_page(demo_store, period="all")
    (said,) = (text for text in in_sight(overview) if "](planner?" in text)
    link = re.fullmatch(r"\[Checkpoint [\d,]+ GPUs every ([\d.]+ min)\]\((planner\?.*)\)", said)
    assert link
    (gpus,) = re.findall(
        rf"Checkpoint a job of ([\d,]+) GPUs every {link[1]} \(", behind(overview, KNOWN)
    )
    asked = f"of_gpus={gpus.replace(',', '')}"
    assert link[2] == f"planner?period=all&{asked}&over=chosen+period"


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert not page.metric


def test_the_calculator_starts_from_the_stores_values_and_a_link_keeps_others(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, **JOB, period="all")
    assert page.number_input(key="restart").value == pytest.approx(5.0, abs=0.5)
    assert page.number_input(key="interval").value is None
    given = {"gpus": "12000", "rate": "6.5", "restart": "5", "write": "5", "interval": "38.4",
             "queue": "0"}  # fmt: skip
    linked = open_page(demo_store, PAGE, **JOB, period="all", **given)
    forms = next(f.value for f in linked.dataframe if "form" in f.value.columns)
    assert dict(zip(forms["form"], forms["ettr"].round(3), strict=True)) == {
        "exact": 0.736, "full": 0.740, "v2": 0.740, "v1": 0.836,
    }  # fmt: skip
    assert "Daly-Young's rule says 38.4 min" in linked.title[0].value.replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_a_job_without_answer_is_a_notice(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, **JOB, period="all", interval="0", write="5")
    assert not page.exception
    assert "interval_min" in page.warning[0].value


def test_published_figures_that_do_not_follow_are_marked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, **JOB)
    table = next(f.value for f in page.dataframe if "paper" in f.value.columns)
    odd = table[table["follows"].ne("yes")]
    assert odd["ours"].round(3).tolist() == [0.685, 0.768]
    assert any("24.6 min" in text.value for text in page.markdown)


@pytest.mark.slow
def test_the_best_interval_is_one_number_on_overview_planner_and_calculator(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    again = open_page(demo_store, PAGE, period="all", of_gpus="512")
    (value,) = (v for k, v in metrics(again).items() if k.startswith("Best checkpoint interval"))
    (link,) = (c.value for c in again.caption if "planner_tab=One+job" in c.value)
    named = dict(re.findall(r"[?&](gpus|rate|write)=([\d.]+)", link))
    job = open_page(demo_store, PAGE, **JOB, period="all", **named)
    title = job.title[0].value.replace("\N{NO-BREAK SPACE}", " ")
    assert title.startswith(f"Checkpoint every {value} for an ETTR of ")
    overview = open_page(demo_store, "views/fleet/overview.py", period="all", job_gpus="512")
    assert any(f" every {value}](planner?" in text for text in in_sight(overview))
    assert f"Checkpoint a job of 512 GPUs every {value} (" in behind(overview, KNOWN)


def test_spares_are_of_the_job_that_is_asked_for(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", planner_tab="Spares", nodes="64")
    assert not page.exception
    assert page.title[0].value.startswith("A job of 64 nodes needs")
    (spares,) = (frame.value for frame in page.dataframe if "spares" in frame.value.columns)
    assert spares["spares"].tolist() == list(range(len(spares)))


@pytest.mark.slow
def test_policies_are_those_of_the_command_and_a_stated_detection_counts(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, planner_tab="Policies")
    assert not page.exception
    with closing(Store.open(demo_store)) as store:
        plan = sites.of_store(of_store(store), Selection(), pipeline_nodes=16)
        assert not isinstance(plan, str)
        answer = policies.answer(plan)
    assert metrics(page) == {number.term.label: number.value for number in answer.numbers}
    later = open_page(demo_store, PAGE, planner_tab="Policies", detect="30")
    assert (
        metrics(later)["ETTR with checkpoints alone"] < metrics(page)["ETTR with checkpoints alone"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "changed", "label"),
    [
        ("A target", {"write": "10"}, "Expected ETTR of the job"),
        ("Right now", {"idle": "64"}, "A failure now would cost"),
    ],
)
def test_what_a_reader_states_changes_the_numbers(
    open_page: Callable[..., AppTest],
    demo_store: Path,
    tab: str,
    changed: dict[str, str],
    label: str,
) -> None:
    page = open_page(demo_store, PAGE, planner_tab=tab)
    stated = open_page(demo_store, PAGE, planner_tab=tab, **changed)
    assert not page.exception
    assert not stated.exception
    assert metrics(page)[label] != metrics(stated)[label]


@pytest.mark.slow
def test_scenarios_are_kept_side_by_side_and_forgotten(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    def button(page: AppTest, label: str) -> Any:
        return next(each for each in page.button if each.label == label)

    page = open_page(demo_store, PAGE, planner_tab="A target")
    button(page, "Keep this scenario").click().run()
    page.number_input(key="write").set_value(12.0).run()
    button(page, "Keep this scenario").click().run()
    assert not page.exception
    assert len(page.session_state["kept_scenarios"]) == 2
    (first, before), (second, after) = page.session_state["kept_scenarios"]
    assert second.write_min == 12.0 != first.write_min
    assert after.value < before.value
    button(page, "Forget them").click().run()
    assert page.session_state["kept_scenarios"] == []
