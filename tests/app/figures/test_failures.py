"""Figures of failures: rates, rankings, states, confusion; from round numbers."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.estimate import unknown
from analytics.failures.cause_rates import causes_by_week
from analytics.failures.confusion import confusion_matrix
from analytics.failures.summary import CauseCount, StateCount
from analytics.proportion import proportion
from analytics.reliability.failure_rate import poisson_rate
from app.answers.failures import summary, trust
from app.figures.failures import cause_ranking, causes_over_time, confusion, domains, states

MONDAY = pd.Timestamp("2026-01-05", tz="UTC")
WEEK = pd.Timedelta(days=7)
TITLES = {"pcie": "PCIe error", "unknown": "Unknown"}


def _weeks(exposure: float = 500.0) -> pd.DataFrame:
    rows = [
        (MONDAY, "pcie", "hardware", 4, exposure),
        (MONDAY, "unknown", "unknown", 90, exposure),
        (MONDAY + 2 * WEEK, "pcie", "hardware", 2, exposure),
    ]
    columns = ["week", "cause", "domain", "n_attempts", "exposure_node_days"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(n_exposed=found["n_attempts"])


def _over_time(exposure: float = 500.0, *, known: bool = True) -> dict:
    causes = causes_by_week(_weeks(exposure), ["hardware", "unknown"])
    return causes_over_time.figure(causes, titles=TITLES, exposure_known=known).to_dict()


def _cause(name: str, n: int, domain: str = "hardware") -> CauseCount:
    rate = poisson_rate(n, 1000.0).scaled(1000.0)
    return CauseCount(name, name.title(), domain, n, 8.0 * n, rate, "team", "Look.")


def _named(figure: dict, name: str) -> dict:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def test_causes_stand_on_one_another_in_the_colour_of_their_domain() -> None:
    figure = _over_time()
    assert figure["layout"]["barmode"] == "stack"
    bars = _named(figure, "PCIe error")
    assert list(bars["y"]) == [8.0, None, 4.0]
    assert bars["marker"]["color"] == domains.colour("hardware", "light")
    assert _named(figure, "Unknown")["marker"]["pattern"]["shape"] == "/"


def test_a_week_that_stands_alone_is_drawn_in_full() -> None:
    causes = causes_by_week(_weeks().head(2), ["hardware"])
    figure = causes_over_time.figure(causes, titles=TITLES, exposure_known=True).to_dict()
    assert _named(figure, "PCIe error")["width"] == pytest.approx(0.88 * 7 * 86_400_000)
    assert [str(at.date()) for at in figure["layout"]["xaxis"]["range"]] == [
        "2026-01-05", "2026-01-12",
    ]  # fmt: skip


def test_a_week_without_record_is_hatched_and_never_zero() -> None:
    gap = _named(_over_time(), "nothing recorded")
    assert [str(at.date()) for at in gap["x"]] == ["2026-01-15"]
    assert gap["marker"]["pattern"]["shape"] == "/"
    assert "no running time recorded" in gap["customdata"][0]


def test_every_bar_tells_its_interval_and_number_on_hover() -> None:
    says = _named(_over_time(), "PCIe error")["customdata"][0]
    assert "4 failed attempts in 500 node-days" in says
    assert "2.73 to 18.3 (90 % interval)" in says


def test_axes_carry_their_units() -> None:
    layout = _over_time()["layout"]
    assert layout["yaxis"]["title"]["text"] == "Failed attempts per 1,000 node-days"
    assert layout["xaxis"]["title"]["text"] == "Week beginning (Monday)"


def test_without_exposure_attempts_are_drawn_and_the_figure_says_so() -> None:
    figure = _over_time(float("nan"), known=False)
    assert list(_named(figure, "PCIe error")["y"]) == [4.0, 0.0, 2.0]
    assert figure["layout"]["yaxis"]["title"]["text"] == "Failed attempts per week"
    assert "attempts are counted" in figure["layout"]["title"]["subtitle"]["text"]
    assert all(trace["name"] != "nothing recorded" for trace in figure["data"])


def test_series_are_named_beside_the_bars_with_their_number() -> None:
    texts = [note["text"] for note in _over_time()["layout"]["annotations"]]
    assert any(text.endswith("PCIe error  6") for text in texts)
    assert any("▨" in text and text.endswith("Unknown  90") for text in texts)


def test_the_data_of_the_figure_hold_every_cause_and_week() -> None:
    frame = summary.weeks(causes_by_week(_weeks(), ["hardware", "unknown"]), TITLES).frame()
    assert len(frame) == 6
    assert frame["attempts"].sum() == 96


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_nothing_to_draw_is_an_empty_figure(mode: str) -> None:
    nothing = causes_by_week(_weeks().head(0), ["hardware"])
    drawn = [
        causes_over_time.figure(nothing, titles={}, exposure_known=True, mode=mode).to_dict(),
        cause_ranking.figure((), exposure_known=True, mode=mode).to_dict(),
        states.figure((), mode=mode).to_dict(),
    ]
    assert all(not len(trace["x"]) for figure in drawn for trace in figure["data"])
    assert all(figure["layout"]["title"]["text"].endswith("?") for figure in drawn)
    assert all(figure["layout"]["xaxis"]["title"]["text"] for figure in drawn)
    assert all("annotations" not in figure["layout"] for figure in drawn)


def test_similar_rates_are_bars_from_zero() -> None:
    figure = cause_ranking.figure([_cause("pcie", 4), _cause("nic", 2)], exposure_known=True)
    drawn = figure.to_dict()
    assert [trace["type"] for trace in drawn["data"]] == ["bar", "bar"]
    assert drawn["layout"]["xaxis"]["rangemode"] == "tozero"
    assert drawn["layout"]["yaxis"]["ticktext"] == ["Pcie", "Nic"]


def test_rates_far_apart_are_dots_on_a_log_axis() -> None:
    causes = [_cause("unknown", 4000, "unknown"), _cause("pcie", 4)]
    drawn = cause_ranking.figure(causes, exposure_known=True).to_dict()
    assert drawn["layout"]["xaxis"]["type"] == "log"
    assert drawn["layout"]["xaxis"]["title"]["text"].endswith("(log scale)")
    assert [trace["marker"]["symbol"] for trace in drawn["data"]] == ["circle-open", "circle"]


def test_a_ranking_without_exposure_counts_attempts() -> None:
    cause = _cause("pcie", 4)
    bare = CauseCount(
        cause.cause, cause.title, cause.domain, 4, 32.0, unknown(0.9, 4), "team", "Look."
    )
    drawn = cause_ranking.figure([bare], exposure_known=False).to_dict()
    assert drawn["data"][0]["x"] == [4.0]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Failed attempts"


def test_states_stand_side_by_side_by_number_and_by_gpu_time() -> None:
    found = [
        StateCount("COMPLETED", 90, proportion(90, 100), 10.0, 0.1),
        StateCount("FAILED", 10, proportion(10, 100), 90.0, 0.9),
    ]
    drawn = states.figure(found).to_dict()
    assert [list(trace["x"]) for trace in drawn["data"]] == [[90.0, 10.0], [10.0, 90.0]]
    assert drawn["layout"]["xaxis2"]["title"]["text"] == "Share of their GPU-time"
    assert "(90 % interval)" in drawn["data"][0]["customdata"][0]


def test_unknown_gpu_time_is_no_bar() -> None:
    found = [StateCount("FAILED", 1, proportion(1, 1), 0.0, None)]
    assert states.figure(found).to_dict()["data"][1]["x"] == [None]


def test_the_confusion_matrix_shows_counts_and_shares_of_rows() -> None:
    rows = pd.DataFrame(
        {
            "actual": ["pcie", "pcie"],
            "actual_domain": "hardware",
            "found": ["pcie", "unknown"],
            "found_domain": ["hardware", "unknown"],
            "has_event": True,
            "n": [3, 1],
        }
    )
    matrix = confusion_matrix(rows)
    drawn = confusion.figure(matrix).to_dict()
    assert [list(row) for row in drawn["data"][0]["z"]] == [[0.75, 0.25]]
    assert "3 of 4 attempts (75 %)" in drawn["data"][0]["customdata"][0][0]
    assert drawn["layout"]["yaxis"]["ticktext"] == ["pcie (4)"]
    answer = trust.of_verdicts(matrix)
    assert answer.table("confusion_scores").values[0][-1].value == 0.75
    assert list(answer.chart("confusion").rows.frame()["attempts"]) == [3, 1]
