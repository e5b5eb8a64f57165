"""The answer of the lab: its words and numbers come from the flips, and say what they are."""

from __future__ import annotations

import json

import pytest

from analytics.training.lab.experiment import Lab, experiment
from analytics.training.lab.training import Recipe
from analytics.training.lab.transformer import Shape
from app.answers.training import lab

TINY = Lab(
    n_injections=4, steps=84, bits=(30,), false_alarms=0.25, mitigations=("gradient_clipping",),
    recipe=Recipe(shape=Shape(n_tokens=8, length=4, width=4, n_layers=1, hidden=4), replicas=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def answer():
    return lab.answer(experiment(TINY), processor_seconds=1.0)


def test_all_of_it_is_called_synthetic(answer) -> None:
    assert answer.record["synthetic"] is True
    assert "synthetic" in answer.sentence
    assert "not your run" in answer.notes[0]


def test_tables_and_json_hold_the_same_flips(answer) -> None:
    harmful = [each for each in answer.record["injections"] if each["harmful"]]
    assert answer.sentence.startswith(f"{len(harmful)} of 5 flipped bits did harm")
    assert len(answer.table("injections")) == len(harmful)
    assert len(answer.table("by_indicator")) == len(lab.INDICATORS)
    assert len(answer.table("mitigations")) == 1
    assert len(answer.sheet.rows) == 5
    seen = {each["indicator"]: each for each in answer.record["by_indicator"]}
    for each in answer.record["injections"]:
        first = [name for name, delay in each["delays"].items() if delay == each["delay_steps"]]
        assert each["first_indicator"] is None or each["first_indicator"] in {
            lab.INDICATORS[name] for name in first
        }
    assert seen["checksum"]["detected"].n == 4
    assert answer.record["severest_bit"] == 30


def test_json_holds_no_infinity(answer) -> None:
    def plain(value):
        return vars(value)

    written = json.loads(json.dumps(answer.record, default=plain, allow_nan=False))
    assert set(written) == set(answer.record)
    assert len(written["injections"]) == len(answer.record["injections"]) > 0


def test_pictures_are_of_the_tables(answer) -> None:
    names, bits, grid = answer.chart("lab_detection").data
    assert len(names) == len(grid) == len(lab.INDICATORS)
    assert bits == (30,)
    names, survived, finite = answer.chart("lab_mitigations").data
    assert names == ("Gradient clipping",)
    assert [each["survived"] for each in answer.record["mitigations"]] == list(survived)
    assert len(finite) == len(survived)
