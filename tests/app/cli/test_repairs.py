"""faultline repairs and rates: keys in JSON, tables and sheets, and what is refused."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ESTIMATE = {"value", "lower", "upper", "conf_level", "n"}


@pytest.mark.slow
def test_rates_of_the_demo(faultline: Any, demo_store: Path) -> None:
    found = faultline("rates", "--by", "driver", "--store", demo_store, "--format", "json").json
    assert found["synthetic"]
    assert found["by"] == "driver"
    old, new = found["levels"]
    assert old["level"] == found["reference"]
    assert old["ratio"]["value"] == 1.0
    assert set(new["ratio"]) == set(new["rate_per_1000_node_days"]) == ESTIMATE
    assert old["failures"] + new["failures"] > 0
    plain = faultline("rates", "--store", demo_store, "--adjust", "--format", "json").json
    assert plain["adjusted_for"] == []
    assert plain["levels"][1]["ratio"]["upper"] != new["ratio"]["upper"]
    said = faultline("rates", "--by", "RACK", "--store", demo_store, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["level"] for row in rows} >= {"r001", "r002"}
    assert {"ratio", "ratio_lower", "ratio_upper", "stands_out"} <= set(rows[0])


def test_rates_by_what_nobody_knows(faultline: Any, demo_store: Path, sacct_store: Path) -> None:
    said = faultline("rates", "--by", "colour", "--store", demo_store, "--format", "table")
    assert "No colour is known" in said.out
    nothing = faultline("rates", "--store", sacct_store, "--format", "table")
    assert "ingest node-facts" in nothing.out


def test_repairs_of_the_demo(faultline: Any, demo_store: Path) -> None:
    found = faultline("repairs", "--store", demo_store, "--format", "json").json
    assert found["horizon_days"] == 28.0
    assert set(found["fails_again_ratio"]) == set(found["beside_nodes"]) == ESTIMATE
    assert {"action", "repairs", "failed_again", "verdict"} <= set(found["actions"][0])
    assert sum(each["repairs"] for each in found["actions"]) == found["repairs"]
    for node in found["failed_again"]:
        assert len(node["returns"]) == node["did_not_hold"]
        assert node["for_vendor"] == (node["by_hardware"] >= 2)
    short = faultline("repairs", "--horizon-days", "2", "--store", demo_store, "--format", "json")
    before = sum(each["exposure_node_days"] for each in found["actions"])
    assert 0 < sum(each["exposure_node_days"] for each in short.json["actions"]) < before
    said = faultline("repairs", "--store", demo_store, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["action"] for row in rows] == [each["action"] for each in found["actions"]]


def test_repairs_without_records_and_what_is_refused(
    faultline: Any, refused: Callable[..., str], sacct_store: Path
) -> None:
    said = faultline("repairs", "--store", sacct_store, "--format", "table")
    assert "No return to service is known" in said.out
    assert "ingest tickets" in said.out
    assert "horizon_days must be" in refused("repairs", "--store", sacct_store, "--horizon-days=0")
    assert "invalid choice: 'mood'" in refused("rates", "--adjust", "mood")
