"""The ledger without the attempts before a requeue: the truth lies within its bounds."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, build_ledger, ingest_files
from app.answers.efficiency import ledger
from data.filters import Selection
from data.store import Store
from tests.requeued.cluster import GPUS, Cluster
from tests.some import some_at_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analytics.efficiency.goodput import GoodputLedger

ALL = Selection()
FREE = ("queue_hold", "idle")
OF_RECORDS = (*FREE, "drained", "down_planned", "down_unplanned")
"""Buckets that the generator's own books know to the second."""
CLOSE = 0.01
"""GPU-hours that rounding to whole seconds and hours of float may move."""


def measured(cluster: Cluster, folder: Path, **of_file: bool) -> GoodputLedger:
    """The ledger of what Slurm prints of a cluster, read by the command line's own readers."""
    root = folder / "store"
    for reader, path in cluster.write(folder, **of_file):
        of = {"cluster": "hal"} if reader == "scontrol-nodes" else {}
        _, errors = ingest_files(root, reader, [str(path)], Options(timezone="UTC", **of))
        assert not errors
    build_ledger(root)
    with closing(Store.open(root)) as store:
        return ledger.measured(store, ALL)


class Case:
    """A cluster with the ledger of all its attempts, and the truth of each bucket."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.whole = measured(cluster, folder / "whole", duplicates=True)

    def rows(self, **of_file: bool) -> Iterator[tuple[str, float, float, float, float, float]]:
        """Bucket, lower, value, upper, truth of the whole ledger, truth of the generator."""
        name = "with" if of_file.get("restarts", True) else "without"
        found = measured(self.cluster, self.folder / name, duplicates=False, **of_file)
        a_second = self.cluster.n_nodes * GPUS
        truth = self.cluster.truth(self.cluster.end_s - found.total_gpu_seconds // a_second)
        for bucket in found.buckets:
            hours, whole = bucket.gpu_hours, self.whole.bucket(bucket.bucket)
            assert whole is not None
            assert None not in (hours.lower, hours.value, hours.upper, whole.gpu_hours.value)
            real = truth.get(bucket.bucket, 0.0)
            yield (bucket.bucket, hours.lower, hours.value, hours.upper, whole.gpu_hours.value, real)
