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
        faultline(*common, "--nodes", nodes, "--out", 0.0012).json["keep"]
        for nodes in (128, 256, 512, 1024)
    ]
    assert keep == [2, 2, 3, 4]
    said = faultline("spares", "--store", sacct_store, "--nodes", 8, "--format", "table")
    assert "cannot be judged: no record tells when nodes were out of service" in said.out
    found = faultline(*common, "--nodes", 8).json
    assert (found["keep"], found["worth"], found["spares"]) == (None, None, [])


def test_a_fleet_tells_its_own_share(faultline: Callable[..., Any], lanl_store: Path) -> None:
    common = ("--store", lanl_store, "--cluster", "lanl-18", "--format", "json")
    found = faultline("spares", "--nodes", 512, *common).json
    up = faultline("availability", *common).json
    assert found["out_ratio"] == up["unplanned_ratio"]
    assert found["keep_lower"] <= found["keep"] <= found["keep_upper"]
    at_keep = found["spares"][found["keep"]]
    assert at_keep["enough"] >= 0.99
    as_it_was = found["spares"][found["keep_as_the_fleet_was"]]
    assert as_it_was["measured"] >= 0.99
    gained = [512 * row["measured"] - row["spares"] for row in found["spares"]]
    assert gained.index(max(gained)) == found["worth"]
    assert found["worth"] < found["spares"][-1]["spares"]


@pytest.mark.parametrize("options", [("--out", 1.5), ("--out", -0.1), ("--enough", 1.0)])
def test_shares_that_are_none_are_refused(
    refused: Callable[..., str], sacct_store: Path, options: tuple[Any, ...]
) -> None:
    assert "must be in" in refused("spares", "--nodes", 8, *options, "--store", sacct_store)
