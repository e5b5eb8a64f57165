"""A cluster of 64 nodes day by day, with changes planted in it; nothing is shared with the demo.

Jobs follow one another on fixed groups of nodes; faults strike nodes, whatever runs there.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from data.publish import writer
from tests.alarms import telemetry

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
CLUSTER, RUN = "c", "longrun"
WARM_DAYS, QUARTER = 45, 90
DAYS = WARM_DAYS + QUARTER
GROUPS = (16, 8, 8, 8, 4, 4, 4, 4, 2, 2, 2, 1, 1)
"""Nodes of each group that jobs run on; the first one runs one training all the time."""
N_NODES = sum(GROUPS)
GPUS = 8
XIDS = (79, 74, 95, 48, 119, 64)
SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
"""How often each of them is the fault: a long tail."""
NEW_XID = 62
NVLINK = 74
RELAPSES, RELAPSE_DAYS = 0.25, 1.5
JUDGED_DAYS = 40.0
"""Before a planted change in which all logs are collected: where they are not, rules say that it
cannot be judged yet."""
DIVERGED_DAYS = 3.0
"""How long it takes somebody to set a diverged run back."""
OUT_TIMES = 15.0
"""How many times as often reserve nodes go out where the target is missed."""
AIM = 0.98
"""Target of the availability: reserve nodes are a sixth of all, and out for 4 % of their time."""


@dataclass(frozen=True)
class Plant:
    """What changes, and on which day."""

    kind: str
    day: float


@dataclass
class Quarter:
    """What is recorded, and what is true of it."""

    seed: int
    plant: Plant | None = None
    jobs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    outages: list[dict[str, Any]] = field(default_factory=list)
    bad: list[tuple[int, float, float]] = field(default_factory=list)
    """Nodes that truly fail often: which, from which day, until which."""
    unseen: list[tuple[float, float]] = field(default_factory=list)
    """Days without the kernel's log."""
    large: list[float] = field(default_factory=list)
    """Days on which hardware ended the large job."""
    links: list[tuple[int, float]] = field(default_factory=list)
    """Node and day of each error of a link."""
    training: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng([self.seed, 36])
        self.rate = float(self.draw.choice([0.008, 0.015, 0.03]))
        self.of_node = self.draw.gamma(2.0, 0.5, N_NODES)
        self.bad += [(node, 0.0, DAYS) for node in np.flatnonzero(self.of_node >= 2.5)]
        style = self.draw.integers(6)
        if style == 0:
            begin = float(self.draw.uniform(20, DAYS - 20))
            self.unseen.append((begin, begin + float(self.draw.uniform(5, 25))))
        elif style == 1:
            self.unseen.append((0.0, float(self.draw.uniform(5, DAYS / 2))))
        if self.plant is not None:
            judged = self.plant.day - JUDGED_DAYS
            self.unseen = [each for each in self.unseen if each[1] < judged]
        if self._is("source_silent", DAYS):
            self.unseen.append((self.plant.day if self.plant else 0.0, float(DAYS)))
        faults = self._faults()
        self.links = [(node, day) for day, node, xid in faults if xid == NVLINK]
        first = 0
        for group, n in enumerate(GROUPS):
            self._train(group, range(first, first + n), faults)
            first += n
        self._users()
        self._maintenance()
        self._telemetry()

    def _is(self, kind: str, day: float) -> bool:
        return self.plant is not None and self.plant.kind == kind and day >= self.plant.day

    def _faults(self) -> list[tuple[float, int, int]]:
        """Day, node and XID (0: the node is lost) of each fault, in order of time."""
        found: list[tuple[float, int, int]] = []
        for node in range(N_NODES):
            rate = self.rate * self.of_node[node]
            for day in self.draw.uniform(0, DAYS, self.draw.poisson(rate * DAYS)):
                found += self._with_relapses(float(day), node)
        for day in self.draw.uniform(0, DAYS, self.draw.poisson(DAYS / 25)):
            begin = int(self.draw.integers(0, N_NODES - 8))  # a switch: many nodes within minutes
            found += [
                (float(day) + k / 2000, begin + k, 0) for k in range(int(self.draw.integers(3, 8)))
            ]
        if self.plant is not None:
            found += self._planted(self.plant)
        return sorted(found)

    def _with_relapses(self, day: float, node: int) -> list[tuple[float, int, int]]:
        found = [(day, node, self._xid())]
        while self.draw.random() < RELAPSES:
            day += float(self.draw.exponential(RELAPSE_DAYS))
            found.append((day, node, self._xid()))
        if len(found) > 2:
            self.bad.append((node, found[0][0], day))
        return [each for each in found if each[0] < DAYS]

    def _xid(self) -> int:
        if self.draw.random() < 0.15:
            return 0
        return int(self.draw.choice(XIDS, p=SHARES))

    def _planted(self, plant: Plant) -> list[tuple[float, int, int]]:
        left = DAYS - plant.day
        if plant.kind == "failure_rate":
            n = self.draw.poisson(3.0 * self.rate * N_NODES * left)
            return [(float(day), int(self.draw.integers(N_NODES)), self._xid())
                    for day in self.draw.uniform(plant.day, DAYS, n)]  # fmt: skip
        if plant.kind == "new_lemon":
            self.bad.append((9, plant.day, DAYS))
            days = plant.day + np.cumsum(self.draw.exponential(0.7, 200))
            return [(float(day), 9, self._xid()) for day in days if day < DAYS]
        if plant.kind == "new_cause":
            return [(plant.day + each, 20 + int(each), NEW_XID) for each in (0.0, 3.0, 9.0)]
        if plant.kind == "large_job":
            return [(plant.day, 3, 79)]
        return []

    def _train(self, group: int, nodes: range, faults: list[tuple[float, int, int]]) -> None:
        """Jobs of one group of nodes, one after another; a fault on any of them ends one."""
        struck = [each for each in faults if each[1] in nodes]
        at, n = float(self.draw.uniform(0, 0.3)), 0
        while at < DAYS:
            long = group == 0
            usual = 1.0 if self._is("ettr_down", at) else 40.0
            length = usual if long else float(self.draw.exponential(1.2)) + 0.02
            hit = next((each for each in struck if at <= each[0] < at + length), None)
            end = min(at + length, DAYS if hit is None else hit[0])
            ran_out = hit is None and at + length > DAYS
            state = "RUNNING" if ran_out else "COMPLETED"
            if hit is not None:
                state = "NODE_FAIL" if hit[2] == 0 else "FAILED"
                if group == 0:
                    self.large.append(hit[0])
            self._job(f"g{group}-{n}", nodes, at, end, state=state, name=RUN if long else None,
                      user="ann" if long else f"u{group % 5}",
                      failed_node=hit[1] if hit is not None and hit[2] == 0 else None)  # fmt: skip
            if hit is not None and hit[2]:
                self._event(hit)
            at, n = end + self._wait(end, long), n + 1

    def _wait(self, day: float, long: bool) -> float:
        """Days until the next job: longer at nights and on weekends, and for what was planted."""
        if long:
            worse = self._is("ettr_down", day)
            return float(self.draw.gamma(4.0, (0.5 if worse else 0.02) / 4.0))
        quiet = (day % 7 > 5) + 0.5 * ((day % 1) > 0.8)
        return float(self.draw.exponential(0.03 + 0.15 * quiet))

    def _event(self, fault: tuple[float, int, int]) -> None:
        day, node, xid = fault
        if not self._hidden(day):
            self._line(day, node, "critical", xid)

    def _hidden(self, day: float) -> bool:
        """Whether the kernel's log of a day is not collected."""
        return any(first <= day < last for first, last in self.unseen)

    def _line(self, day: float, node: int, severity: str, xid: int | None) -> None:
        self.events.append({
            "cluster": CLUSTER, "event_id": f"e{len(self.events)}", "node": _node(node),
            "observed_at": _at(day) - timedelta(seconds=20), "source": "kernel",
            "check_name": None, "severity": severity, "xid": xid,
        })  # fmt: skip

    def _job(self, key: str, nodes: range, begin: float, end: float, **values: Any) -> None:
        lost = values.pop("failed_node", None)
        ended = None if values["state"] == "RUNNING" else _at(end)
        self.jobs.append({
            "cluster": CLUSTER, "attempt_key": key, "job_id": key, "partition": "p",
            "account": "a", "n_gpus": GPUS * len(nodes), "n_nodes": len(nodes),
            "failed_node": None if lost is None else _node(lost), "submit_at": _at(begin),
            "start_at": _at(begin), "end_at": ended,
            "node_list": ",".join(map(_node, nodes)),
        } | values)  # fmt: skip

    def _users(self) -> None:
        """Small jobs whose programs fail: known by the scheduler, or not known at all."""
        usual = float(self.draw.uniform(0.15, 0.5))
        for day in range(DAYS):
            for user in range(6):
                if self.draw.random() > (0.3 if day % 7 > 4 else 0.6):
                    continue
                odds = usual / (1 - usual) * (8.0 if self._is("unknown_share", day) else 1.0)
                unknown = self.draw.random() < odds / (1 + odds)
                begin = day + float(self.draw.beta(4, 3))
                for n in range(1 + min(int(self.draw.exponential(2.0)), 9)):
                    self._job(f"u{day}-{user}-{n}", range(63, 64), begin + n / 300,
                              begin + n / 300 + 0.002, name=None, user=f"s{user}",
                              state="FAILED" if unknown else "OUT_OF_MEMORY")  # fmt: skip
        if self.plant is not None and self.plant.kind == "mass_failure":
            for n in range(40):
                begin = self.plant.day + n / 20_000
                self._job(f"mass{n}", range(63, 64), begin, begin + 0.0005, name=None, user="eve",
                          state="FAILED")  # fmt: skip

    def _telemetry(self) -> None:
        """What is logged whether or not anything is wrong; drawn apart from all that is."""
        draw = np.random.default_rng([self.seed, 3636])
        for day in telemetry.lines(draw, DAYS).tolist():
            if not self._hidden(day):
                self._line(day, int(draw.integers(N_NODES)), "info", None)
        worse_from = self._from("availability_target")
        for node, begin, end in telemetry.outages(draw, DAYS, worse_from, OUT_TIMES):
            self._outage(f"r{node:02}", begin, end, "DOWN", "repair", planned=False)
        diverged = self._from("run_diverges")
        attempts = [
            (job["attempt_key"], _day(job["start_at"]), _day(job["end_at"] or _at(DAYS)))
            for job in self.jobs if job["name"] == RUN
        ]  # fmt: skip
        rows = telemetry.training(draw, attempts, (diverged, diverged + DIVERGED_DAYS))
        logged_at = BEGIN + pd.to_timedelta(rows.pop("day").round(5), unit="D").dt.floor("s")
        del rows["key"]
        self.training = rows.assign(cluster=CLUSTER, run_id=RUN,
                                    logged_at=logged_at)  # fmt: skip

    def _from(self, kind: str) -> float:
        """From which day on a change is so; never where another one or none was planted."""
        plant = self.plant
        return plant.day if plant is not None and plant.kind == kind else float("inf")

    def _maintenance(self) -> None:
        for week in range(2, DAYS // 7, 4):
            for node in self.draw.choice(N_NODES, 6, replace=False).tolist():
                begin = 7.0 * week + float(self.draw.uniform(0.3, 0.5))
                self._outage(_node(node), begin, begin + 0.3, "MAINT", "maintenance", planned=True)

    def _outage(
        self, node: str, begin: float, end: float, state: str, reason: str, *, planned: bool
    ) -> None:
        self.outages.append({
            "cluster": CLUSTER, "node": node, "start_at": _at(begin),
            "end_at": _at(end) if end < DAYS else None, "state": state, "reason": reason,
            "planned": planned,
        })  # fmt: skip

    def until(self, cut: datetime) -> Quarter:
        """The same with only the records up to a time."""
        seen = object.__new__(Quarter)
        seen.__dict__.update(self.__dict__)
        seen.jobs = [
            job if job["end_at"] is not None and job["end_at"] <= cut
            else job | {"end_at": None, "state": "RUNNING", "failed_node": None}
            for job in self.jobs if job["start_at"] < cut
        ]  # fmt: skip
        seen.events = [event for event in self.events if event["observed_at"] < cut]
        seen.outages = [
            outage if outage["end_at"] is not None and outage["end_at"] <= cut
            else outage | {"end_at": None}
            for outage in self.outages if outage["start_at"] < cut
        ]  # fmt: skip
        seen.training = self.training[self.training["logged_at"] < cut]
        return seen

    def store(self, empty: Path, root: Path) -> Path:
        """Publishes the records as a store."""
        shutil.copytree(empty, root)
        (root / "site.toml").write_text(f"[cluster.{CLUSTER}]\ngpus_per_node = {GPUS}\n", "utf-8")
        held = [
            {"cluster": CLUSTER, "attempt_key": job["attempt_key"], "node": node, "n_gpus": GPUS,
             "start_at": job["start_at"], "end_at": job["end_at"]}
            for job in self.jobs for node in job["node_list"].split(",")
        ]  # fmt: skip
        names = [*map(_node, range(N_NODES)), *(f"r{n:02}" for n in range(telemetry.N_RESERVE))]
        nodes = [{"cluster": CLUSTER, "node": name, "first_seen_at": BEGIN, "source": "inventory"}
                 for name in names]  # fmt: skip
        tables = {"jobs": self.jobs, "job_nodes": held, "nodes": nodes,
                  "health_events": self.events, "node_events": self.outages}  # fmt: skip
        sampled = telemetry.metrics(np.random.default_rng(self.seed), names[: GROUPS[0]], CLUSTER,
                                    max(job["start_at"] for job in self.jobs))  # fmt: skip
        with writer(root) as building:
            building.load(
                {name: _frame(rows) for name, rows in tables.items() if rows}
                | {"node_metrics": _frame(sampled)}
                | ({"training_metrics": _frame(self.training)} if len(self.training) else {})
            )
            building.publish()
        return root


def _at(day: float) -> datetime:
    return BEGIN + timedelta(seconds=round(day * 86_400))


def _day(at: datetime) -> float:
    return (at - BEGIN) / timedelta(days=1)


def _node(number: int) -> str:
    return f"n{number:02}"


def _frame(rows: list[dict[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in frame:
        if str(name).endswith("_at"):
            frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
        elif name in ("n_gpus", "n_nodes", "xid", "step", "rank"):
            frame[name] = frame[name].astype("Int64")
    return frame
