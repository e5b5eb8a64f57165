"""faultline survival: what it says of lives, and of tables that say little."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

LIVES = Path(__file__).resolve().parents[2] / "references" / "lives.csv"
TITAN = Path(__file__).resolve().parents[4] / "shared" / "data" / "titan" / "gc_summary_loc.csv"


def table(path: Path, rows: Sequence[Sequence[object]], header: str = "hours,died") -> str:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def lives(shape: float, batch: str = "") -> list[tuple[object, ...]]:
    rng = np.random.default_rng(4)
    age, end = 1000 * rng.weibull(shape, 300), rng.uniform(100, 2500, 300)
    rows = zip(
        np.minimum(age, end).round(2).tolist(), (age <= end).astype(int).tolist(), strict=True
    )
    return [(*row, batch) if batch else row for row in rows]


@pytest.mark.parametrize(
    ("shape", "hazard", "says"),
    [
        (0.6, "infant mortality", "the young die sooner"),
        (1.0, "even", "age makes no difference"),
        (2.5, "wear-out", "the old die sooner"),
    ],
)
def test_it_says_who_dies_sooner(
    faultline: Any, tmp_path: Path, shape: float, hazard: str, says: str
) -> None:
    path = table(tmp_path / "lives.csv", lives(shape))
    found = faultline("survival", path, "--format", "json").json
    assert (found["hazard"], found["unit"], found["n"]) == (hazard, "hours", 300)
    assert found["shape"]["lower"] < shape < found["shape"]["upper"]
    assert found["families"][0]["aic"] == min(each["aic"] for each in found["families"])
    said = faultline("survival", path, "--format", "table")
    assert says in said.out
    assert "watched from age 0" in said.err


def test_groups_stand_beside_one_another(faultline: Any, tmp_path: Path) -> None:
    short = [(age / 3, died, "b") for age, died, *_ in lives(1.5)]
    rows = [*lives(1.5, "a"), *short, (5, 1, "")]
    path = table(tmp_path / "lives.csv", rows, "days,dead,batch")
    found = faultline("survival", path, "--by", "BATCH", "--format", "json").json
    by_name = {group["name"]: group for group in found["groups"]}
    assert set(by_name) == {"a", "b"}
    assert by_name["a"]["rate"]["upper"] < by_name["b"]["rate"]["lower"]
    assert all(group["differs"] for group in found["groups"])
    assert found["log_rank"]["p_value"] < 1e-9
    assert found["n"] == 601
    alike = faultline(
        "survival", table(tmp_path / "same.csv", [*lives(1.5, "a"), *lives(1.5, "b")], "days,dead,g"),
        "--by", "g", "--format", "json",
    ).json  # fmt: skip
    assert not any(group["differs"] for group in alike["groups"])


def test_who_was_watched_late_counts_from_then_on(faultline: Any, tmp_path: Path) -> None:
    rows = [(age, died, min(age * 0.9, 200.0)) for age, died in lives(1.0)]
    path = table(tmp_path / "lives.csv", rows, "hours,died,first_seen")
    whole = faultline("survival", path, "--format", "json").json
    late = faultline("survival", path, "--since-age", "first_seen", "--format", "json").json
    assert late["exposure"] < whole["exposure"]
    assert late["rate"]["value"] > whole["rate"]["value"]


def test_none_died_says_what_that_leaves_open(faultline: Any, tmp_path: Path) -> None:
    path = table(tmp_path / "lives.csv", [(10, 0), (20, "no"), (30, "False")])
    said = faultline("survival", path, "--format", "json")
    found = said.json
    assert (found["n_deaths"], found["families"], found["median_life"]["value"]) == (0, [], None)
    assert found["hazard"] == "too little to tell"
    assert found["rate"]["upper"] == pytest.approx(2.9957 / 60, rel=1e-4)
    told = faultline("survival", path, "--format", "table").out
    assert "No death of 3 parts in 60.0 part-hours: at most 0.0499 per hour." in told


def test_rows_that_say_nothing_are_left_out_and_told(faultline: Any, tmp_path: Path) -> None:
    rows = [(-1, 1), ("", 1), (5, "perhaps"), (5, ""), (7, 1), ("inf", 0), (9, 0)]
    said = faultline("survival", table(tmp_path / "lives.csv", rows), "--format", "json")
    assert (said.json["n"], said.json["n_left_out"]) == (2, 5)
    assert "5 rows left out, the first of line 2" in said.err


@pytest.mark.parametrize(
    ("header", "options", "says"),
    [
        ("hours,end", [], "has no column died or dead or failed"),
        ("length,died", [], "name it with --age; there are length, died"),
        ("hours,died", ["--by", "rack"], "has no column rack: name it with --by"),
    ],
)
def test_a_column_that_is_not_there_is_named(
    faultline: Any, tmp_path: Path, header: str, options: list[str], says: str
) -> None:
    said = faultline("survival", table(tmp_path / "lives.csv", [(1, 1)], header), *options)
    assert said.code == 2
    assert says in said.err


def test_a_table_without_a_life_is_refused(faultline: Any, tmp_path: Path) -> None:
    said = faultline("survival", table(tmp_path / "lives.csv", [("a", "b")]))
    assert said.code == 2
    assert "holds no life (1 rows left out, the first of line 2)" in said.err


def test_causes_stand_beside_what_one_of_them_less_would_spare(faultline: Any) -> None:
    options = (str(LIVES), "--cause", "cause", "--by", "batch", "--format")
    found = faultline("survival", *options, "json").json
    last = found["ages"][-1]
    shares = [cause["by_age"][-1]["incidence"]["value"] for cause in found["causes"]]
    assert sum(shares) == pytest.approx(1 - last["survival"]["value"], abs=1e-12)
    assert {cause["cause"]: cause["n_deaths"] for cause in found["causes"]} == {
        "link": 83, "memory": 82,
    }  # fmt: skip
    for cause in found["causes"]:
        assert cause["by_age"][-1]["survival_without"]["value"] > last["survival"]["value"]
        assert 0 < cause["gray"]["p_value"] < 1
    assert "upper bound" in faultline("survival", *options, "table").err


def test_several_columns_of_causes_tell_who_died_of_both(faultline: Any, tmp_path: Path) -> None:
    rows = [(1, 1, 1, 0), (2, 1, 1, 1), (3, 1, 0, 1), (4, 1, 0, 0), (5, 0, 1, 1)]
    path = table(tmp_path / "lives.csv", rows, "days,died,bus,memory")
    found = faultline("survival", path, "--cause", "bus,memory", "--format", "json").json
    assert {cause["cause"]: cause["n_deaths"] for cause in found["causes"]} == {
        "bus": 1, "bus and memory": 1, "memory": 1, "unknown": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cause", "cause"), "--cause is of a table of lives: name its FILE"),
        ((str(LIVES), "--from", "2026-01-01"), "--from is of the jobs of a store: leave out FILE"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    faultline: Any, demo_store: Path, arguments: tuple[str, ...], says: str
) -> None:
    said = faultline("survival", *arguments, "--store", str(demo_store))
    assert said.code == 2
    assert says in said.err


def test_what_the_store_cannot_see_is_told(faultline: Any, demo_store: Path) -> None:
    said = faultline("survival", "--store", str(demo_store), "--format", "json")
    assert said.json["rate"] is None  # MTTF gives it
    assert said.json["days_seen"] <= said.json["days"]
    assert ("Failures could be seen on" in said.err) == (said.json["days_seen"] < said.json["days"])
    assert "failed for an unknown cause" in said.err


@pytest.mark.skipif(not TITAN.exists(), reason=f"the GPUs of Titan are not at {TITAN}")
def test_the_gpus_of_titan(faultline: Any) -> None:
    options = ("--age", "years", "--died", "dead", "--by", "batch")
    found = faultline("survival", str(TITAN), *options, "--format", "json").json
    survival = {row["age"]: round(row["survival"]["value"], 4) for row in found["ages"]}
    assert {age: survival[age] for age in (2.0, 4.0, 5.0)} == {
        2.0: 0.9925,
        4.0: 0.7796,
        5.0: 0.6875,
    }
    assert round(found["shape"]["value"], 4) == 2.8794
    rates = {group["name"]: round(group["rate"]["value"], 5) for group in found["groups"]}
    assert rates == {"old": 0.06637, "new": 0.00247}


def test_nodes_in_jobs_of_the_store(faultline: Any, demo_store: Path) -> None:
    options = ("--store", str(demo_store), "--format", "json")
    found = faultline("survival", *options, "--by", "size").json
    rate = faultline("mttf", *options, "--min-gpus", "0").json
    assert found["n_deaths"] == rate["failures"]
    assert found["exposure"] / 24 == pytest.approx(rate["exposure_node_days"], rel=1e-5)
    assert sum(group["deaths"] for group in found["groups"]) == found["n_deaths"]
    part = faultline("survival", *options, "--min-gpus", "64").json
    assert 0 < part["n_deaths"] < found["n_deaths"]


def test_of_jobs_only_some_columns_tell_groups_apart(faultline: Any, demo_store: Path) -> None:
    said = faultline("survival", "--store", str(demo_store), "--by", "rack")
    assert said.code == 2
    assert "--by of jobs must be one of none, partition, account, size, got 'rack'" in said.err
