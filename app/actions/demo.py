"""The demo in a store of one's own: where it may go, how it comes in, how it goes out again."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.audit import login
from data.current import read_current
from data.errors import StoreError
from data.ingest import Options, store_files
from data.publish import writer
from data.queries import fleet
from data.said import Said
from data.snapshots import damaged_notes, kept_snapshots
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from data.publish import StoreWriter
    from data.synthetic import DemoSpec, DemoTruth
    from data.synthetic.traces import PlantedTrace


@dataclass(frozen=True)
class DemoBuilt:
    """A demo store that was built."""

    jobs: int
    nodes: int
    days: float
    seconds: float
    truth: DemoTruth


def takes_demo(root: Path) -> bool:
    """Whether the demo can be loaded here: no real data is kept, and the folder can be written.

    A folder that is not there yet can be written where the nearest one above it can.
    """
    nearest = next(folder for folder in (root, *root.resolve().parents) if folder.exists())
    return os.access(nearest, os.W_OK) and not _real_data(root)


def build_demo(
    root: Path,
    spec: DemoSpec,
    progress: Callable[[str], None] = lambda message: None,
    *,
    author: str | None = None,
) -> DemoBuilt:
    """Builds the synthetic cluster's store anew; refuses a store that holds real data."""
    from data.synthetic import demo_cluster

    begin = time.monotonic()
    with writer(root, fresh=True) as building:
        if real := "" if building.synthetic else _real_data(root):
            raise StoreError(f"{root}: {real}: the demo goes elsewhere, e.g. --store ./demo-store")
        demo = demo_cluster(spec, progress)
        progress("storing")
        building.keeps = 1  # what was generated before is of no use
        building.load(demo.tables)
        _load_traces(building, demo.traces)
        building.publish(progress, ledger=True)
    State(root).record(author or login(), "demo", {"seed": spec.seed, "jobs": spec.n_jobs})
    seconds = time.monotonic() - begin
    return DemoBuilt(spec.n_jobs, spec.n_nodes, spec.days, seconds, demo.truth)


def load_demo(
    root: Path,
    progress: Callable[[str], None] = lambda message: None,
    *,
    author: str | None = None,
) -> DemoBuilt:
    """The demo as `faultline demo` builds it where nothing else is said."""
    from data.synthetic import DemoSpec

    return build_demo(root, DemoSpec.of(None, None, None, 0), progress, author=author)


def remove_demo(root: Path, *, author: str | None = None) -> None:
    """Takes the demo out again: the store is empty then, and takes records.

    Raises
    ------
    StoreError
        Where the store holds no demo.
    """
    with writer(root, fresh=True) as building:
        if not building.synthetic:
            raise StoreError(f"{root}: holds no demo: there is nothing to remove")
        building.keeps = 0
        building.publish()
    State(root).record(author or login(), "remove demo", {})


def _real_data(root: Path) -> str:
    """That a store holds real data, or keeps what was taken back; empty where it does neither.

    The demo replaces every snapshot, and with them what an undo could bring back.
    """
    if damaged_notes(root):
        return "keeps a snapshot of which the note is damaged"
    published = read_current(root)
    for current, _ in reversed(kept_snapshots(root)):
        with contextlib.closing(Store(root, current, Said())) as store:
            if not current.synthetic and not fleet.is_untouched(store):
                number = current.snapshot
                held = "holds real data"
                kept = f"keeps real data that was taken back, as snapshot {number}"
                return held if current == published else kept
    return ""


def _load_traces(building: StoreWriter, traces: Sequence[PlantedTrace]) -> None:
    """Stores the demo's straggler traces as if they had been ingested."""
    from data.ingest.readers.training.straggler_rows import rows_of
    from data.ingest.readers.training.straggler_trace import TraceMeta, trace_batch

    for trace in traces:
        shape = trace.shape
        meta = TraceMeta(
            trial_name=trace.name,
            run_id=None,
            dp_size=shape.dp,
            pp_size=shape.pp,
            tp_size=shape.tp,
            dsp_size=shape.dsp,
            vpp_size=shape.vpp,
            world_size=shape.dp * shape.pp * shape.tp * shape.dsp,
        )
        options = Options(job_id=trace.job_id)
        batch = trace_batch(rows_of(trace.columns), meta, name=trace.name, options=options)
        building.load(batch.tables)
        store_files(building, batch)
