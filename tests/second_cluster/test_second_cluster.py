"""Verdicts on a cluster that the demo's generator did not make."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from app.actions import Options, ingest_files
from app.answers.failures import summary
from app.ask import of_store
from data.filters import Selection
from data.store import Store
from tests.second_cluster.cluster import UNRELATED, Cluster, Plan
from tests.second_cluster.lemons import KINDS, LemonCluster

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Plan({1: 700, 4: 150, 64: 40, 512: 45})
NOISE = 1 + SMALL.noisy_nodes * (SMALL.noise - 1) / SMALL.n_nodes
"""Times that the fleet fires more often than its quiet nodes."""
LARGE = Plan({1: 6000, 2: 1500, 8: 1000, 32: 500, 128: 500, 256: 500, 512: 700}, n_nodes=1024)


def judged(cluster: Cluster, folder: Path) -> pd.DataFrame:
    """Truth and verdict of each job, read by the command line's own readers."""
    root = folder / "store"
    files = [str(path) for path in cluster.files(folder).values()]
    _, errors = ingest_files(root, "auto", files, Options(cluster="second"))
    assert not errors
    with closing(Store.open(root)) as store:
        found = store.frame(
            """SELECT CAST(job_id AS BIGINT) AS job_id, failures.cause, failures.domain
               FROM failures JOIN jobs USING (cluster, attempt_key)"""
        )
    truth = pd.DataFrame(
        [(job.job_id, len(job.nodes), job.cause, job.evident) for job in cluster.jobs],
        columns=["job_id", "n_nodes", "truth", "evident"],
    )
    return truth.merge(found, how="left", on="job_id")


def scores(jobs: pd.DataFrame) -> pd.DataFrame:
    """By size: the share of evident faults named right, and of user failures called hardware."""
    evident, user = jobs[jobs["evident"]], jobs[jobs["truth"].eq("user")]
    by_size = {
        "n_faults": evident.groupby("n_nodes").size(),
        "right": evident["cause"].eq(evident["truth"]).groupby(evident["n_nodes"]).mean(),
        "n_user": user.groupby("n_nodes").size(),
        "called_hardware": user["domain"].eq("hardware").groupby(user["n_nodes"]).mean(),
    }
    return pd.DataFrame(by_size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("second")


@pytest.fixture(scope="module")
def small(folder: Path) -> pd.DataFrame:
    return judged(Cluster(SMALL), folder)


@pytest.mark.slow
def test_what_broke_is_named_at_any_size(small: pd.DataFrame) -> None:
    found = scores(small)
    assert found["n_faults"].sum() >= 20
    assert found["right"].min() >= 0.95


def test_unrelated_checks_never_turn_a_user_s_failure_into_hardware(small: pd.DataFrame) -> None:
    found = scores(small)
    assert found["n_user"].min() >= 10
    assert found["called_hardware"].max() == 0.0


@pytest.mark.usefixtures("small")
def test_what_chance_would_do_is_told_by_size(folder: Path) -> None:
    with closing(Store.open(folder / "store")) as store:
        answer = summary.answer(of_store(store), Selection())
    sizes = {size.nodes_to: size for size in answer.record["misattribution_by_size"]}
    expected = -np.expm1(-512 / 96 * (sum(rate for _, rate in UNRELATED.values()) * NOISE))
    assert sizes[512].hit_by_chance.lower <= expected <= sizes[512].hit_by_chance.upper
    assert sizes[512].misattributed.value <= 0.005
    assert sizes[1].hit_by_chance.value < 0.01
    assert [row[0] for row in answer.table("misattribution_by_size").values] == [
        "1 node", "3 to 4 nodes", "33 to 64 nodes", "257 to 512 nodes",
    ]  # fmt: skip


@pytest.mark.slow
def test_both_hold_in_every_size_class_of_large_clusters(tmp_path: Path) -> None:
    parts = []
    for seed in range(1, 9):
        (tmp_path / str(seed)).mkdir()
        plan = LARGE._replace(seed=seed, drained_for_nothing_ratio=0.5 * (seed % 2))
        parts.append(judged(Cluster(plan), tmp_path / str(seed)))
    found = scores(pd.concat(parts))
    print("\n", found)
    assert found["right"].min() >= 0.95
    assert found["called_hardware"].max() <= 0.005


@pytest.mark.slow
def test_lemons_of_the_second_cluster_are_of_eight_kinds_and_read_whole(tmp_path: Path) -> None:
    cluster, root = LemonCluster(seed=3, n_jobs=2_500), tmp_path / "store"
    files = [str(path) for path in cluster.files(tmp_path).values()]
    results, errors = ingest_files(root, "auto", files, Options(cluster="second"))
    assert not errors
    assert [result.rejected_by_reason for result in results] == [{}] * 5
    assert {lemon.kind: 3 for lemon in cluster.lemons} == dict.fromkeys(KINDS, 3)
    assert len({lemon.node for lemon in cluster.lemons} | set(cluster.traps.values())) == 24 + 6
    with closing(Store.open(root)) as store:
        attempts = store.frame("SELECT node, count(*) AS n FROM job_nodes GROUP BY node")
        avoided = store.frame(
            """SELECT excluded_nodes AS node, count(DISTINCT "user") AS users FROM jobs
               WHERE excluded_nodes IS NOT NULL GROUP BY excluded_nodes"""
        ).set_index("node")["users"]
    runs = attempts.set_index("node")["n"]
    assert runs[cluster.traps["busy"]] > 10 * runs.median()
    assert avoided[cluster.traps["shunned"]] <= 2
    known = [lemon.node for lemon in cluster.lemons if lemon.kind == "avoided"]
    assert avoided[known].min() >= 3
    of_lemons = [node for node, *_ in cluster.losses if node in {x.node for x in cluster.lemons}]
    assert 0 < len(of_lemons) < len(cluster.losses)
