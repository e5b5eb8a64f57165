"""faultline policies: stated jobs, those of a store, and what cannot be judged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from analytics.efficiency.ettr_forms import ettr_exact
from tests.app.cli.conftest import SACCT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


STATED = ("policies", "--gpus", 4096, "--rate-per-1000-node-days", 6.5, "--format", "json")
FEW = ("--policy", "persistent", "--policy", "gemini", "--policy", "just-in-time")


def _by_key(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["policy"]: each for each in found if each["policy"]}


def test_a_stated_job_is_ranked_with_the_exact_form_as_its_base(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    found = _by_key(faultline(*STATED, *FEW, "--queue-min", 10, "--store", tmp_path).json)
    base = found["persistent"]
    given = {each["name"]: each["value"] for each in base["parameters"]}
    exact = ettr_exact(
        512 * 6.5 / 1000 / 1440, given["restart_min"], given["interval_min"],
        write_min=given["write_min"], queue_min=given["queue_min"],
    )  # fmt: skip
    ettr = base["ettr"]
    wide = 2 * (ettr["upper"] - ettr["lower"])
    assert abs(ettr["value"] - float(exact)) < wide
    assert found["gemini"]["rank"] < base["rank"] == 3
    held = 1 - ettr["value"] - base["shares"]["wait"]  # while it waits it holds no node
    assert base["lost_gpu_hours"] == pytest.approx(4096 * 24 * 30 * held)
    assert sum(base["shares"].values()) == pytest.approx(1.0)
    assert base["ettr_simulated"] == ettr  # a stated rate leaves nothing else open
    sure = {each["name"]: each["certainty"] for each in base["parameters"]}
    assert sure["queue_min"] == "stated"
    assert sure["restart_min"] == "assumed"
    assert sure["interval_min"] == "derived"


def test_parameters_are_changed_and_say_so(faultline: Callable[..., Any], tmp_path: Path) -> None:
    only = ("--policy", "gemini", "--policy", "persistent", "--store", tmp_path)
    found = _by_key(faultline(*STATED, *only, "--set", "gemini.copies=1").json)
    assert found["gemini"]["ettr"] == found["persistent"]["ettr"]
    assert found["gemini"]["tied_with"] == ["persistent"]
    (copies,) = [each for each in found["gemini"]["parameters"] if each["name"] == "copies"]
    assert (copies["value"], copies["certainty"]) == (1.0, "stated")


def test_without_a_store_or_a_rate_they_are_listed_with_their_sources(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    found = faultline("policies", "--store", tmp_path, "--format", "json").json
    assert len(_by_key(found)) > 30
    for each in found:
        assert each["rank"] is None
        assert each["ettr"]["value"] is None
        for parameter in each["parameters"]:
            assert set(parameter) == {"name", "value", "unit", "source", "certainty"}
    assert {each["name"] for each in _by_key(found)["persistent"]["parameters"]} >= {"write_min"}
    said = faultline("policies", "--store", tmp_path, "--format", "table").out
    assert "state a job and its failure rate" in said


@pytest.mark.slow
def test_where_no_failure_was_seen_nothing_is_ranked(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    whole = "\n".join(SACCT.splitlines()[:2]) + "\n"
    (tmp_path / "sacct.txt").write_text(whole, encoding="utf-8")
    store = ("--store", tmp_path / "store")
    faultline("ingest", "sacct", tmp_path / "sacct.txt", *store)
    said = faultline("policies", *store, "--format", "table").out
    assert "cannot be judged: no failure was seen" in said
    found = faultline("policies", *store, "--format", "json").json
    assert {each["rank"] for each in found} == {None}


@pytest.mark.slow
def test_a_store_is_ranked_by_its_own_failures(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")  # the ledger is built in it
    common = ("--store", tmp_path / "store", "--format", "json")
    found = _by_key(faultline("policies", *FEW, *common).json)
    n = faultline("mttf", *common).json["failures"]
    ettr = found["persistent"]["ettr"]
    assert ettr["n"] == n
    plan = faultline("plan", *common).json["ettr"]
    for bound in ("value", "lower", "upper"):
        assert ettr[bound] == pytest.approx(plan[bound], abs=0.01)


def test_the_chance_of_a_state_in_memory(
    faultline: Callable[..., Any], refused: Callable[..., str]
) -> None:
    asked = ("policies", "--recover-from-memory", "--nodes", 16, "--copies", 2, "--format", "json")
    chance = [faultline(*asked, "--lost", lost).json["p_recover"] for lost in (2, 3, 4, 6)]
    assert [round(each, 4) for each in chance] == [0.9333, 0.8, 0.6154, 0.2238]
    assert "needs --nodes, --copies and --lost" in refused("policies", "--recover-from-memory")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "nothing"), "no policy 'nothing'"),
        (("--set", "gemnii.copies=3"), "no policy 'gemnii'"),
        (("--policy", "persistent", "--set", "gemini.copies=3"), "not among the policies"),
        (("--set", "gemini.steady_ratio=2"), "at most 1"),
        (("--set", "gemini.nothing=1"), "one of gemini"),
        (("--set", "gemini"), "POLICY.NAME=NUMBER"),
        (("--process-ratio", 0.8, "--rack-ratio", 0.4), "from 0 to 1 together"),
        (("--days", 0), "above 0"),
        (("--write-min", -1), "write_min"),
    ],
)
def test_what_cannot_be_is_refused(
    refused: Callable[..., str], tmp_path: Path, options: tuple[Any, ...], words: str
) -> None:
    assert words in refused(*STATED[:5], *options, "--store", tmp_path)


def test_a_size_without_a_store_or_a_rate_is_refused(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    assert "holds no store" in refused("policies", "--gpus", 64, "--store", tmp_path)


def test_a_size_that_fills_no_node_is_told(faultline: Callable[..., Any], tmp_path: Path) -> None:
    few = ("--policy", "persistent", "--store", tmp_path, "--format", "table")
    said = faultline("policies", "--gpus", 12, *STATED[3:5], *few)
    assert "12 GPUs are taken as whole nodes: 16 GPUs" in said.err + said.out
