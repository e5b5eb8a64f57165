"""Cox's model with rows that change and shared frailty, beside R's survival and by simulation."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.reliability import cox
from analytics.reliability.hazards import HazardModel, hazard_ratios

REFERENCES = Path(__file__).resolve().parents[2] / "references"
EXPECTED: dict[str, Any] = json.loads((REFERENCES / "hazards_expected.json").read_text())
with (REFERENCES / "hazards.csv").open() as file:
    ROWS = {
        name: np.array([float(row[name]) for row in rows])
        for rows in [list(csv.DictReader(file))]
        for name in rows[0]
    }
COVARIATES = {name: ROWS[name] for name in ("age", "old", "hot")}


def model(**more: Any) -> HazardModel:
    return hazard_ratios(
        ROWS["begin"], ROWS["end"], ROWS["failed"], COVARIATES, exposure=ROWS["exposure"], **more
    )


def coefficients(found: HazardModel) -> list[float | None]:
    return [each.coefficient for each in found.ratios]


def errors(found: HazardModel) -> list[float | None]:
    return [each.standard_error for each in found.ratios]


def test_ratios_and_their_drift_are_those_of_r() -> None:
    found = model()
    assert coefficients(found) == pytest.approx(EXPECTED["coefficients"], abs=1e-9)
    assert errors(found) == pytest.approx(EXPECTED["errors"], rel=1e-7)
    likelihoods = [found.log_likelihood_of_none, found.log_likelihood]
    assert likelihoods == pytest.approx(EXPECTED["log_likelihoods"], rel=1e-10)
    steady = [*(each.steady_p for each in found.ratios), found.steady_p]
    assert steady == pytest.approx(EXPECTED["steady"], rel=1e-6)
    assert found.frailty is None


def test_a_given_frailty_is_that_of_r(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the variance is given both optimise one function of the coefficients and factors."""
    monkeypatch.setattr(cox, "VARIANCES", (0.5 - 1e-9, 0.5 + 1e-9))
    found = model(groups=ROWS["node"].astype(int))
    assert coefficients(found) == pytest.approx(EXPECTED["given"], abs=1e-6)
    assert errors(found) == pytest.approx(EXPECTED["given_errors"], rel=1e-5)


def test_the_variance_of_a_frailty_is_that_of_r_and_likelier() -> None:
    found = model(groups=ROWS["node"].astype(int))
    assert found.frailty is not None
    assert found.frailty.variance.value == pytest.approx(EXPECTED["variance"][0], rel=1e-3)
    assert found.log_likelihood == pytest.approx(EXPECTED["integrated"][0], abs=1e-6)
    assert found.log_likelihood >= EXPECTED["integrated"][0] - 1e-9
    assert coefficients(found) == pytest.approx(EXPECTED["found"], abs=1e-4)
    assert errors(found) == pytest.approx(EXPECTED["found_errors"], rel=1e-3)
    assert found.frailty.factors.mean() == pytest.approx(1.0)


@pytest.mark.slow
def test_lifelines_finds_the_same_ratios() -> None:
    """Without exposure, which its model of such rows does not take."""
    pd, lifelines = pytest.importorskip("pandas"), pytest.importorskip("lifelines")
    frame = pd.DataFrame(ROWS).drop(columns=["exposure", "node"])
    fitter = lifelines.CoxTimeVaryingFitter()
    fitter.fit(frame, event_col="failed", start_col="begin", stop_col="end")
    found = hazard_ratios(ROWS["begin"], ROWS["end"], ROWS["failed"], COVARIATES)
    assert coefficients(found) == pytest.approx(fitter.params_.tolist(), abs=1e-4)


EDGES: dict[str, tuple[list[float], list[float], list[int], dict[str, list[float]]]] = {
    "no row": ([], [], [], {"x": []}),
    "no failure": ([0, 0], [1, 2], [0, 0], {"x": [0, 1]}),
    "one failure": ([0, 0], [1, 2], [1, 0], {"x": [0, 1]}),
    "all at once": ([0, 0, 0], [1, 1, 1], [1, 1, 1], {"x": [0, 1, 3]}),
    "a level of which none fails": ([0, 0, 0], [1, 2, 3], [1, 1, 0], {"x": [0, 0, 1]}),
    "what never differs": ([0, 0, 0], [1, 2, 3], [1, 1, 0], {"x": [2, 2, 2]}),
    "no covariate": ([0, 0], [1, 2], [1, 1], {}),
}


@pytest.mark.parametrize(("begin", "end", "failed", "covariates"), EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_too_little_is_unknown(
    begin: list[float],
    end: list[float],
    failed: list[int],
    covariates: dict[str, list[float]],
    grouped: bool,
) -> None:
    groups = list(range(len(begin))) if grouped else None
    found = hazard_ratios(begin, end, failed, covariates, groups=groups)
    assert (found.n_rows, found.n_events) == (len(begin), sum(failed))
    for each in found.ratios:
        if each.ratio.value is not None:
            assert each.ratio.lower is not None
            assert each.ratio.upper is not None
            assert 0 < each.ratio.lower < each.ratio.value < each.ratio.upper < np.inf
        else:
            assert each.p_value is None


def test_two_names_of_one_thing_cannot_be_told_apart() -> None:
    twice = {"old": COVARIATES["old"], "aged": COVARIATES["old"], "hot": COVARIATES["hot"]}
    found = hazard_ratios(ROWS["begin"], ROWS["end"], ROWS["failed"], twice)
    once = {"old": COVARIATES["old"], "hot": COVARIATES["hot"]}
    alone = hazard_ratios(ROWS["begin"], ROWS["end"], ROWS["failed"], once)
    assert coefficients(found)[:2] == [None, None]
    assert coefficients(found)[2] == pytest.approx(coefficients(alone)[1])
    assert errors(found)[2] == pytest.approx(errors(alone)[1])


@pytest.mark.parametrize(
    ("begin", "end", "failed", "covariates", "more", "told"),
    [
        ([1.0], [1.0], [1], {"x": [0.0]}, {}, "end after they begin"),
        ([0.0], [1.0], [1], {"x": [0.0, 1.0]}, {}, "differ in length"),
        ([0.0], [1.0], [1], {"x": [np.nan]}, {}, "finite"),
        ([0.0], [1.0], [1], {"x": [0.0]}, {"exposure": [0.0]}, "have exposure"),
        ([0.0], [1.0], [1], {"x": [0.0]}, {"groups": [0, 1]}, "one a row"),
    ],
)
def test_what_cannot_be_is_refused(
    begin: Any, end: Any, failed: Any, covariates: Any, more: Any, told: str
) -> None:
    with pytest.raises(AnalysisError, match=told):
        hazard_ratios(begin, end, failed, covariates, **more)


def simulated(chance: np.random.Generator, variance: float, ratio: float) -> HazardModel:
    """60 nodes for 40 days of which half are hot; the common hazard doubles half way."""
    n_nodes, days = 60, 40
    factor = chance.gamma(1 / variance, variance, n_nodes) if variance else np.ones(n_nodes)
    hot = chance.random((n_nodes, days)) < 0.5
    old = np.repeat(np.arange(n_nodes) % 2, days).reshape(n_nodes, days)
    common = 0.03 * np.where(np.arange(days) < days / 2, 1, 2)
    rate = common * factor[:, None] * np.where(hot, ratio, 1.0) * np.where(old, 1.5, 1.0)
    failed = chance.random((n_nodes, days)) < 1 - np.exp(-rate)
    begin = np.tile(np.arange(days), n_nodes).astype(float)
    return hazard_ratios(
        begin, begin + 1, failed.ravel(), {"hot": hot.ravel(), "old": old.ravel()},
        groups=np.repeat(np.arange(n_nodes), days),
    )  # fmt: skip


@pytest.mark.slow
def test_intervals_hold_what_was_planted() -> None:
    """90 % of 200 clusters each, with and without frailty; none is said where there is none."""
    chance = np.random.default_rng(5)
    for variance in (0.0, 0.7):
        held = {"hot": 0, "old": 0, "variance": 0}
        alarms = drifts = 0
        for _ in range(200):
            found = simulated(chance, variance, 2.0)
            truth = {"hot": 2.0, "old": 1.5}
            for each in found.ratios:
                assert each.ratio.lower is not None
                assert each.ratio.upper is not None
                held[each.covariate] += (
                    each.ratio.lower <= truth[each.covariate] <= each.ratio.upper
                )
            assert found.frailty is not None
            told = found.frailty.variance
            assert told.lower is not None
            held["variance"] += told.lower <= variance <= (told.upper or np.inf)
            alarms += found.frailty.p_value < 0.05
            drifts += found.steady_p is not None and found.steady_p < 0.05
        print(variance, held, "frailty told", alarms, "drift told", drifts)
        assert all(0.85 <= n / 200 <= (1.0 if name == "variance" else 0.95)
                   for name, n in held.items())  # fmt: skip
        assert alarms / 200 >= 0.95 if variance else alarms / 200 <= 0.08
        assert drifts / 200 <= 0.1
