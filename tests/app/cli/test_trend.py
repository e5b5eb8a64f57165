"""faultline trend: verdicts of failure logs, what was changed near a change, what is not judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
N_NODES = 20
MAPPING = """cluster = "hal"
[columns]
node = "node"
start = "start"
"""


def day(number: int) -> str:
    return f"{BEGIN + number * DAY:%Y-%m-%d}"


def table(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def store_of(faultline: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """A store of a failure log, whose nodes an inventory lists or nothing does."""

    def make(failures: list[int], *, inventory: bool = True, facts: tuple[str, ...] = ()) -> Path:
        root = tmp_path / "store"
        rows = [
            f"n{(number * 7 + k) % N_NODES},{BEGIN + number * DAY + k * timedelta(hours=3):%FT%TZ}"
            for number, n in enumerate(failures)
            for k in range(n)
        ]
        mapping = table(tmp_path / "mapping.toml", [MAPPING])
        read = [("failure-log", table(tmp_path / "failures.csv", ["node,start", *rows]),
                 "--mapping", mapping)]  # fmt: skip
        if inventory:
            nodes = [f"n{k},8,{day(0)}T00:00:00Z" for k in range(N_NODES)]
            path = table(tmp_path / "nodes.csv", ["node,gpus,observed_at", *nodes])
            read.append(("node-inventory", path, "--cluster", "hal"))
        if facts:
            path = table(tmp_path / "facts.csv", ["node,key,value,from_at", *facts])
            read.append(("node-facts", path, "--cluster", "hal"))
        for arguments in read:
            said = faultline("ingest", *arguments, "--store", root)
            assert said.code == 0, said
        return root

    return make


@pytest.mark.slow
def test_a_change_is_dated_and_the_roll_out_near_it_is_named(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    facts = [
        f"n{k},driver,{value},{day(at)}T00:00:00Z"
        for k in range(N_NODES)
        for value, at in (("535", 0), ("550", 99 + k % 2))
    ]
    store = store_of([1] * 100 + [3] * 100, facts=tuple(facts))
    found = faultline("trend", "--store", store, "--format", "json").json
    assert found["verdict"] == "worse"
    (change,) = found["change_points"]
    assert change["lower"] <= change["at"] <= change["upper"]
    assert day(96) <= change["at"] <= day(104)
    before, after = change["rate_before"], change["rate_after"]
    assert before["value"] == pytest.approx(1000 / N_NODES, rel=0.05)
    assert after["value"] == pytest.approx(3000 / N_NODES, rel=0.05)
    (near,) = change["near"]
    assert (near["kind"], near["before"], near["value"]) == ("driver", "535", "550")
    assert (near["n_nodes"], near["of_nodes"]) == (N_NODES, N_NODES)
    said = faultline("trend", "--store", store, "--format", "table")
    assert said.out.startswith("The failure rate rose from")
    assert "driver 535 to 550" in said.out
    header, *rows = faultline("trend", "--store", store, "--format", "csv").out.splitlines()
    assert header.startswith("begin,between,end,failures,exposure,rate")
    assert len(rows) == 2


def test_where_the_nodes_are_not_known_days_are_counted_and_it_says_so(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    store = store_of([1] * 100 + [3] * 100, inventory=False)
    said = faultline("trend", "--store", store, "--format", "json")
    assert (said.json["verdict"], said.json["exposure_unit"]) == ("worse", "day")
    assert said.json["rate_unit"] == "per day"
    (change,) = said.json["change_points"]
    assert change["rate_after"]["value"] == pytest.approx(3, rel=0.05)
    assert "a fleet that grows fails more often" in said.err


@pytest.mark.slow
def test_a_steady_rate_is_called_so_and_few_failures_are_not(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    store = store_of([2, 1, 3] * 60)
    assert faultline("trend", "--store", store, "--format", "json").json["verdict"] == "steady"
    few = ("--store", store, "--from", day(0), "--to", day(4))
    said = faultline("trend", *few, "--format", "json")
    assert (said.json["verdict"], said.json["p_value"]) == ("unknown", None)
    assert said.json["growth"]["value"] is None
    out = faultline("trend", *few, "--format", "table").out
    assert "cannot be judged from 8 failures: it takes 10" in out


def test_where_no_failure_could_be_seen_nothing_is_judged(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    period = ("--from", "1999-01-01", "--to", "1999-02-01")
    said = faultline("trend", "--store", sacct_store, *period, "--format", "json")
    assert (said.json["verdict"], said.json["failures_judged"]) == ("unknown", None)
    assert said.json["reason"]


def test_the_demo_has_its_roll_out(faultline: Callable[..., Any], demo_store: Path) -> None:
    said = faultline("trend", "--store", demo_store, "--format", "json")
    assert said.json["synthetic"] is True
    drivers = [each for each in said.json["rollouts"] if each["kind"] == "driver"]
    assert [each["value"] for each in drivers] == ["550.127.05"]
    assert said.json["failures_judged"] == faultline(
        "mttf", "--store", demo_store, "--format", "json"
    ).json["failures"]  # fmt: skip


def test_nodes_are_told_apart_by_a_fact(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    facts = tuple(f"n{k},batch,{'old' if k % 2 else 'new'},{day(0)}T00:00:00Z" for k in range(18))
    root = store_of([2] * 40, facts=facts)
    found = faultline("trend", "--by", "batch", "--store", root, "--format", "json").json
    by_level = {row["level"]: row for row in found["groups"]}
    assert by_level.keys() == {"old", "new"}
    assert {row["nodes"] for row in by_level.values()} == {9}
    said = faultline("trend", "--by", "batch", "--store", root, "--format", "table")
    assert "2 nodes of unknown batch left out" in said.err
    alone = faultline("trend", "--by", "driver", "--store", root, "--format", "table")
    assert "not told apart by driver: when the period ended no driver is known" in alone.out
