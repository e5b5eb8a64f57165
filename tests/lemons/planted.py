"""Stores of 2,000 nodes with 24 planted lemons, and how a list of nodes fares on them.

The truth comes from two generators that share no code: the demo and `second_cluster.lemons`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from app.actions import Options, build_demo, ingest_files
from data.store import Store
from data.synthetic import DemoSpec
from data.synthetic.spec import START_AT
from tests.second_cluster.cluster import BEGIN, DAY
from tests.second_cluster.lemons import SCORED_DAY, LemonCluster

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MONTH = timedelta(days=28)
LOSS_S = 1_800
"""What an attempt that a fault ends loses at most (papers.md A7: 30 minutes)."""


class Judged(NamedTuple):
    """How a list fares; shares of GPU-hours are of what faults lose in the 28 days after."""

    n_listed: int
    n_right: int
    n_lemons: int
    lost: float
    """GPU-hours."""
    of_listed: float
    """GPU-hours lost by faults of nodes of the list: what draining them would have saved."""
    of_lemons: float
    """GPU-hours lost by faults of the planted lemons: what the truth would have saved."""


class Score(NamedTuple):
    """What several lists come to."""

    precision: float
    recall: float
    saved: float
    saved_by_truth: float


@dataclass(frozen=True)
class Planted:
    """A store, the time at which lemons are looked for in it, and the truth."""

    store: Path
    at: datetime
    lemons: dict[str, float]
    """Node -> occasions expected of it in 28 days."""
    losses: pd.DataFrame
    """Of each attempt that a fault ended: `node` at fault, `at` (UTC), `gpu_hours` lost."""

    def judge(self, listed: Collection[str]) -> Judged:
        """How a list of nodes fares that was made at `at`."""
        after = self.losses[self.losses["at"].between(self.at, self.at + MONTH)]

        def of(nodes: Collection[str]) -> float:
            return float(after.loc[after["node"].isin(nodes), "gpu_hours"].sum())

        right = set(listed) & self.lemons.keys()
        return Judged(
            n_listed=len(listed),
            n_right=len(right),
            n_lemons=len(self.lemons),
            lost=float(after["gpu_hours"].sum()),
            of_listed=of(listed),
            of_lemons=of(self.lemons),
        )


def score(judged: list[Judged]) -> Score:
    """All lists together."""
    all_of = {name: sum(getattr(one, name) for one in judged) for name in Judged._fields}
    return Score(
        precision=all_of["n_right"] / max(all_of["n_listed"], 1),
        recall=all_of["n_right"] / all_of["n_lemons"],
        saved=all_of["of_listed"] / all_of["lost"],
        saved_by_truth=all_of["of_lemons"] / all_of["lost"],
    )


def in_the_demo(seed: int, folder: Path) -> Planted:
    """The demo, at the end of its first 28 days of 56."""
    root, spec = folder / "store", DemoSpec.of(n_nodes=2_000, days=56, seed=seed)
    built = build_demo(root, spec, lambda _: None)
    struck = built.truth.attempts.to_pandas().dropna(subset="node")
    return Planted(
        root,
        START_AT + MONTH,
        {
            str(one["node"]): float(str(one["expected_occasions"]))
            for one in built.truth.lemon_nodes
        },
        _losses(root, struck[["attempt_key", "node"]]),
    )


def _losses(root: Path, struck: pd.DataFrame) -> pd.DataFrame:
    """What struck attempts lost, of the jobs that the store holds."""
    with closing(Store.open(root)) as store:
        jobs = store.frame("SELECT attempt_key, end_at, elapsed_s, n_gpus FROM jobs")
    rows = struck.astype({"node": str}).merge(jobs, on="attempt_key", validate="one_to_one")
    lost_s = rows["elapsed_s"].clip(upper=LOSS_S)
    return pd.DataFrame({
        "node": rows["node"], "at": rows["end_at"], "gpu_hours": rows["n_gpus"] * lost_s / 3600,
    })  # fmt: skip


def in_the_second_cluster(seed: int, folder: Path) -> Planted:
    """The second cluster, read from its files."""
    cluster, root = LemonCluster(seed), folder / "store"
    files = [str(path) for path in cluster.files(folder).values()]
    _, errors = ingest_files(root, "auto", files, Options(cluster="second"))
    assert not errors
    return Planted(
        root,
        datetime.fromtimestamp(BEGIN + SCORED_DAY * DAY, UTC),
        {one.node: one.expected_occasions for one in cluster.lemons},
        pd.DataFrame(cluster.losses, columns=["node", "at", "gpu_hours"]),
    )


GENERATORS = {"demo": in_the_demo, "second cluster": in_the_second_cluster}
"""Name -> what makes a store from a seed in a folder."""
