"""What a run logged, from the store or from a file, as the analyses take it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analytics.training.stability.course import STEP, Logged
from data.errors import DataError
from data.ingest.logged_steps import logged_steps
from data.ingest.reader import Options
from data.queries import training

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints
    from data.ingest.logged_steps import LoggedSteps
    from data.store import Store

NUMBERS = ("loss", "grad_norm", "step_time_s", "throughput", "learning_rate", "loss_scale")


@dataclass(frozen=True)
class RunLog:
    """The rows of one run, and what is known of them."""

    logged: Logged
    cluster: str | None
    run_id: str | None
    further: tuple[str, ...]
    """Further series that it holds."""
    n_ranks: int = 1
    notices: tuple[str, ...] = ()


def of_store(store: Store, cluster: str, run_id: str) -> RunLog:
    """A run of the store."""
    further = tuple(training.further_series(store, cluster, run_id))
    found = training.steps(store, cluster, run_id, further)
    values = {name: found[name] for name in (*NUMBERS, *further)}
    values = {name: value for name, value in values.items() if not np.isnan(value).all()}
    event = found["event"].astype(np.int8)
    logged = Logged(found["step"].astype(np.int64), found["logged_at"], values, event)
    numeric = tuple(name for name in further if name in values)
    return RunLog(logged, cluster, run_id, numeric, training.n_ranks(store, cluster, run_id))


def of_file(
    path: str,
    progress: Callable[[str], None],
    run_id: str | None = None,
    timezone: str | None = None,
) -> RunLog:
    """The run of a file; of several the one that is named.

    Raises
    ------
    DataError
        Where the file holds several runs and none is named, or not the one that is.
    SourceError
        Where nothing in the file can be read.
    """
    found = logged_steps(Path(path), Options(progress=progress, timezone=timezone))
    rows = _rows_of(found, run_id)
    rank = _rank(found.rank[rows], found.checkpoint_event[rows])
    columns = {name: getattr(found, name) for name in NUMBERS} | dict(found.series)
    columns = {name: value[rows] for name, value in columns.items()}
    logged = Logged(
        _whole(found.step[rows]),
        found.logged_at[rows],
        {name: value for name, value in columns.items() if not np.isnan(value).all()},
        found.checkpoint_event[rows],
    )
    if rank is not None:
        logged = logged.of_rows(rank)
    further = tuple(name for name in found.series if name in logged.values)
    named = run_id or next((name for name in found.runs if name), None)
    n_ranks = max(len(np.unique(found.rank[rows][~np.isnan(found.rank[rows])])), 1)
    return RunLog(logged, None, named, further, n_ranks, found.notices)


def _whole(step: Floats) -> Ints:
    """Steps as whole numbers; -1 of a save or load that names none."""
    unknown = np.isnan(step)
    return np.where(unknown, -1, step).astype(np.int64) if unknown.any() else step.astype(np.int64)


def _rows_of(found: LoggedSteps, run_id: str | None) -> slice | Bools:
    """The rows of a run."""
    if len(found.runs) == 1 and run_id in (None, found.runs[0]):
        return slice(None)
    names = ", ".join(str(name) for name in found.runs[:5])
    if run_id not in found.runs:
        said = "holds several runs" if run_id is None else f"holds no run {run_id}"
        raise DataError(f"the file {said} ({names}): name one by --run")
    return np.asarray(found.run == found.runs.index(run_id))


def _rank(rank: Floats, event: NDArray[np.int8]) -> Bools | None:
    """Rows of the rank that logged most steps (rows that name none are one), and all events; None
    where no row names a rank."""
    if np.isnan(rank).all():
        return None
    named = np.nan_to_num(rank, nan=-1.0)
    ranks, counts = np.unique(named[event == STEP], return_counts=True)
    if not len(ranks):
        return None
    return np.asarray((named == ranks[np.argmax(counts)]) | (event != STEP))


def known_series(run: RunLog, names: tuple[str, ...]) -> tuple[str, ...]:
    """The further series that were asked for.

    Raises
    ------
    DataError
        Where the run logs no such series.
    """
    for name in names:
        if name not in run.logged.values:
            known = ", ".join(run.further) or "none"
            raise DataError(f"--series {name}: the run logs no such series (further: {known})")
    return tuple(name for name in names if name not in NUMBERS[:2])
