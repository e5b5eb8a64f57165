"""Rules on generated quarters: how often they tell what is not so, and how late what is."""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.alerts.rule import RARER, Watch, shares
from app.alerts.rules import rules
from app.ask import of_store, once
from data.filters import Selection
from data.site_alerts import AlertSettings, Targets
from data.store import Store
from tests.alarms.quarters import (
    AIM,
    BEGIN,
    CLUSTER,
    DAYS,
    DIVERGED_DAYS,
    GPUS,
    GROUPS,
    QUARTER,
    RUN,
    WARM_DAYS,
    Plant,
    Quarter,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from app.alerts.rule import Episode, Found

DEFAULT = [
    rule for rule in rules() if rule.on and rule.needs in (None, "targets.availability")
]  # fmt: skip
"""The rules that are on by default where a target of availability is stated."""
SPEND = shares(DEFAULT)
"""What each of them may spend of the budget."""
KINDS = (
    "failure_rate", "unknown_share", "ettr_down", "new_lemon", "new_cause", "mass_failure",
    "large_job", "source_silent", "run_diverges", "availability_target",
)  # fmt: skip
FACTS = ("new_cause", "mass_failure", "large_job", "run_diverges")
"""What no chance can make: these rules take nothing of the budget."""
LARGE_GPUS = GROUPS[0] * GPUS
FIRST_NULL = int(os.environ.get("FAULTLINE_FIRST_QUARTER", "7000"))
FIRST_PLANTED = int(os.environ.get("FAULTLINE_FIRST_PLANTED", "8000"))
"""Seeds of the quarters that are reported; rules were chosen on others."""
NOW = BEGIN + timedelta(days=DAYS)


SETTINGS = AlertSettings(runs=(RUN,), large_gpus=LARGE_GPUS, targets=Targets(availability=AIM))


def found(quarter: Quarter, empty: Path, root: Path, *, now: datetime = NOW) -> dict[str, Found]:
    """What each rule says of the quarter by its share of the budget, asked of a store."""
    return asked(quarter, empty, root, SPEND, now=now)[0]


def asked(
    quarter: Quarter, empty: Path, root: Path, *spends: Mapping[str, float], now: datetime = NOW
) -> list[dict[str, Found]]:
    """What each rule says that may spend so much of the budget, by each way to share it out."""
    quarter.store(empty, root)
    watch = Watch(Selection(cluster=CLUSTER), BEGIN + timedelta(days=WARM_DAYS), now, SETTINGS, 1.0)
    with closing(Store.open(root)) as store:
        ask = once(of_store(store))
        told = [
            {
                rule.name: rule.find(ask, replace(watch, share=spend[rule.name]))
                for rule in DEFAULT
                if rule.name in spend
            }
            for spend in spends
        ]
    shutil.rmtree(root)
    return told


def day(at: datetime) -> float:
    """Days since the records begin."""
    return (at - BEGIN) / timedelta(days=1)


def is_so(name: str, told: Episode, quarter: Quarter) -> bool:
    """Whether what a rule tells holds in a quarter in which nothing was planted."""
    first, last = day(told.since_at), day(told.raised_at)
    if name == "new_lemon":
        return any(f"n{node:02}" == told.named["node"] and begin <= last and end >= first - 1
                   for node, begin, end in quarter.bad)  # fmt: skip
    if name in ("unknown_share", "source_silent"):  # the kernel's log names causes
        return any(begin <= last and end >= first - 1 for begin, end in quarter.unseen)
    if name == "large_job":  # of the first group alone
        return any(abs(each - last) < 1e-3 for each in quarter.large)
    if name == "faulty_link":
        of_node = [at for node, at in quarter.links if f"n{node:02}" == told.named["node"]]
        return sum(first - 1 <= at <= last + 1e-3 for at in of_node) >= 2
    return name == "new_cause"  # of which each has a first time; without one it is not told


def planted(kind: str, told: Mapping[str, Found], plant: Plant) -> list[Episode]:
    """What tells the change that was planted, by the rule that should."""
    until = {"large_job": 0.01, "new_cause": 0.01, "run_diverges": DIVERGED_DAYS}.get(kind, DAYS)
    return [
        each
        for each in told[kind].episodes
        if plant.day - 0.01 <= day(each.raised_at) < plant.day + until
        and (kind != "new_lemon" or each.named["node"] == "n09")
    ]


def plant(kind: str, n: int) -> Plant:
    """The n-th change of a kind, at another day of the first half of the quarter."""
    return Plant(kind, WARM_DAYS + 5.3 + n * 37 % 40)


def test_a_node_that_turns_is_told_once_and_the_rest_of_the_quarter_is_quiet(
    empty_store: Path, tmp_path: Path
) -> None:
    quarter = Quarter(1003, plant("new_lemon", 3))
    told = found(quarter, empty_store, tmp_path / "store")
    (lemon,) = planted("new_lemon", told, plant("new_lemon", 3))
    assert re.fullmatch(
        r"n09 failed \d+ times in \d+ days since \d+ \w+ 2026, [\d.]+ times the fleet's rate "
        r"\([\d.]+ to [\d.]+\)",
        lemon.sentence,
    )
    assert (lemon.page, lemon.named) == ("node", {"node": "n09", "cluster": CLUSTER})
    assert lemon.ended_at is None
    # The fleet's rate rose by it, too.
    assert not told["unknown_share"].episodes
    assert not told["mass_failure"].episodes
    assert all(is_so("large_job", each, quarter) for each in told["large_job"].episodes)
    blind = {name for name, each in told.items() if each.blind}
    assert blind == {"ettr_down", "hang"}, "no ledger, no dump"
    assert not told["run_diverges"].episodes
    assert not told["faulty_machine"].episodes


@pytest.mark.parametrize("cluster", [CLUSTER, "nowhere"])
def test_what_the_records_cannot_show_is_refused_and_no_quiet(
    cluster: str, empty_store: Path, tmp_path: Path
) -> None:
    few = Quarter(1)
    few.jobs, few.events, few.outages, few.training = few.jobs[:3], [], [], few.training[:0]
    few.store(empty_store, tmp_path / "store")
    watch = Watch(Selection(cluster=cluster), BEGIN, NOW, AlertSettings(runs=(RUN,)), 0.1)
    with closing(Store.open(tmp_path / "store")) as store:
        told = {each.name: each.find(of_store(store), watch) for each in rules()
                if each.name in KINDS}  # fmt: skip
    assert not [each for each in told.values() if each.episodes]
    seeing = {name for name, each in told.items() if each.blind is None}
    assert seeing == ({"mass_failure"} if cluster == CLUSTER else set())
    assert all("judged" in str(each.blind) for each in told.values() if each.blind)


def false_alarms(seeds: Iterable[int], empty: Path, root: Path) -> dict[str, list[int]]:
    """Rule -> the seeds of the quarters in which it told what is not so, once each time."""
    false = defaultdict(list)
    for seed in seeds:
        quarter = Quarter(seed)
        for name, told in found(quarter, empty, root / f"{seed}").items():
            false[name] += [seed for each in told.episodes if not is_so(name, each, quarter)]
    return false


@pytest.mark.slow
def test_ordinary_quarters_bring_at_most_one_false_alarm_a_month(
    empty_store: Path, tmp_path: Path
) -> None:
    n = int(os.environ.get("FAULTLINE_QUARTERS", "40"))
    false = false_alarms(range(FIRST_NULL, FIRST_NULL + n), empty_store, tmp_path)
    n_false = {name: len(seeds) for name, seeds in false.items() if seeds}
    print(f"{n} quarters of {QUARTER} days: false alarms {n_false}")
    assert sum(n_false.values()) <= n * QUARTER / 30, dict(false)
    assert not [name for name in FACTS if false[name]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_planted_changes_are_told_once_and_soon(
    kind: str, empty_store: Path, tmp_path: Path
) -> None:
    n_each = int(os.environ.get("FAULTLINE_PLANTED", "10"))
    held_to = 1.0 if kind in FACTS or kind == "source_silent" else 1.0 / RARER
    times: list[list[float]] = [[], [], []]
    n_told = []
    for n in range(n_each):
        change = plant(kind, n)
        spends = [{kind: share} for share in (SPEND[kind], held_to, 1.0)]
        told = asked(Quarter(FIRST_PLANTED + n, change), empty_store, tmp_path / f"{n}", *spends)
        of_it = [planted(kind, each, change) for each in told]
        n_told.append(len(of_it[0]))
        for found_after, each in zip(times, of_it, strict=True):
            found_after += [day(one.raised_at) - change.day for one in each[:1]]
    late, alone, calibrated = (float(np.median(each)) for each in times)
    print(f"{kind}: told {n_told}; after {late:.2f} days, alone {alone:.2f}, "
          f"alone and calibrated {calibrated:.2f}")  # fmt: skip
    assert sum(n > 0 for n in n_told) >= 0.9 * n_each, n_told
    assert sum(n > 1 for n in n_told) <= 0.1 * n_each, n_told
    step = 1.0 if kind == "source_silent" else 0.0  # it is judged by whole days
    if n_each >= 30:  # medians of ten scatter by half
        assert late <= max(1.5 * alone, alone + step) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["failure_rate", "unknown_share", "ettr_down", "new_lemon"])
def test_what_the_path_tells_is_what_each_day_tells_by_the_records_until_then(
    kind: str, empty_store: Path, tmp_path: Path
) -> None:
    quarter = Quarter(1001, plant(kind, 1))
    whole = found(quarter, empty_store, tmp_path / "whole")[kind]
    assert whole.episodes
    for told in whole.episodes:
        for hours in (-48, -24, 24, 48):
            cut = told.raised_at + timedelta(hours=hours)
            if cut > NOW:
                continue
            root = tmp_path / f"{hours}-{told.target[-6:]}-{day(told.raised_at):.2f}"
            then = found(quarter.until(cut), empty_store, root, now=cut)[kind]
            # Exposure of a day that goes on is that of its first hours: some hours may differ.
            same = [each for each in then.episodes if each.target == told.target
                    and abs(day(each.raised_at) - day(told.raised_at)) < 1]  # fmt: skip
            assert len(same) == (hours > 0), (hours, told, then.episodes)


@pytest.mark.slow
def test_who_evaluates_hourly_is_told_the_same_as_who_evaluates_daily(
    empty_store: Path, tmp_path: Path
) -> None:
    change = plant("new_lemon", 1)
    quarter = Quarter(1001, change)
    (whole,) = planted("new_lemon", found(quarter, empty_store, tmp_path / "whole"), change)
    stands = []
    for hours in range(-6, 7):
        cut = whole.raised_at + timedelta(hours=hours)
        (then,) = asked(quarter.until(cut), empty_store, tmp_path / f"{hours}",
                        {"new_lemon": SPEND["new_lemon"]}, now=cut)  # fmt: skip
        stands.append(whole.target in {each.target for each in then["new_lemon"].episodes})
    assert stands == sorted(stands), "once told, it stays"
    assert not stands[3]
    assert stands[9]
