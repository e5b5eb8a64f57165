"""The experiment of the lab: thresholds, alarms, and that all of it is the same again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.lab.experiment import Lab, experiment
from analytics.training.lab.findings import ANY, alarms_without, detections, harm, survivals
from analytics.training.lab.indicators import (
    INDICATORS,
    PAST,
    SCORED,
    Series,
    first_alarms,
    scores,
    threshold,
)
from analytics.training.lab.training import MITIGATIONS, Recipe
from analytics.training.lab.transformer import Shape

TINY = Lab(
    n_injections=6, steps=84, bits=(30, 2),
    recipe=Recipe(shape=Shape(n_tokens=8, length=4, width=4, n_layers=1, hidden=4), replicas=2),
    false_alarms=0.25,
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny():
    told = []
    found = experiment(TINY, lambda done, of: told.append((done, of)))
    return found, told


def test_a_threshold_is_passed_as_rarely_as_it_says() -> None:
    rng = np.random.default_rng(1)
    runs = rng.standard_cauchy((4000, 50))
    passed = [row[-1] > threshold(row[:-1], 0.1) for row in runs]
    assert np.mean(passed) == pytest.approx(0.1, abs=0.012)


def test_too_few_clean_runs_give_no_threshold() -> None:
    with pytest.raises(AnalysisError, match="clean runs must be at least 49, got 48"):
        threshold(np.ones(48), 0.02)


def test_a_score_is_the_distance_from_the_past_in_its_scatter() -> None:
    values = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 8)[: PAST + 1][:, None]
    values[PAST] = 10.0
    assert scores("update_cosine", values)[PAST, 0] == pytest.approx((10 - 3) / 1.4826)
    assert np.isnan(scores("update_cosine", values)[:PAST]).all()
    values[PAST] = np.nan
    assert scores("loss", values)[PAST, 0] == np.inf


def test_rules_see_a_jump_a_nan_and_replicas_that_differ() -> None:
    flat = {name: np.full((40, 3), 2.0) for name in SCORED}
    flat["loss"] = flat["loss"].copy()
    flat["gradient_norm"] = flat["gradient_norm"].copy()
    flat["gradient_norm"][30, 0] = 10.1
    flat["loss"][33, 1] = np.nan
    differ = np.zeros((40, 3), dtype=bool)
    differ[35, 2] = True
    found = first_alarms(Series(flat, differ), dict.fromkeys(SCORED, 1e99), np.full(3, 25))
    np.testing.assert_array_equal(found["jump_5x"], [30, 33, np.nan])
    np.testing.assert_array_equal(found["not_finite"], [np.nan, 33, np.nan])
    np.testing.assert_array_equal(found["checksum"], [np.nan, np.nan, 35])
    late = first_alarms(Series(flat, differ), dict.fromkeys(SCORED, 1e99), np.full(3, 36))
    assert all(np.isnan(each).all() for each in late.values())


def test_the_same_lab_gives_the_same_numbers_bit_for_bit(tiny) -> None:
    found, told = tiny
    again = experiment(replace(TINY, mitigations=()))
    assert repr(again.flips) == repr(found.flips)  # NaN is the same there
    assert again.thresholds == found.thresholds
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.slow
def test_batches_do_not_change_what_is_found(tiny) -> None:
    found, _ = tiny
    again = experiment(replace(TINY, batch=5))
    assert repr(again.flips) == repr(found.flips)
    for one, other in zip(again.replays, found.replays, strict=True):
        np.testing.assert_array_equal(one.final_loss, other.final_loss)


def test_a_flip_keeps_what_it_did(tiny) -> None:
    found, _ = tiny
    assert [flip.even for flip in found.flips] == [True] * 6 + [False]
    assert {flip.injection.bit for flip in found.flips if not flip.even} == {30}
    for flip in found.flips:
        assert flip.harmful == (not flip.final_loss <= found.limit)
        assert set(flip.alarms) == set(INDICATORS)
        assert all(delay is None or delay >= 0 for delay in flip.alarms.values())
        if flip.injection.place == "weights" and np.isfinite(flip.final_loss):
            assert flip.alarms["checksum"] == 0


def test_rates_have_n_and_interval_and_agree_with_the_flips(tiny) -> None:
    found, _ = tiny
    rows = {each.indicator: each for each in detections(found)}
    assert list(rows) == [*INDICATORS, ANY]
    for name, row in rows.items():
        judged = [flip for flip in found.flips if not alarms_without(flip, name)]
        assert row.detected.n == sum(flip.even for flip in judged)
        assert row.n_left_out == 7 - len(judged)
        assert row.false_alarm_rate.n == 8
        assert row.detected.lower <= row.detected.value <= row.detected.upper
        assert sum(group.detected.n for group in row.by_bit) == len(judged)
        assert [group.name for group in row.by_bit] == ["30", "2"]
        assert (row.threshold is None) == (name not in SCORED)
    groups = {group.name: group.harmful for group in harm(found)}
    assert list(groups)[:3] == ["exponent", "lower mantissa", "bit 30"]
    assert groups["exponent"].n == 3
    assert sum(rate.n for name, rate in groups.items() if "," in name) == groups["bit 30"].n == 4
    kept = survivals(found)
    assert [each.mitigation for each in kept] == list(MITIGATIONS)
    n_harmful = sum(flip.harmful for flip in found.flips)
    for each in kept:
        assert each.survived.n == n_harmful
        assert each.survived.n + each.harmed.n == len(found.replayed)
        assert each.clean_loss_change.lower <= each.clean_loss_change.upper


def test_an_alarm_of_the_clean_run_is_no_detection(tiny) -> None:
    found, _ = tiny
    seen = dict.fromkeys(INDICATORS, 0)
    flips = tuple(
        replace(flip, alarms=seen, clean_alarms=frozenset(("loss",) if at < 3 else ()))
        for at, flip in enumerate(found.flips)
    )
    rows = {row.indicator: row for row in detections(replace(found, flips=flips))}
    assert (rows["loss"].detected.n, rows["loss"].n_left_out) == (3, 3)
    assert (rows["key_norm"].detected.n, rows["key_norm"].n_left_out) == (6, 0)
    assert rows[ANY].n_left_out == 3


def test_flips_of_one_clean_run_are_no_more_than_that_run(tiny) -> None:
    found, _ = tiny
    flip = replace(found.flips[0], alarms=dict.fromkeys(INDICATORS), clean_alarms=frozenset())
    row = detections(replace(found, flips=(flip,) * 48))[0]
    assert (row.detected.n, row.detected.value) == (48, 0)
    assert row.detected.upper == pytest.approx(0.95)  # of one trial


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 83}, "steps must be at least 84, got 83"),
        ({"n_injections": 0}, "injections must be at least 1"),
        ({"false_alarms": 0.5}, "false alarms must be above 0 and at most 0.25, got 0.5"),
    ],
)
def test_a_lab_that_shows_nothing_is_refused(changed: dict, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        experiment(replace(TINY, **changed))
