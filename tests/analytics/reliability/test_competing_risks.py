"""Cumulative incidence by cause and Gray's test, against R's cmprsk and by direct computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analytics.errors import ShapeError
from analytics.reliability.competing_risks import (
    cumulative_incidences,
    gray_test,
    without_cause,
)
from analytics.reliability.lifetimes import Lives, kaplan_meier

REFERENCES = Path(__file__).resolve().parents[2] / "references"
TITAN = Path(__file__).resolve().parents[4] / "shared" / "data" / "titan" / "gc_summary_loc.csv"
EXPECTED = json.loads((REFERENCES / "competing_risks_expected.json").read_text())
"""By `Rscript competing_risks.R` on lives.csv."""
ROWS = pd.read_csv(REFERENCES / "lives.csv", keep_default_na=False)
LIVES = Lives.of(ROWS["age"], ROWS["died"].astype(int) == 1)
CAUSES = ROWS["cause"].tolist()


def test_incidence_and_its_variance_are_those_of_r() -> None:
    for found in cumulative_incidences(LIVES, CAUSES):
        places = np.searchsorted(found.age, EXPECTED["at"], side="right") - 1
        assert found.incidence[places] == pytest.approx(EXPECTED[found.cause], rel=1e-9)
        variance = EXPECTED[f"{found.cause}_variance"]
        assert found.variance[places] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("cause", ["link", "memory"])
def test_grays_test_is_that_of_r(cause: str) -> None:
    groups = []
    for batch in "abc":
        mine = (ROWS["batch"] == batch).to_numpy()
        groups.append((LIVES.some(mine), (ROWS["cause"] == cause).to_numpy()[mine]))
    found = gray_test(groups)
    assert found is not None
    statistic, p_value, df = EXPECTED[f"{cause}_gray"]
    assert (found.statistic, found.df) == (pytest.approx(statistic, rel=1e-9), df)
    assert found.p_value == pytest.approx(p_value, rel=1e-9)


def test_incidences_sum_to_those_who_died() -> None:
    late = Lives.of(ROWS["age"], ROWS["died"].astype(int) == 1, ROWS["since"])
    for lives in (LIVES, late):
        curve = kaplan_meier(lives)
        parts = cumulative_incidences(lives, CAUSES)
        whole = sum(part.incidence for part in parts)
        assert whole == pytest.approx(1.0 - curve.survival, abs=1e-12)
        assert sum(part.n_deaths for part in parts) == curve.n_deaths


def test_intervals_hold_what_came_and_one_cause_gone_spares_no_more_than_all() -> None:
    for part in cumulative_incidences(LIVES, CAUSES):
        found = part.at(10.0)
        assert (found.lower or 0) < (found.value or 0) < (found.upper or 0) < 1
        spared = kaplan_meier(without_cause(LIVES, CAUSES, part.cause)).at(10.0)
        assert (spared.value or 0) >= (kaplan_meier(LIVES).at(10.0).value or 0)
        assert part.at(0.0).value == 0.0
        assert part.at(1e6).value is None


def test_rows_together_are_rows_one_by_one() -> None:
    frame = ROWS.groupby(["age", "died", "cause"]).size().reset_index(name="n")
    together = Lives.of(frame["age"], frame["died"].astype(int) == 1, weight=frame["n"])
    pairs = zip(
        cumulative_incidences(LIVES, CAUSES),
        cumulative_incidences(together, frame["cause"].tolist()),
        strict=True,
    )
    for one, other in pairs:
        assert one.incidence == pytest.approx(other.incidence, rel=1e-12)
        assert one.variance == pytest.approx(other.variance, rel=1e-9)


def test_where_one_is_alone_or_none_died_there_is_no_test() -> None:
    alive = Lives.of([1.0, 2.0], [False, False])
    assert cumulative_incidences(alive, ["", ""]) == ()
    assert gray_test([(alive, np.zeros(2, dtype=bool))]) is None
    assert gray_test([(alive, np.zeros(2, dtype=bool))] * 2) is None
    with pytest.raises(ShapeError, match="causes must be one a row"):
        cumulative_incidences(alive, ["link"])


@pytest.mark.skipif(not TITAN.exists(), reason=f"the GPUs of Titan are not at {TITAN}")
def test_the_gpus_of_titan_by_kind_of_death() -> None:
    """Cards fell off the bus, had double-bit errors, or both: 268 had both."""
    cards = pd.read_csv(TITAN)
    kind = np.array(["", "bus", "double bit", "both"], dtype=object)[
        cards["dead_otb"].astype(int) + 2 * cards["dead_dbe"].astype(int)
    ]
    lives = Lives.of(cards["years"], cards["dead"])
    parts = cumulative_incidences(lives, kind.tolist())
    assert {part.cause: part.n_deaths for part in parts}["both"] == 268
    whole = sum(part.incidence for part in parts)
    assert whole == pytest.approx(1.0 - kaplan_meier(lives).survival, abs=1e-12)
