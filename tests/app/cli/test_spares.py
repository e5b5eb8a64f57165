"""faultline spares: of the fleet as it was, of a stated share, and of a fleet of which nothing is
known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_stated_share_needs_no_records(faultline: Callable[..., Any], sacct_store: Path) -> None:
    common = ("spares", "--store", sacct_store, "--format", "json")
    keep = [
        faultline(*common, "--nodes", nodes, "--p-failure", 0.0012).json["spares"]
        for nodes in (128, 256, 512, 1024)
    ]
    assert keep == [2, 2, 3, 4]
    many = faultline(*common, "--nodes", 1_000_000, "--p-failure", 0.01).json
    assert many["p_enough"] >= 0.99
    assert many["spares"] in [row["spares"] for row in many["by_spares"]]
    said = faultline("spares", "--store", sacct_store, "--nodes", 8, "--format", "table")
    assert "cannot be judged: no record tells when nodes were out of service" in said.out
    found = faultline(*common, "--nodes", 8).json
    assert (found["spares"], found["worth"], found["by_spares"]) == (None, None, [])


def test_a_fleet_tells_its_own_share(faultline: Callable[..., Any], lanl_store: Path) -> None:
    common = ("--store", lanl_store, "--cluster", "lanl-18", "--format", "json")
    found = faultline("spares", "--nodes", 512, *common).json
    up = faultline("availability", *common).json
    assert found["out_ratio"] == up["unplanned_ratio"]
    assert found["keep_lower"] <= found["spares"] <= found["keep_upper"]
    at_keep = found["by_spares"][found["spares"]]
    assert at_keep["p_enough"] == found["p_enough"] >= 0.99
    as_it_was = found["by_spares"][found["keep_as_the_fleet_was"]]
    assert as_it_was["p_enough_as_the_fleet_was"] >= 0.99
    gained = [512 * row["p_enough_as_the_fleet_was"] - row["spares"] for row in found["by_spares"]]
    assert gained.index(max(gained)) == found["worth"]
    assert found["worth"] < found["by_spares"][-1]["spares"]


@pytest.mark.parametrize(
    "options", [("--p-failure", 1.5), ("--p-failure", -0.1), ("--quantile", 1.0)]
)
def test_shares_that_are_none_are_refused(
    refused: Callable[..., str], sacct_store: Path, options: tuple[Any, ...]
) -> None:
    assert "must be in" in refused("spares", "--nodes", 8, *options, "--store", sacct_store)


def test_a_repair_of_stated_length_makes_the_share_with_the_rate_of_failures(
    faultline: Callable[..., Any],
    demo_store: Path,
    sacct_store: Path,
    refused: Callable[..., str],
) -> None:
    common = ("--store", demo_store, "--format", "json")
    found = faultline("spares", "--nodes", 64, "--repair-hours", 48, *common).json
    rate = faultline("mttf", *common).json["rate_per_1000_node_days"]
    out = rate["value"] / 1000 * 2
    assert found["out_ratio"]["value"] == pytest.approx(out / (1 + out))
    assert found["out_ratio"]["n"] == rate["n"]
    row = found["by_spares"][1]
    assert row["gpu_hours_saved"] == pytest.approx(8 * row["node_hours_saved"])
    both = ("--repair-hours", 48, "--p-failure", 0.1)
    assert "leave one out" in refused("spares", "--nodes", 8, *both, "--store", sacct_store)
