"""The page on silent corruption says what the kept result of the lab says."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path

import pytest

from analytics.training.lab.injection import flipped

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "silent-corruption.md").read_text("utf-8")
RESULT = json.loads((DOCS / "silent-corruption.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(DOCS / "silent_corruption.py"))


def test_the_tables_are_those_of_the_result(script) -> None:
    assert script["page"](PAGE, RESULT) == PAGE
    changed = json.loads(json.dumps(RESULT))
    changed["by_indicator"][0]["detected"]["value"] += 0.01
    assert script["page"](PAGE, changed) != PAGE
    for name in script["tables"](RESULT):
        assert f"<!-- {name} -->" in PAGE


def test_the_result_is_of_as_many_injections_as_the_page_promises() -> None:
    assert RESULT["synthetic"] is True
    assert RESULT["n_injections"] >= 300
    assert RESULT["processor_seconds"] < 300


def test_the_figures_are_there_and_small(script) -> None:
    for name in script["charts"](RESULT):
        assert f"]({name})" in PAGE
        assert 1000 < (DOCS / name).stat().st_size < 100_000


def test_what_the_page_says_of_bits_is_so_of_a_float32() -> None:
    assert [f"{flipped(value, 30):.1e}" for value in (0.1, 1e-6)] == ["3.4e+37", "3.4e+32"]
    assert (flipped(0.0, 30), flipped(1.0, 30)) == (2.0, math.inf)
    assert math.isnan(flipped(1.5, 30))
    assert flipped(2.0, 30) < 1e-37
    assert flipped(1e-8, 27) / 1e-8 == pytest.approx(65_536)
    assert all(flipped(value, bit) < value for value in (0.1, 0.5, 1.0) for bit in range(27, 30))


def test_what_the_page_says_in_words_holds_in_the_result() -> None:
    seen = {one["indicator"]: one for one in RESULT["by_indicator"]}
    assert seen["checksum"]["false_alarm_rate"]["value"] == 0
    by_place = {one["place"]: one["detected"]["value"] for one in seen["checksum"]["by_place"]}
    assert by_place["activations"] == by_place["gradients"] == 0
    assert min(by_place["weights"], by_place["optimizer"]) > 0.9
    assert seen["loss"]["detected_harmful"]["upper"] < 0.7
    assert seen["not_finite"]["detected"]["value"] < 0.1
    assert all(one["survived"]["upper"] < 0.5 for one in RESULT["mitigations"])
    harm = {one["flips"]: one["harmful"] for one in RESULT["harm"]}
    assert harm["bit 30"]["lower"] > 0.3
    assert max(harm["lower mantissa"]["upper"], harm["upper mantissa"]["upper"]) < 0.05
    assert harm["sign"]["value"] > 0
