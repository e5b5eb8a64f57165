"""faultline demo: a synthetic store, its truth beside it, and never over real data."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = ("demo", "--jobs", "400", "--nodes", "8")


@pytest.mark.slow
def test_it_is_built_anew_and_the_seed_decides_and_every_form_says_the_same(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    root, truth = tmp_path / "store", tmp_path / "truth.json"

    def built(*options: object) -> tuple[Any, float]:
        said = faultline(*SMALL, "--store", root, *options)
        assert said.code == 0
        found = faultline("mttf", "--store", root, "--min-gpus", 0).json
        return said, found["exposure_node_days"]

    said, first = built("--truth", truth)
    assert (said.json["jobs"], said.json["nodes"], said.json["synthetic"]) == (400, 8, True)
    assert said.json["seconds"] > 0
    planted = json.loads(truth.read_text(encoding="utf-8"))
    assert {"rate_per_1000_node_days", "lemons", "attempts", "ledger"} <= set(planted)
    info = faultline("info", "--store", root).json
    assert info["tables"]["jobs"] == 400
    assert info["synthetic"] is True

    as_csv, same = built("--seed", 0, "--format", "csv")
    as_table, other = built("--seed", 1, "--format", "table")
    assert same == first != other
    assert faultline("info", "--store", root).json["tables"]["jobs"] == 400
    (row,) = csv.DictReader(io.StringIO(as_csv.out))
    assert (row["jobs"], row["synthetic"]) == ("400", "True")
    assert "jobs       400\n" in as_table.out


def test_real_data_are_never_overwritten(
    refused: Callable[..., str], faultline: Callable[..., Any], sacct_store: Path
) -> None:
    before = (sacct_store / "CURRENT").read_bytes()
    told = refused(*SMALL, "--store", sacct_store)
    assert "holds real data: the demo goes elsewhere" in told
    assert (sacct_store / "CURRENT").read_bytes() == before
    assert faultline("info", "--store", sacct_store).json["tables"]["jobs"] == 3


REFUSED = {
    "no jobs": (["--jobs", "0"], "jobs must be a whole number from 1"),
    "fewer than no nodes": (["--nodes", "-1"], "nodes must be a whole number from 1"),
    "no time": (["--days", "0"], "days must be above 0"),
    "time that is no number": (["--days", "nan"], "days must be above 0"),
    "a negative seed": (["--seed", "-1"], "seed must be a whole number from 0"),
    "jobs in words": (["--jobs", "many"], "invalid int value: 'many'"),
    "a truth without a folder": (["--truth", "nowhere/truth.json"], "is no file in a folder"),
    "a truth that is a folder": (["--truth", "/"], "is no file in a folder"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_demo_that_cannot_be_is_refused_before_it_is_built(
    refused: Callable[..., str], tmp_path: Path, case: tuple[list[str], str]
) -> None:
    options, message = case
    assert message in refused("demo", "--store", tmp_path / "store", *options)
    assert not (tmp_path / "store" / "CURRENT").exists()
