"""faultline plan: stated jobs, those of a store, and what cannot be judged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.cli.conftest import SACCT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATED = ("plan", "--gpus", 12_000, "--rate-per-1000-node-days", 6.5)


def test_twelve_thousand_gpus_by_the_first_order_form(faultline: Callable[..., Any]) -> None:
    found = faultline(*STATED, "--form", "v2", "--format", "json").json
    assert found["ettr"]["value"] == pytest.approx(0.740, abs=5e-4)
    required = {each["parameter"]: each["value"] for each in found["required"]}
    assert required["rate_per_1000_node_days"] == pytest.approx(0.96, abs=5e-3)
    assert required["restart_min"] is None
    again = faultline(
        *STATED, "--form", "v2", "--write-min", required["write_min"], "--format", "json"
    ).json
    assert again["ettr"]["value"] == pytest.approx(0.9)
    ends = {each["parameter"]: each for each in found["sensitivity"]}
    assert ends["write_min"]["ettr_low"] < found["ettr"]["value"] < ends["write_min"]["ettr_high"]


def test_it_is_the_ettr_that_the_command_of_ettr_expects(faultline: Callable[..., Any]) -> None:
    costs = ("--restart-min", 5, "--write-min", 5, "--queue-min", 7)
    plan = faultline(*STATED, *costs, "--format", "json").json
    ettr = faultline("ettr", *STATED[1:], *costs, "--format", "json").json
    assert plan["ettr"]["value"] == pytest.approx(ettr["exact"])


@pytest.mark.slow
def test_a_store_brings_its_rate_and_habits(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")  # the ledger is built in it
    common = ("--store", tmp_path / "store", "--format", "json")
    found = faultline("plan", *common).json
    rate = faultline("mttf", *common).json["rate_per_1000_node_days"]
    assert found["ettr"]["n"] == rate["n"]
    (moved,) = [each for each in found["sensitivity"] if each["measured"]]
    assert (moved["low"], moved["high"]) == (rate["lower"], rate["upper"])
    assert found["synthetic"] is True


@pytest.mark.slow
def test_drained_nodes_are_those_that_lemons_ranks_first(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")
    common = ("--store", tmp_path / "store", "--format", "json")
    rows = faultline("plan", "--drained", *common).json["drained"]
    plan = faultline("plan", *common).json
    assert rows[0]["ettr"]["value"] == pytest.approx(plan["ettr"]["value"])
    rates = [each["rate_per_1000_node_days"]["value"] for each in rows]
    assert rates == sorted(rates, reverse=True)
    assert rows[1]["node"] == faultline("lemons", *common).json[0]["node"]


def test_where_no_failure_was_seen_nothing_is_planned(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "sacct.txt").write_text("\n".join(SACCT.splitlines()[:2]) + "\n", encoding="utf-8")
    store = ("--store", tmp_path / "store")
    faultline("ingest", "sacct", tmp_path / "sacct.txt", *store)
    said = faultline("plan", *store, "--format", "table").out
    assert "cannot be judged: no failure was seen" in said
    assert faultline("plan", *store, "--format", "json").json["ettr"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target-ettr", 1.2), "target must be in"),
        (("--restart-min", -1), "restart_min"),
        (("--drained",), "of the nodes of a store"),
        (("--gpus-per-node", 0), "gpus_per_node"),
    ],
)
def test_what_cannot_be_is_refused(
    refused: Callable[..., str], options: tuple[Any, ...], words: str
) -> None:
    assert words in refused(*STATED, *options)
    assert "--gpus must be given" in refused("plan", "--rate-per-1000-node-days", 6.5)


def test_a_job_that_hardly_fails_has_room(faultline: Callable[..., Any]) -> None:
    rare = ("plan", "--gpus", 8, "--rate-per-1000-node-days", 1e-6, "--format", "json")
    required = {each["parameter"]: each for each in faultline(*rare).json["required"]}
    assert required["interval_min"]["met"] is True
    assert required["interval_min"]["value"] is None
