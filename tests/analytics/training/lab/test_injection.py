"""Flipped bits: what a flip is, where it lands, and who can see it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import AnalysisError
from analytics.training.lab.injection import PLACES, TAPS, Injected, Injection, flipped, planned
from analytics.training.lab.training import Recipe, State, step
from analytics.training.lab.transformer import Shape

RECIPE = Recipe(shape=Shape(n_tokens=5, length=4, width=4, n_layers=2, hidden=6), replicas=3)
HIT = Injection(0, "weights", "head", 7, 20, 2, persistent=False, replica=1)


def trained(*injections: Injection, steps: int = 5) -> tuple[State, Injected, list[bool]]:
    state, faults = State.initial(RECIPE, [[1]] * len(injections)), Injected(injections)
    given_tokens = np.random.default_rng(3).integers(0, 5, (steps, 1, 3, 2, 5))
    differ = []
    for at in range(steps):
        many = np.repeat(given_tokens[at], len(injections), axis=0)
        differ.append(bool(step(RECIPE, state, at, many, faults).replicas_differ[0]))
    return state, faults, differ


@given(st.floats(width=32, allow_nan=False), st.integers(0, 31))
def test_a_bit_flipped_twice_is_the_value_again(value: float, bit: int) -> None:
    there = flipped(value, bit)
    if not math.isnan(there):  # a NaN's bits need not pass through a float of 64 bits
        assert flipped(there, bit) == value
        assert there != value or value == 0


@given(st.floats(2.0**-125, 2.0**126, width=32))
def test_the_bits_of_a_float_are_those_of_ieee_754(value: float) -> None:
    assert flipped(value, 31) == -value
    assert flipped(value, 23) in (2 * value, value / 2)
    assert abs(flipped(value, 22) - value) == 2.0 ** (math.frexp(value)[1] - 2)


def test_a_checksum_sees_a_flipped_weight_at_once_and_a_flipped_gradient_never() -> None:
    assert trained(HIT)[2] == [False, False, True, True, True]
    assert trained(replace(HIT, place="optimizer", tensor="first moment of head", bit=30))[2][2]
    for place in ("gradients", "activations"):
        tensor = "attention_0" if place == "activations" else "head"
        assert not any(trained(replace(HIT, place=place, tensor=tensor, persistent=True))[2])


@pytest.mark.parametrize("place", PLACES)
def test_a_flip_changes_the_run_from_its_step_on_and_not_before(place: str) -> None:
    tensor = "second moment of head" if place == "optimizer" else f"{TAPS[0]}_1"
    hit = replace(HIT, place=place, tensor=tensor, bit=22, persistent=False, step=2)
    clean = replace(hit, step=99)
    same, _, _ = trained(hit, clean, steps=2)
    np.testing.assert_array_equal(same.parameters[0], same.parameters[1])
    other, faults, _ = trained(hit, clean, steps=3)
    assert not np.array_equal(other.parameters[0], other.parameters[1])
    assert set(faults.before) == {0}


def test_a_stuck_bit_stays_and_a_transient_one_is_trained_over() -> None:
    mask = np.uint32(1 << 18)
    stuck, faults, _ = trained(replace(HIT, bit=18, persistent=True), steps=4)
    before = np.array([faults.before[0]], np.float32).view(np.uint32)[0]
    faults.of_state(4, stuck)
    assert stuck.parameters[0, 1, 7].view(np.uint32) & mask == ~before & mask


def test_plans_spread_evenly_over_places_and_bits() -> None:
    rng = np.random.default_rng(0)
    plan = planned(RECIPE, 256, rng, steps=100, runs=[4, 6], bits=tuple(range(32)))
    assert set(Counter((each.place, each.bit) for each in plan).values()) == {2}
    assert Counter(each.persistent for each in plan) == {True: 128, False: 128}
    assert {each.run for each in plan} == {4, 6}
    assert {each.replica for each in plan} == {0, 1, 2}
    assert all(25 <= each.step <= 60 for each in plan)
    for bit in (30, 3):
        assert {each.persistent for each in plan if each.bit == bit} == {True, False}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"places": ("disk",)}, "places must be among weights, .*, got disk"),
        ({"places": ()}, "got none: name some"),
        ({"bits": (32,)}, "bits must be from 0 to 31, got 32"),
        ({"bits": ()}, "got none: name bits"),
    ],
)
def test_a_plan_refuses_what_is_no_place_and_no_bit(asked: dict, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        planned(RECIPE, 4, np.random.default_rng(0), steps=100, runs=[0], **asked)


def test_plans_spread_evenly_over_clean_runs() -> None:
    plan = planned(RECIPE, 50, np.random.default_rng(1), steps=100, runs=range(3, 23))
    n_flips = np.bincount([each.run for each in plan], minlength=23)[3:]
    assert set(n_flips) == {2, 3}
