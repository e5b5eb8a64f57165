"""A cluster of which the truth is known: nodes that fail at their own rates, runs that save.

Nothing of the product is used but the form of its frames: saves and failures are played by clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

HOUR = 3600.0
N_NODES = 96
LEMONS = 6
NODES_OF_RUNS = (2, 2, 4, 4, 4, 8, 8, 16, 16, 32)
DAYS = 30.0
WRITE_S, RESTART_S = 60.0, 300.0


@dataclass(frozen=True)
class Cluster:
    """Each run holds its nodes for the whole period; its attempts end by failures of these."""

    rate_per_day: np.ndarray
    run_of: np.ndarray
    interval_s: np.ndarray
    """Of each run."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, *, spread: float) -> Cluster:
        """Healthy nodes of one rate, lemons of 12 times that; habits of runs differ by `spread`."""
        rate = np.full(N_NODES, 0.012)
        rate[rng.choice(N_NODES, LEMONS, replace=False)] *= 12
        run_of = np.repeat(np.arange(len(NODES_OF_RUNS)), NODES_OF_RUNS)
        intervals = HOUR * np.exp(spread * rng.standard_normal(len(NODES_OF_RUNS)))
        return cls(rate, run_of, intervals)

    def lost_s(self, ran_s: np.ndarray, interval_s: float) -> np.ndarray:
        """Work since the last save of attempts that failed after so long, by the clock."""
        worked = np.maximum(ran_s - RESTART_S, 0.0)
        since = np.minimum(worked % (interval_s + WRITE_S), interval_s)
        return np.where(worked < interval_s, worked, since)

    def month(self, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each run when it failed, hours from the begin in order, and by which node."""
        found = []
        for run in range(len(self.interval_s)):
            nodes = np.flatnonzero(self.run_of == run)
            n = rng.poisson(self.rate_per_day[nodes] * DAYS)
            at = rng.uniform(0, DAYS * 24, n.sum())
            order = np.argsort(at)
            found.append((at[order], np.repeat(nodes, n)[order]))
        return found

    def attempts(self, month: list[tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
        """What a store would tell of it."""
        frames = []
        for run, (at, node) in enumerate(month):
            ran = np.diff(np.concatenate([[0.0], at, [DAYS * 24]])) * HOUR
            failed = np.append(np.ones(len(at), dtype=bool), False)
            frames.append(
                pd.DataFrame(
                    {
                        "cluster": "c", "run_id": f"r{run}", "name": "train",
                        "n_gpus": 8 * NODES_OF_RUNS[run], "several": True,
                        "ran_s": ran.astype(np.int64), "counted_s": np.floor(ran),
                        "bucket": np.where(failed, "lost_work", None),
                        "cause": np.where(failed, "gpu_memory", None),
                        "node": [*(f"n{each}" for each in node), None],
                        "event": [f"{run}-{place}" for place in range(len(ran))],
                        "again": failed, "waited_s": 0.0, "interval_s": np.nan,
                        "write_s": np.nan, "restart_s": np.nan,
                    }
                )
            )  # fmt: skip
        return pd.concat(frames, ignore_index=True)

    def costs(self, month: list[tuple[np.ndarray, np.ndarray]], interval_s: float | None) -> dict:
        """GPU-hours by the clock: of each run its failures' cost, and its writing."""
        cost, written = [], []
        for run, (at, _) in enumerate(month):
            every = self.interval_s[run] if interval_s is None else interval_s
            gpus = 8 * NODES_OF_RUNS[run] / HOUR
            ran = np.diff(np.concatenate([[0.0], at, [DAYS * 24]])) * HOUR
            cost.append(gpus * (self.lost_s(ran[:-1], every).sum() + RESTART_S * len(at)))
            saves = np.floor(np.maximum(ran - RESTART_S, 0.0) / (every + WRITE_S))
            written.append(gpus * WRITE_S * saves.sum())
        return {"cost": np.array(cost), "written": np.array(written),
                "failures": np.array([len(at) for at, _ in month])}  # fmt: skip

    def exposure(self) -> pd.DataFrame:
        """Days of each node in jobs."""
        nodes = [f"n{each}" for each in range(N_NODES)]
        return pd.DataFrame({"cluster": "c", "node": nodes, "exposure_node_days": DAYS})


@dataclass(frozen=True)
class Truth:
    """Means over many months."""

    cluster: Cluster
    per_failure: np.ndarray
    """Mean cost of a failure of each run."""
    by_interval: float
    """Regained at the other interval."""

    @classmethod
    def of(cls, cluster: Cluster, interval_s: float, rng: np.random.Generator, n: int) -> Truth:
        """Plays n months, each at both intervals."""
        months = [cluster.month(rng) for _ in range(n)]
        then = [cluster.costs(month, None) for month in months]
        now = [cluster.costs(month, interval_s) for month in months]
        cost = sum(each["cost"] for each in then) / sum(each["failures"] for each in then)
        less = [
            (a["cost"] + a["written"] - b["cost"] - b["written"]).sum()
            for a, b in zip(then, now, strict=True)
        ]
        return cls(cluster, cost, float(np.mean(less)))

    def by_nodes(self, nodes: np.ndarray) -> float:
        """Regained in the mean with healthy nodes in place of these."""
        rate = self.cluster.rate_per_day
        healthy = np.delete(rate, nodes).mean()
        return float(
            ((rate[nodes] - healthy) * DAYS * self.per_failure[self.cluster.run_of[nodes]]).sum()
        )
