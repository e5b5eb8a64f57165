"""The ledger without the attempts before a requeue: the truth lies within its bounds."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.answers.efficiency import ettr, ledger
from data.filters import Selection
from data.ingest import Options, ingest
from data.publish import writer
from data.store import Store
from tests.requeued.cluster import GPUS, Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.goodput import GoodputLedger

ALL = Selection()
OUT = ("drained", "down_planned", "down_unplanned")
NAMES = {True: "restarts", False: "silent"}
CLOSE = 0.01
"""GPU-hours that rounding to whole seconds and hours of float may move."""


def measured(cluster: Cluster, folder: Path, **of_file: bool) -> GoodputLedger:
    """The ledger of what Slurm prints of a cluster, read by the command line's own readers."""
    root = folder / "store"
    files = cluster.write(folder, **of_file)
    with writer(root) as building:
        for reader, path in files:
            of = {"cluster": "hal"} if reader == "scontrol-nodes" else {}
            found = ingest(building, reader, str(path), Options(timezone="UTC", **of))
            assert found.rows_kept
            assert not found.rows_rejected
        building.publish(ledger=True)
    with closing(Store.open(root)) as store:
        return ledger.measured(store, ALL)


def ettr_of(folder: Path) -> EttrReport:
    """ETTR of the runs of a store."""
    with closing(Store.open(folder / "store")) as store:
        return ettr.measured(store, ALL)


class Case:
    """A cluster with the ledger of all its attempts, and the truth of each bucket."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.whole = measured(cluster, folder / "whole", duplicates=True)

    def truth(self, found: GoodputLedger) -> dict[str, float]:
        """GPU-hours by the cluster's own books in the time that a ledger covers."""
        lasts_s = found.total_gpu_seconds // (self.cluster.n_nodes * GPUS)
        return self.cluster.truth(self.cluster.end_s - lasts_s)

    def without(self, *, restarts: bool) -> GoodputLedger:
        """The ledger without the attempts before a requeue."""
        folder = self.folder / NAMES[restarts]
        return measured(self.cluster, folder, duplicates=False, restarts=restarts)


def table(case: Case, found: GoodputLedger) -> list[str]:
    """Each bucket as a row of a table: GPU-hours, and the width as a share of all."""
    truth = case.truth(found)
    rows = ["| bucket | lower | recorded | upper | truth by the rules | truth | width |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    for bucket in found.buckets:
        hours, whole = bucket.gpu_hours, case.whole.bucket(bucket.bucket)
        assert whole is not None
        assert None not in (hours.lower, hours.upper)
        each = (hours.lower, hours.value, hours.upper, whole.gpu_hours.value,
                truth.get(bucket.bucket, 0.0))  # fmt: skip
        width = 100 * ((hours.upper or 0.0) - (hours.lower or 0.0)) / (found.total_gpu_hours or 1.0)
        numbers = " | ".join(f"{value:,.0f}" for value in each)
        rows.append(f"| {bucket.bucket} | {numbers} | {width:.1f} % |")
    return rows


def check(case: Case, found: GoodputLedger) -> None:
    """The truth, by the product's rules and by the generator's own books, lies within all bounds."""
    truth = case.truth(found)
    for bucket in found.buckets:
        hours, whole = bucket.gpu_hours, case.whole.bucket(bucket.bucket)
        assert whole is not None
        assert None not in (hours.lower, hours.value, hours.upper, whole.gpu_hours.value)
        real = truth.get(bucket.bucket, 0.0)
        for value in (whole.gpu_hours.value, real):
            assert hours.lower - CLOSE <= value <= hours.upper + CLOSE, (
                bucket.bucket,
                value,
                hours,
            )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(Cluster(12, 400, 5, often=True), tmp_path_factory.mktemp("small"))


@pytest.mark.slow
def test_the_ledger_of_all_attempts_is_what_the_cluster_itself_knows(small: Case) -> None:
    truth = small.truth(small.whole)
    found = {each.bucket: each.gpu_seconds / 3600 for each in small.whole.buckets}
    for name in OUT:
        assert found[name] == pytest.approx(truth[name], abs=CLOSE)
    # Of a job that still waits sacct does not print GPUs: what it wants is not known.
    free = truth["queue_hold"] + truth["idle"]
    assert found["queue_hold"] + found["idle"] == pytest.approx(free, abs=CLOSE)
    fixed = [each for each in small.whole.buckets if not each.kind.of_jobs]
    assert not any(each.bounded or each.gpu_hours.has_width for each in fixed)
    assert not small.whole.bounded


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [True, False], ids=["restarts", "no_restarts"])
def test_without_attempts_before_a_requeue_the_truth_lies_within_the_bounds(
    small: Case, restarts: bool
) -> None:
    found = small.without(restarts=restarts)
    check(small, found)
    recorded = {each.bucket: each.gpu_seconds for each in small.whole.buckets}
    assert any(each.gpu_seconds != recorded[each.bucket] for each in found.buckets)
    assert all(each.bounded for each in found.buckets if each.bucket in ("idle", "lost_work"))


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [True, False], ids=["restarts", "no_restarts"])
def test_ettr_of_the_same_runs_with_every_attempt_lies_within_its_bounds(
    small: Case, restarts: bool
) -> None:
    whole, found = (ettr_of(small.folder / name) for name in ("whole", NAMES[restarts]))
    # A run that waits again, with no attempt recorded that ran, is not among them.
    runs = whole.by_run[whole.by_run["run_id"].isin(found.by_run["run_id"])]
    assert found.n_runs == len(runs) >= whole.n_runs - 3
    seconds = runs[["productive_s", "queued_s", "scheduled_s"]].mul(runs["n_gpus"], axis=0).sum()
    own, whole_ettr = found.of_these_runs, seconds.iloc[0] / seconds.iloc[1:].sum()
    assert own.lower is not None
    assert own.upper is not None
    assert own.lower < whole_ettr < own.upper
    assert own.conf_level is None
    assert any("attempts before a requeue are missing" in note for note in found.notes)
    assert not any("requeue" in note for note in whole.notes)


@pytest.mark.slow
@pytest.mark.parametrize("often", [True, False], ids=["often", "rare"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_of_192_nodes_and_20000_jobs_the_truth_lies_within_the_bounds(
    seed: int, often: bool, tmp_path: Path
) -> None:
    case = Case(Cluster(192, 20_000, seed, often=often), tmp_path)
    for restarts in (True, False):
        found = case.without(restarts=restarts)
        print(f"\nseed {seed}, requeues {'often' if often else 'rare'}, "
              f"Restarts {'in' if restarts else 'not in'} the file\n")  # fmt: skip
        print("\n".join(table(case, found)))
        check(case, found)
