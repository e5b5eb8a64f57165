"""faultline lab sdc: what it prints, what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.cli.lab import bits

if TYPE_CHECKING:
    from collections.abc import Callable

TINY = ("lab", "sdc", "--injections", 4, "--bits", "30,2", "--steps", 84, "--false-alarms", "0.25")


@pytest.mark.slow
def test_the_lab_says_which_indicator_sees_which_flip(faultline: Callable[..., Any]) -> None:
    told = faultline(*TINY, "--places", "weights,gradients", "--seed", 3)
    record = told.json
    assert told.err.startswith("synthetic: a small transformer in NumPy")
    assert record["synthetic"] is True
    assert len(record["injections"]) == 5
    assert {each["place"] for each in record["injections"]} == {"weights", "gradients"}
    rows = {each["indicator"]: each for each in record["by_indicator"]}
    assert rows["checksum"]["detected"]["n"] == 4
    assert {each["bit"] for each in rows["loss"]["by_bit"]} == {30, 2}
    assert [each["mitigation"] for each in record["mitigations"]] == [
        "gradient_clipping", "qk_normalisation", "lower_learning_rate", "singularity_smoothing",
    ]  # fmt: skip
    assert len(record["mitigations"][0]["survived"]) == 5
    again = faultline(*TINY, "--places", "weights,gradients", "--seed", 3).json
    del record["processor_seconds"], again["processor_seconds"]
    assert again == record


def test_bits_are_named_one_by_one_and_from_to() -> None:
    assert bits("16-18, 31") == (31, 18, 17, 16)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--bits", "32"), "'32' is no bit of a float32"),
        (("--bits", ","), "',' is no bit"),
        (("--places", "disk"), "places must be among weights, activations, gradients, optimizer"),
        (("--steps", "50"), "steps must be at least 84, got 50"),
        (("--injections", "0"), "injections must be at least 1"),
        (("--false-alarms", "0"), "false alarms must be above 0"),
        (("--conf-level", "90"), "pass 0.9 for 90 %"),
    ],
)
def test_what_is_no_experiment_is_refused(
    refused: Callable[..., str], asked: tuple[str, ...], message: str
) -> None:
    assert message in refused("lab", "sdc", *asked)


def test_another_lab_is_refused(refused: Callable[..., str]) -> None:
    assert "sdc" in refused("lab", "chemistry")
