"""Exposure and failures agree, row by row, with a count by hand in plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from analytics.frames import RATE_GROUPS
from analytics.reliability.failure_rate import size_class
from analytics.reliability.mttf import mttf_report
from data.filters import Selection
from data.queries import rate_groups, reliability
from data.queries.lifetimes import NAMES, node_lives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
ZONES = {"gpu": "America/New_York", "four": "Asia/Kathmandu", "cpu": "Pacific/Auckland",
         "log": "Europe/Berlin"}  # fmt: skip
AGES = ((30, "under 1 month"), (91, "1 to 3 months"), (183, "3 to 6 months"),
        (365, "6 to 12 months"), (730, "1 to 2 years"))  # fmt: skip


@dataclass
class Hand:
    """The count by hand: every number from the definitions, a row at a time."""

    rows: Any
    selection: Selection

    def __post_init__(self) -> None:
        started = [job for job in self.rows.jobs if job["start_at"]]
        self.as_of: dict[str, datetime] = {}
        for job in self.rows.jobs:
            times = [job[name] for name in ("submit_at", "start_at", "end_at") if job[name]]
            self.as_of[job["cluster"]] = max([*times, self.as_of.get(job["cluster"], times[0])])
        self.gpu = {job["cluster"] for job in started if job["n_gpus"]}
        self.cpu = {job["cluster"] for job in started} - self.gpu

    def matches(self, job: dict[str, Any]) -> bool:
        chosen = self.selection
        return all(
            wanted is None or job[name] == wanted
            for name, wanted in (("cluster", chosen.cluster), ("partition", chosen.partition),
                                 ("account", chosen.account))
        )  # fmt: skip

    def attempts(self, min_gpus: int) -> list[dict[str, Any]]:
        return [
            job
            for job in self.rows.jobs
            if self.matches(job)
            and ((job["cluster"] in self.cpu) or (job["n_gpus"] or 0) >= max(min_gpus, 1))
        ]

    def running(self, job: dict[str, Any]) -> list[tuple[datetime, float]]:
        """Days and the part of each in which the attempt ran within the period."""
        begin, end = job["start_at"], job["end_at"] or self.as_of[job["cluster"]]
        begin = max(begin, self.selection.from_at or begin)
        end = min(end, self.selection.to_at or end)
        found, day = [], self.day(job["cluster"], begin)
        while self.instant(job["cluster"], day) < end:
            begun, ended = (self.instant(job["cluster"], each) for each in (day, day + DAY))
            part = min(end, ended) - max(begin, begun)
            if part > timedelta(0):
                found.append((day, part / DAY))
            day += DAY
        return found

    def zone(self, cluster: str) -> ZoneInfo:
        return ZoneInfo(self.rows.zones.get(cluster, "UTC"))

    def day(self, cluster: str, moment: datetime) -> datetime:
        """Midnight of the date where the cluster stands, under UTC's name."""
        date = moment.astimezone(self.zone(cluster)).date()
        return datetime(date.year, date.month, date.day, tzinfo=UTC)

    def instant(self, cluster: str, day: datetime) -> datetime:
        """When a date begins where the cluster stands."""
        return day.replace(tzinfo=self.zone(cluster)).astimezone(UTC)

    def weight(self, job: dict[str, Any]) -> float:
        """Nodes that the attempt counts as."""
        if job["cluster"] in self.cpu:
            return job["n_nodes"]
        return job["n_gpus"] / self.rows.gpus_per_node[job["cluster"]]

    def cause(self, job: dict[str, Any]) -> tuple[bool, str | None]:
        """Whether the attempt ended by a failure, and the node that failed."""
        hosts = [row["node"] for row in self.rows.job_nodes
                 if row["attempt_key"] == job["attempt_key"]]  # fmt: skip
        near = sorted(
            (event["severity"] != "fatal", event["observed_at"], event["event_id"], event["node"])
            for event in self.rows.health_events
            if job["end_at"]
            and event["cluster"] == job["cluster"]
            and event["node"] in hosts
            and event["severity"] in ("critical", "fatal")
            and -timedelta(minutes=10) <= event["observed_at"] - job["end_at"]
            and event["observed_at"] - job["end_at"] <= timedelta(minutes=5)
        )
        lost = job["state"] == "NODE_FAIL" or job["failed_node"]
        if job["state"] != "FAILED" and not lost:
            near = []
        alone = hosts[0] if len(hosts) == job["n_nodes"] == 1 else None
        return bool(lost or near), job["failed_node"] or (near[0][3] if near else alone)

    def failures(self, min_gpus: int) -> list[tuple[dict[str, Any], str | None]]:
        found = []
        for job in self.attempts(min_gpus):
            failed, node = self.cause(job)
            if failed and job["end_at"] and self.in_period(job["end_at"]):
                found.append((job, node))
        return found

    def in_period(self, moment: datetime) -> bool:
        chosen = self.selection
        return (chosen.from_at is None or moment >= chosen.from_at) and (
            chosen.to_at is None or moment < chosen.to_at
        )

    def logged(self) -> list[dict[str, Any]]:
        chosen = self.selection
        if chosen.cluster not in (None, "log") or chosen.partition or chosen.account:
            return []
        return self.rows.node_failures

    def logged_days(self) -> list[tuple[datetime, float]]:
        starts = [row["start_at"] for row in self.logged()]
        if not starts:
            return []
        end = self.selection.to_at or max(starts)
        period = {
            "cluster": "log",
            "start_at": self.selection.from_at or min(starts),
            "end_at": end,
        }
        return Hand.running(self, period)

    def node_days(self) -> Iterator[tuple[str, str | None, datetime, str | None, float]]:
        """Cluster, node, day, partition and exposure of every node of every attempt."""
        for job in self.attempts(self.selection.min_gpus):
            hosts = [row["node"] for row in self.rows.job_nodes
                     if row["attempt_key"] == job["attempt_key"]] or [None]  # fmt: skip
            for day, part in self.running(job):
                for host in hosts:
                    share = part * self.weight(job) / len(hosts)
                    yield job["cluster"], host, day, job["partition"], share
        for day, part in self.logged_days():
            for index in range(6):
                yield "log", f"n{index}", day, None, part

    def spell(self, cluster: str, node: str | None, day: datetime) -> dict[str, Any] | None:
        """The spell of a node on a day: the last that began by then, else its first."""
        spells = sorted(
            (row for row in self.rows.nodes if (row["cluster"], row["node"]) == (cluster, node)),
            key=lambda row: row["first_seen_at"] or datetime.min.replace(tzinfo=UTC),
        )
        begun = [row for row in spells[1:] if self.day(cluster, row["first_seen_at"]) <= day]
        return (begun or spells[:1] or [None])[-1]

    def group(self, by: str, cluster: str, node: str | None, day: datetime) -> str:
        spell = self.spell(cluster, node, day)
        if by == "rack":
            return (spell and spell["rack"]) or "unknown"
        if not spell or not spell["first_seen_at"]:
            return "unknown"
        age = (day - self.day(cluster, spell["first_seen_at"])).days
        if age < 0:
            return "unknown"
        return next((name for limit, name in AGES if age < limit), "over 2 years")


def selections(seed: int) -> list[Selection]:
    draw = random.Random(seed)
    edges = [None, BASE + 2 * DAY, BASE + 3 * DAY, BASE + timedelta(days=4, hours=5, seconds=7)]
    ends = [None, BASE + 8 * DAY, BASE + timedelta(days=6, hours=23, minutes=59), BASE + 30 * DAY]
    return [Selection()] + [
        Selection(
            cluster=draw.choice([None, None, "gpu", "four", "cpu", "log"]),
            from_at=draw.choice(edges),
            to_at=draw.choice(ends),
            partition=draw.choice([None, None, None, "a", "b"]),
            account=draw.choice([None, None, None, "x"]),
            min_gpus=draw.choice([0, 0, 1, 9, 129]),
            by_size_min_gpus=draw.choice([0, 0, 9]),
        )
        for _ in range(5)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "zones"),
    [(1, ZONES), (0, {}), (2, ZONES), (3, ZONES), (4, ZONES)],
    ids=["zones-1", "utc-0", *(f"zones-{n}" for n in (2, 3, 4))],
)
def test_a_random_store_counts_as_by_hand(
    seed: int,
    zones: dict[str, str],
    random_rows: Callable[[int], Any],
    store_of: Callable[[Any], Store],
) -> None:
    rows = random_rows(seed)
    rows.zones = zones
    store = store_of(rows)
    for asked in selections(seed):
        selection = reliability.counted(store, asked)
        hand = Hand(rows, selection)
        counts = reliability.failure_counts(store, asked, by_node=True)
        counts = replace(counts, evidence=None)
        _compare_days(counts, hand, store)
        _compare_sizes(counts, hand)
        _compare_lives(store, hand)
        _compare_single_failures(counts, hand)
        _compare_nodes(counts, Hand(rows, selection.rows))
        for by in RATE_GROUPS:
            _compare_groups(rate_groups.groups(store, selection, by), hand, by)


def _compare_days(counts: Any, hand: Hand, store: Store) -> None:
    size = hand.selection.min_gpus
    exposure: defaultdict[datetime, float] = defaultdict(float)
    for job in hand.attempts(size):
        for day, part in hand.running(job):
            exposure[day] += part * hand.weight(job)
    for day, part in hand.logged_days():
        exposure[day] += part * 6
    failures: Counter[datetime] = Counter()
    firsts: dict[tuple[str, str, datetime | None], datetime] = {}
    incident_of = dict(
        store.rows("SELECT key, incident_id FROM incident_members WHERE kind = 'failure'")
    )
    for job, _ in hand.failures(size):
        failures[hand.day(job["cluster"], job["end_at"])] += 1
        item = (job["cluster"], incident_of[job["attempt_key"]], None)
        firsts[item] = min(job["end_at"], firsts.get(item, job["end_at"]))
    for row in hand.logged():
        if hand.in_period(row["start_at"]):
            failures[hand.day("log", row["start_at"])] += 1
            hour = row["start_at"].replace(minute=0, second=0)
            firsts["log", row["node"] or row["failure_key"], hour] = row["start_at"]
    incidents = Counter(hand.day(cluster, first) for (cluster, *_), first in firsts.items())
    table = pd.DataFrame(counts.by_day)
    day = table.pop("day").dt.tz_localize("UTC")
    table = table.drop(columns="cluster").groupby(day).sum()
    assert {d: n for d, n in table["failures"].items() if n} == failures
    assert {d: n for d, n in table["incidents"].items() if n} == incidents
    assert {d: e for d, e in table["exposure_node_days"].items() if e} == pytest.approx(exposure)
    assert counts.exposure_known


def _compare_sizes(counts: Any, hand: Hand) -> None:
    size = hand.selection.by_size_min_gpus
    days: defaultdict[tuple[int, int], float] = defaultdict(float)
    for job in hand.attempts(size):
        if job["cluster"] in hand.gpu:
            days[size_class(job["n_gpus"])] += sum(part for _, part in hand.running(job))
    failures = Counter(
        size_class(job["n_gpus"]) for job, _ in hand.failures(size) if job["cluster"] in hand.gpu
    )
    report = mttf_report(counts)
    found = {(c.gpus_from, c.gpus_to): c for c in report.by_size}
    assert {name: c.running_hours / 24 for name, c in found.items()} == pytest.approx(
        {name: n for name, n in days.items() if n or failures[name]}
    )
    assert Counter({name: c.mttf_hours.n for name, c in found.items()}) == failures


def _compare_lives(store: Store, hand: Hand) -> None:
    """Lives of nodes in jobs hold the exposure and the failures of the rate, whatever they are told
    apart by; times are whole seconds there."""
    size = hand.selection.min_gpus
    days = sum(
        part * hand.weight(job) for job in hand.attempts(size) for _, part in hand.running(job)
    )
    failures = len(list(hand.failures(size)))
    for by in NAMES:
        lives = node_lives(store, hand.selection, by)
        seconds = float((lives["nodes"] * (lives["ran_s"] - lives["since_s"])).sum())
        assert seconds / 86_400 == pytest.approx(days, abs=float(lives["nodes"].sum()) / 86_400)
        assert lives["failures"].sum() == failures


def _compare_single_failures(counts: Any, hand: Hand) -> None:
    moments = sorted(
        [job["end_at"] for job, _ in hand.failures(hand.selection.min_gpus)]
        + [row["start_at"] for row in hand.logged() if hand.in_period(row["start_at"])]
    )
    gaps = [(after - before).total_seconds() / 3600 for before, after in pairwise(moments)]
    starts = sorted(counts.starts_hours)
    assert [after - before for before, after in pairwise(starts)] == pytest.approx(gaps)
    repairs = sorted(
        row["repair_minutes"]
        for row in hand.logged()
        if hand.in_period(row["start_at"]) and row["repair_minutes"] is not None
    )
    assert sorted(counts.repair_minutes) == repairs
    left_out = [
        job
        for job in hand.rows.jobs
        if hand.matches(job) and job["cluster"] in hand.gpu and not job["n_gpus"]
        and (hand.selection.to_at is None or job["start_at"] < hand.selection.to_at)
        and (hand.selection.from_at is None or job["end_at"] is None
             or job["end_at"] > hand.selection.from_at)
    ]  # fmt: skip
    assert counts.attempts_without_gpus == len(left_out)


def _compare_nodes(counts: Any, hand: Hand) -> None:
    """Of jobs of all sizes, whatever the selection's smallest job is."""
    exposure: defaultdict[tuple[str, str], float] = defaultdict(float)
    for cluster, node, _, _, part in hand.node_days():
        if node is not None and part:
            exposure[cluster, node] += part
    failures = Counter((job["cluster"], node) for job, node in hand.failures(0))
    failures.update(
        ("log", row["node"]) for row in hand.logged() if hand.in_period(row["start_at"])
    )
    nodes = sorted(exposure)
    assert counts.by_node["exposure_node_days"] == pytest.approx([exposure[n] for n in nodes])
    assert counts.by_node["failures"].tolist() == [failures[node] for node in nodes]


def _compare_groups(table: pd.DataFrame, hand: Hand, by: str) -> None:
    def name(cluster: str, node: str | None, day: datetime, partition: str | None) -> str:
        if by == "week":
            return f"{day - day.weekday() * DAY:%Y-%m-%d}"
        return partition or "unknown" if by == "partition" else hand.group(by, cluster, node, day)

    exposure: defaultdict[str, float] = defaultdict(float)
    failures: Counter[str] = Counter()
    for cluster, node, day, partition, part in hand.node_days():
        exposure[name(cluster, node, day, partition)] += part
    for job, node in hand.failures(hand.selection.min_gpus):
        failures[
            name(job["cluster"], node, hand.day(job["cluster"], job["end_at"]), job["partition"])
        ] += 1
    for row in hand.logged():
        if hand.in_period(row["start_at"]):
            failures[name("log", row["node"], hand.day("log", row["start_at"]), None)] += 1
    sums = table.groupby("group", sort=False)[["failures", "exposure_node_days"]].sum()
    assert {g: n for g, n in sums["failures"].items() if n} == failures
    found = {g: e for g, e in sums["exposure_node_days"].items() if e > 1e-9}
    assert found == pytest.approx({g: e for g, e in exposure.items() if e})


@pytest.mark.slow
def test_the_order_of_rows_does_not_matter(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    rows = random_rows(1)
    first = store_of(rows)
    for table in (rows.jobs, rows.job_nodes, rows.nodes, rows.node_failures, rows.health_events):
        table.reverse()
    second = store_of(rows)
    for selection in selections(1)[::3]:
        one, other = (reliability.failure_counts(store, selection) for store in (first, second))
        assert mttf_report(one) == mttf_report(other)
        for by in RATE_GROUPS:
            one, other = (rate_groups.groups(store, selection, by) for store in (first, second))
            pd.testing.assert_frame_equal(one, other)
