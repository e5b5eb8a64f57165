"""How often intervals hold the truth where runs differ in their habits.

A small generator of its own: clusters of runs on several nodes whose habits are log-normal, gamma or
Weibull between runs, or those of two camps; they change with size, and equal no default. Centre,
spread and slope differ from cluster to cluster. What a run did is played by its clock; some runs have training metrics, the others only
their attempts' start and end. Two hundred clusters go through the analysis as arrays, a few through
a store.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.attempt_days import Held, daily_rows, own_of_run
from analytics.efficiency.attempt_time import attempt_time
from analytics.efficiency.goodput import goodput_ledger
from analytics.efficiency.habits import SEVERAL_NODES, habits
from analytics.reliability.failure_rate import poisson_rate
from app.answers.efficiency import ettr as ettr_answer
from app.answers.efficiency import ledger as ledger_answer
from data.filters import Selection
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from analytics.efficiency.goodput import GoodputLedger
    from analytics.estimate import Estimate

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

N_RUNS = 130
N_CLUSTERS = 200
N_DRAWS = 100
"""Draws of the oracle, who knows how habits are distributed, but not those of any run."""
MONTE_CARLO = 2 * (0.9 * 0.1 / N_CLUSTERS) ** 0.5
"""Two standard errors of a coverage of 0.9 over so many clusters: 0.042."""
FAILED, PREEMPTED = 0, 1
NOTES = {
    "attempts_without_gpus": 0,
    "excess_gpu_seconds": 0,
}  # fmt: skip


SHAPES = ("lognormal", "gamma", "weibull", "mixed")


@dataclass(frozen=True)
class Law:
    """How the habit of runs is distributed around a line in log2 GPUs.

    `mixed`: most save often, a fifth eight times as seldom, each within a fifth of the usual.
    """

    centre_s: float
    slope: float
    spread: float
    shape: str

    def draw(self, rng: np.random.Generator, n_gpus: Floats, n_draws: int) -> Floats:
        """Habits of runs of these sizes, shape (n_draws, n)."""
        size = (n_draws, len(n_gpus))
        line = self.centre_s * 2 ** (self.slope * (np.log2(n_gpus) - 7.0) / np.log(2))
        if self.shape == "gamma":
            return np.asarray(line * rng.gamma(self.spread**-2, self.spread**2, size))
        if self.shape == "weibull":
            return np.asarray(line * rng.weibull(1.2 / self.spread, size))
        if self.shape == "mixed":
            seldom = rng.random(size) < 0.2
            return np.asarray(line * np.where(seldom, 4.0, 0.5) * rng.uniform(0.8, 1.2, size))
        return np.asarray(line * np.exp(self.spread * rng.normal(size=size)))


@dataclass(frozen=True)
class Cluster:
    """What a cluster's runs did. Arrays over attempts but where said."""

    laws: tuple[Law, Law, Law]
    """Of interval, write and start-up."""
    run: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    ran_s: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    n_gpus: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    loss: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    habit: Floats
    """Interval, write and start-up of each run, shape (3, runs)."""
    restart_s: Floats
    failures_per_gpu_day: float

    def played(self, habit: Floats, restart_s: Floats) -> dict[str, Floats]:
        """Seconds of each part by the clock: habits of shape (..., attempts)."""
        interval, write = habit
        startup = np.minimum(self.ran_s, restart_s)
        after = self.ran_s - startup
        rest = after % (interval + write)
        saving = np.floor(after / (interval + write)) * write + np.maximum(rest - interval, 0)
        lost = np.where(self.loss >= 0, np.minimum(rest, interval), 0.0)
        return {"startup": startup, "checkpoint": saving, "lost": lost}


def cluster(rng: np.random.Generator, n_runs: int = N_RUNS, shape: str = "lognormal") -> Cluster:
    """A cluster of runs on 2 to 64 nodes, their attempts ended by failures and preemption."""
    laws = tuple(
        Law(
            centre * np.exp(0.4 * rng.normal()),
            rng.uniform(-0.2, 0.2),
            rng.uniform(0.3, 0.7),
            shape,
        )
        for centre in (2_300.0, 45.0, 400.0)
    )
    sizes = 8 * 2 ** rng.integers(1, 7, n_runs)
    habit = np.stack([law.draw(rng, sizes.astype(float), 1)[0] for law in laws])
    rate = 0.0015
    rows = []
    for run, n_gpus in enumerate(sizes):
        left = 86_400 * rng.lognormal(0.3, 0.9)
        while left > 0:
            ends = rng.exponential(86_400 / (1.7 * rate * n_gpus))
            why = (FAILED if rng.random() < 1 / 1.7 else PREEMPTED) if ends < left else -1
            rows.append((run, round(min(ends, left)), n_gpus, why))
            left -= ends
    run_of, ran_s, n_gpus, loss = np.array(rows, dtype=np.int64).T
    restart_s = habit[2][run_of] * np.exp(0.15 * rng.normal(size=len(rows)))
    return Cluster(laws, run_of, ran_s, n_gpus, loss, habit, restart_s, rate)  # type: ignore[arg-type]


def observed(of: Cluster, n_observed: int) -> pd.DataFrame:
    """Habits of the first runs, as their training metrics show them."""
    first = pd.DataFrame({
        "run": of.run, "n_gpus": of.n_gpus, "restart_s": np.minimum(of.restart_s, of.ran_s),
        "n_intervals": np.floor((of.ran_s - of.restart_s) / of.habit[:2].sum(axis=0)[of.run]),
    }).query(f"run < {n_observed}")  # fmt: skip
    shown = first.assign(n_intervals=first["n_intervals"].clip(lower=0)).groupby("run").agg(
        n_gpus=("n_gpus", "max"), restart_s=("restart_s", "mean"),
        sd_restart_s=("restart_s", "std"), n_restarts=("restart_s", "size"),
        n_intervals=("n_intervals", "sum"),
    )  # fmt: skip
    saved = shown["n_intervals"] > 0
    interval, write = of.habit[:2, :n_observed]
    return shown.assign(
        checkpoint_interval_s=np.where(saved, interval, np.nan), sd_interval_s=0.0,
        checkpoint_write_s=np.where(saved, write, np.nan), sd_write_s=0.0,
        n_writes=shown["n_intervals"],
    )  # fmt: skip


def ledger_of(
    of: Cluster, n_observed: int, truth: dict[str, Floats], conf_level: float = 0.9
) -> GoodputLedger:
    """The ledger of the cluster, as the product makes it."""
    known = habits(observed(of, n_observed), stated={}, assumed=SEVERAL_NODES)
    by_metrics = of.run < n_observed
    columns = {"startup_s": "startup", "checkpoint_s": "checkpoint", "unsaved_s": "lost"}
    measured = {
        column: np.where(by_metrics, truth[part], np.nan) for column, part in columns.items()
    }
    time = attempt_time(of.ran_s, of.loss >= 0, known, measured, n_gpus=of.n_gpus)
    begin = np.zeros(len(of.run), dtype=np.int64)
    held = Held(begin, of.ran_s, of.n_gpus, begin, of.loss, begin)
    rows = daily_rows(held, time, own_of_run(of.run, of.loss, of.n_gpus, time))
    lost = rows["loss"].map({FAILED: "lost_work", PREEMPTED: "lost_work_preempted"})
    rows = rows.assign(cluster="a", cause=None, bucket=lost.fillna(rows["part"]))
    return goodput_ledger(rows, prices={}, notes=NOTES, conf_level=conf_level)


def gpu_hours(of: Cluster, parts: dict[str, Floats]) -> dict[str, Floats]:
    """GPU-hours of each bucket; of several draws, of each."""
    weight = of.n_gpus / 3600
    return {
        "startup": parts["startup"] @ weight,
        "checkpoint": parts["checkpoint"] @ weight,
        "lost_work": parts["lost"] @ (weight * (of.loss == FAILED)),
        "lost_work_preempted": parts["lost"] @ (weight * (of.loss == PREEMPTED)),
    }


def oracle_widths(
    of: Cluster, n_observed: int, truth: dict[str, Floats], rng: np.random.Generator
) -> dict[str, float]:
    """Width of 90 % of what unobserved runs may have spent, knowing how habits are distributed."""
    first = np.unique(of.run, return_index=True)[1]
    habit = np.stack([law.draw(rng, of.n_gpus[first].astype(float), N_DRAWS) for law in of.laws])
    at = np.maximum(habit[:, :, of.run], 1.0)
    known = of.run < n_observed
    parts = {
        part: np.where(known, truth[part], drawn)
        for part, drawn in of.played(at[:2], at[2]).items()
    }
    return {
        name: float(np.diff(np.quantile(hours, [0.05, 0.95]))[0])
        for name, hours in gpu_hours(of, parts).items()
    }


def rate(of: Cluster, n_observed: int, truth: dict[str, Floats]) -> tuple[float, Estimate]:
    """Failures a GPU-day: planted, and estimated."""
    days = float((of.ran_s * of.n_gpus).sum()) / 86_400
    return of.failures_per_gpu_day, poisson_rate(int((of.loss == FAILED).sum()), days, 0.9)


OTHERS = {"rate": rate}
"""Quantities beside the ledger's: what is true and what is estimated, of a cluster whose first runs
are observed and whose attempts truly spent these seconds."""


def coverage(
    n_observed: int, n_clusters: int, shape: str = "lognormal", *, seed: int = 0
) -> pd.DataFrame:
    """Of each quantity: how often the interval held the truth, width over the oracle's and over the
    value, the sum of values over that of truths and its standard error."""
    rows = []
    for number in range(n_clusters):
        rng = np.random.default_rng([seed, n_observed, number])
        of = cluster(rng, shape=shape)
        truth = of.played(of.habit[:2][:, of.run], of.restart_s)
        ledger, sums = ledger_of(of, n_observed, truth), gpu_hours(of, truth)
        widths = oracle_widths(of, n_observed, truth, rng)
        estimates = {name: ledger.bucket(name).gpu_hours for name in sums}  # type: ignore[union-attr]
        found = {name: (float(sums[name]), estimates[name]) for name in sums}
        found |= {name: quantity(of, n_observed, truth) for name, quantity in OTHERS.items()}
        for name, (true, estimate) in found.items():
            low, value, high = estimate.lower, estimate.value, estimate.upper
            assert low is not None and value is not None and high is not None  # noqa: PT018
            width = high - low
            rows.append((name, low <= true <= high, width / widths.get(name, width), width / value,
                         value, true, estimate.assumed))  # fmt: skip
    columns = ["quantity", "held", "oracle_widths", "width", "value", "truth", "assumed"]
    every = pd.DataFrame(rows, columns=columns)
    found = every.groupby("quantity").mean()
    ratio = found["value"] / found["truth"]
    off = every["value"] - every["quantity"].map(ratio) * every["truth"]
    error = off.groupby(every["quantity"]).std() / n_clusters**0.5 / found["truth"]
    return found.assign(value_over_truth=ratio, error=error).drop(columns=["value", "truth"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_observed", "shape"),
    [(0, "lognormal"), (3, "lognormal"), *((12, shape) for shape in SHAPES), (100, "lognormal"),
     (100, "mixed")],
)  # fmt: skip
def test_nine_in_ten_intervals_hold_the_truth_whatever_the_habits(
    n_observed: int, shape: str
) -> None:
    found = coverage(n_observed, N_CLUSTERS, shape)
    print(f"\n{n_observed} runs observed, {shape}, +- {MONTE_CARLO:.3f}\n{found.round(3)}")
    estimated = found[found["assumed"].eq(0)]
    assert len(estimated) == (1 if n_observed == 0 else len(found))
    assert estimated["held"].between(0.85 - MONTE_CARLO, 0.95 + MONTE_CARLO).all()
    if n_observed >= 12:
        lost = estimated.loc["lost_work"]
        assert abs(lost["value_over_truth"] - 1) < 0.03 + 2 * lost["error"]
    if n_observed == 100:
        assert estimated["oracle_widths"].le(2).all()


BEGIN_S = int(datetime(2024, 3, 1, tzinfo=UTC).timestamp())
STEP_S, LOGGED_S = 10.0, 600.0
STATES = {FAILED: "NODE_FAIL", PREEMPTED: "PREEMPTED", -1: "COMPLETED"}


def stored(root: Path, of: Cluster, n_observed: int) -> Store:
    """A store of the cluster's accounting, and of the training metrics of its first runs."""
    jobs: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    begin_s, first_node, last, resumed = BEGIN_S, 0, 0, 0
    for at, run in enumerate(of.run):
        if at and run != of.run[at - 1]:
            begin_s, first_node, resumed = BEGIN_S, last + 1, 0
        n_nodes = int(of.n_gpus[at]) // 8
        last = first_node + n_nodes - 1
        jobs.append({
            "cluster": "a", "attempt_key": f"k{at}", "job_id": str(run), "name": f"r{run}",
            "user": "u", "state": STATES[int(of.loss[at])], "submit_at": begin_s,
            "eligible_at": begin_s, "start_at": begin_s, "end_at": begin_s + int(of.ran_s[at]),
            "node_list": f"n[{first_node}-{last}]", "n_nodes": n_nodes, "n_gpus": n_nodes * 8,
        })  # fmt: skip
        if run < n_observed:
            rows, resumed = logged(of, at, resumed)
            steps += [
                {"cluster": "a", "job_id": str(run), "run_id": None}
                | row
                | {"logged_at": begin_s + row["logged_at"]}
                for row in rows
            ]
        begin_s += int(of.ran_s[at])
    # A short job on one node at first: the records begin with the cluster.
    jobs.append(jobs[0] | {"attempt_key": "first", "job_id": "first", "name": "first",
                           "state": "COMPLETED", "end_at": BEGIN_S + 60, "n_nodes": 1,
                           "n_gpus": 8, "node_list": f"n{last}"})  # fmt: skip
    end_s = max(job["end_at"] for job in jobs)
    nodes = [
        {"cluster": "a", "node": f"n{node}", "gpus": 8, "role": "compute",
         "source": "inventory", "first_seen_at": BEGIN_S, "last_seen_at": end_s}
        for node in range(last + 1)
    ]  # fmt: skip
    with writer(root) as building:
        for table, found in (("nodes", nodes), ("jobs", jobs), ("training_metrics", steps)):
            frame = pd.DataFrame(found)
            for name in frame.columns[frame.columns.str.endswith("_at")]:
                micros = (frame[name] * 1e6).round().astype("int64")
                frame[name] = pd.to_datetime(micros, unit="us", utc=True)
            building.merge({table: frame})
        building.publish(ledger=True)
    return Store.open(root)


def logged(of: Cluster, at: int, resumed: int) -> tuple[list[dict[str, Any]], int]:
    """What an attempt logs, in seconds from its start; the step that it saved last."""
    interval, write = of.habit[:2, of.run[at]]
    begin, ran, first = of.restart_s[at], of.ran_s[at], resumed
    if begin >= ran:
        return [], resumed
    rows: list[dict[str, Any]] = [{"step": first, "logged_at": begin, "checkpoint_event": "loaded"}]
    for save in range(1, int((ran - begin) / (interval + write)) + 1):
        resumed = first + int(save * interval / STEP_S)
        rows.append({"step": resumed, "logged_at": begin + save * (interval + write),
                     "checkpoint_event": "saved", "checkpoint_s": write})  # fmt: skip
    worked = np.arange(LOGGED_S, ran - begin, LOGGED_S)
    clock = begin + worked + np.floor((worked - 1e-6) / interval) * write
    rows += [
        {"step": first + int(done / STEP_S), "logged_at": when, "step_time_s": STEP_S}
        for done, when in zip(worked, clock, strict=True)
        if when < ran
    ]
    return rows, resumed


@pytest.mark.slow
def test_a_few_stores_hold_the_truth_as_the_arrays_do(tmp_path: Path) -> None:
    held = []
    for number in range(4):
        of = cluster(np.random.default_rng([7, number]), n_runs=60)
        truth = of.played(of.habit[:2][:, of.run], of.restart_s)
        store = stored(tmp_path / str(number), of, 20)
        for level in (0.5, 0.9, 0.99):
            found = ledger_answer.measured(store, Selection(), conf_level=level)
            for name, true in gpu_hours(of, truth).items():
                bucket = found.bucket(name)
                assert bucket is not None
                hours = bucket.gpu_hours
                assert (hours.assumed, hours.conf_level) == (False, level)
                held.append((level, name, number, hours.lower <= true <= hours.upper,  # type: ignore[operator]
                             hours.value / true, hours.lower, hours.upper))  # type: ignore[operator]  # fmt: skip
        store.close()
    columns = ["level", "name", "store", "held", "ratio", "lower", "upper"]
    rows = pd.DataFrame(held, columns=columns)
    by_level = rows.groupby("level")["held"].sum()
    print(f"\n{by_level}\n{rows.query('level == 0.9')}")
    assert by_level[0.9] >= 12  # of 16
    assert by_level[0.5] < by_level[0.99]
    wide = rows.sort_values("level").groupby(["name", "store"])
    assert wide["lower"].apply(lambda bound: bound.is_monotonic_decreasing).all()
    assert wide["upper"].apply(lambda bound: bound.is_monotonic_increasing).all()


@pytest.mark.slow
def test_the_ettr_by_size_of_a_few_stores_is_the_one_played(tmp_path: Path) -> None:
    """20 of 60 runs have training metrics. Of 12 classes 90 % hold 10 to 12.

    Nobody waited, and all began at once: that says nothing of runs at other times.
    """
    held = {0.5: 0, 0.9: 0, 0.99: 0}
    for number in range(2):
        of = cluster(np.random.default_rng([8, number]), n_runs=60)
        spent = sum(of.played(of.habit[:2][:, of.run], of.restart_s).values())
        gpu_s = pd.DataFrame({"ran": of.ran_s, "kept": of.ran_s - spent}).mul(of.n_gpus, axis=0)
        sums = gpu_s.groupby(of.n_gpus).sum()
        truth = (sums["kept"] / sums["ran"]).tolist()
        with closing(stored(tmp_path / str(number), of, 20)) as store:
            for level in held:
                found = ettr_answer.measured(store, Selection(), conf_level=level)
                assert len(found.by_size) == len(truth)
                for group, true in zip(found.by_size, truth, strict=True):
                    these, alike = group.of_these_runs, group.ettr
                    assert (alike.conf_level, these.conf_level) == (level, level)
                    assert group.overlapping
                    assert alike.lower is None
                    held[level] += these.lower <= true <= these.upper  # type: ignore[operator]
    print(f"\nof 12 classes {held}")
    assert held[0.9] >= 10
    assert held[0.5] <= held[0.9] <= held[0.99]
