"""Chains: jobs that ran one after the other, as parts of one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, codes, microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.run_rule import RunRule

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Links: TypeAlias = tuple[Ints, Ints]

_HOUR = 3_600_000_000
_OPEN = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class _Parts:
    """What is joined so far, one row each that has started; microseconds."""

    rows: pd.DataFrame
    """First attempt of each that started."""
    row: Ints
    """Its row."""
    start: Ints
    end: Ints
    """Last end; beyond any time while an attempt is pending or running, or its end unknown."""
    begin: Ints
    """Submitted, eligible and started: a row each; `NEVER` where unknown."""
    completed: Bools
    """Whether its last attempt that started is COMPLETED."""

    def select(self, keep: Bools) -> _Parts:
        """Those of a mask."""
        return _Parts(
            self.rows[keep],
            self.row[keep],
            self.start[keep],
            self.end[keep],
            self.begin[:, keep],
            self.completed[keep],
        )

    def group(self, columns: Sequence[str]) -> Ints:
        """Code of the values of these columns; unknown is a value."""
        return codes(self.rows, columns)


def array_links(rows: pd.DataFrame, label: Ints, rule: RunRule) -> Links:
    """Tasks of one array that ran one after the other, as `--array=0-9%1` makes them.

    `rows` are in order of time, `label` says what is joined so far; pairs of rows.
    """
    tasks = rows["array_job_id"].notna().to_numpy()
    if rule.arrays == "apart" or not tasks.any():
        return _none()
    parts = _parts(rows, label)
    parts = parts.select(tasks[parts.row] & _large(parts.rows, rule.array_min_gpus))
    whole = parts.group(("cluster", "user", "array_job_id"))
    at_once = np.bincount(whole, weights=_crossed(parts, whole), minlength=1)[whole] > 0
    group = parts.group(("cluster", "user", "array_job_id", "size"))
    left, right = _neighbours(parts, group)
    good = ~at_once[left] & _goes_on(parts, left, right, rule)
    return parts.row[left[good]], parts.row[right[good]]


def name_links(rows: pd.DataFrame, label: Ints, rule: RunRule) -> Links:
    """Jobs of one user, name and size that ran one after the other: segments and restarts.

    `rows` are in order of time, `label` says what is joined so far; pairs of rows.
    """
    if rule.names == "apart" or rows.empty:
        return _none()
    parts = _parts(rows, label)
    parts = parts.select(_large(parts.rows, rule.name_min_gpus) & _named(parts.rows, rule))
    of_name = parts.group(("cluster", "user", "name"))
    many = np.bincount(of_name, minlength=1)
    share = np.bincount(of_name, weights=_crossed(parts, of_name), minlength=1) / many.clip(min=1)
    group = parts.group(("cluster", "user", "name", "account", "partition", "size"))
    crossed = _crossed(parts, group)
    left, right = _neighbours(parts, group)
    array = pd.factorize(parts.rows["array_job_id"])[0]
    waited_at_once = (parts.begin[1, right] != NEVER) & (parts.begin[1, right] < parts.start[left])
    good = (
        _goes_on(parts, left, right, rule)
        & ~(crossed[left] | crossed[right] | waited_at_once)
        & (share[of_name[left]] <= rule.max_overlap_ratio)
        & ((array[left] < 0) | (array[left] != array[right]))
    )
    return parts.row[left[good]], parts.row[right[good]]


def _none() -> Links:
    """No pair."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _parts(rows: pd.DataFrame, label: Ints) -> _Parts:
    """What is joined so far and has started, with the size of its first attempt that did."""
    times = {name: microseconds(rows[f"{name}_at"]) for name in ("submit", "eligible", "start")}
    end = microseconds(rows["end_at"])
    start = times["start"]
    until = np.full(int(label.max(initial=0)) + 1, NEVER)
    np.maximum.at(until, label, np.where(end == NEVER, _OPEN, np.maximum(end, start)))
    ran = np.flatnonzero(start != NEVER)
    named, place = np.unique(label[ran], return_index=True)
    _, from_last = np.unique(label[ran][::-1], return_index=True)
    first, last = ran[place], ran[::-1][from_last]
    gpus = pd.to_numeric(rows["n_gpus"]).to_numpy(dtype=float)[first]
    nodes = pd.to_numeric(rows["n_nodes"]).to_numpy(dtype=float)[first]
    return _Parts(
        rows=rows.iloc[first].assign(
            size=np.where(gpus > 0, gpus, -nodes), n_gpus=gpus, n_nodes=nodes
        ),
        row=first,
        start=start[first],
        end=until[named],
        begin=np.stack([values[first] for values in times.values()]),
        completed=rows["state"].eq("COMPLETED").to_numpy(dtype=bool)[last],
    )


def _large(rows: pd.DataFrame, min_gpus: int | None) -> Bools:
    """On several nodes, or of at least so many GPUs."""
    large = rows["n_nodes"] > 1 if min_gpus is None else rows["n_gpus"] >= min_gpus
    return large.to_numpy(dtype=bool)


def _named(rows: pd.DataFrame, rule: RunRule) -> Bools:
    """With a user and a name that says something."""
    generic = {"", *(name.casefold() for name in rule.generic_names)}
    name = rows["name"].astype(object)
    known = name.notna() & rows["user"].notna()
    plain = name.where(known, "").astype(str).str.strip().str.casefold()
    return (known & ~plain.isin(generic)).to_numpy(dtype=bool)


def _neighbours(parts: _Parts, group: Ints) -> Links:
    """Pairs that follow each other in one group, in order of start."""
    order = np.lexsort((parts.row, parts.end, parts.start, group))
    same = group[order][1:] == group[order][:-1]
    return order[:-1][same], order[1:][same]


def _crossed(parts: _Parts, group: Ints) -> Bools:
    """Which ran while another of their group ran."""
    order = np.lexsort((parts.row, parts.end, parts.start, group))
    start = parts.start[order]
    until = pd.Series(parts.end[order]).groupby(group[order]).cummax().to_numpy()
    same = group[order][1:] == group[order][:-1]
    found = np.zeros(len(order), dtype=bool)
    found[order[1:]] = same & (start[1:] < until[:-1])
    found[order[:-1]] |= same & (start[1:] < parts.end[order][:-1])
    return found


def _goes_on(parts: _Parts, left: Ints, right: Ints, rule: RunRule) -> Bools:
    """Whether the right one may go on where the left one ended."""
    end = parts.end[left]
    limit = end + np.minimum(int(rule.gap_hours * _HOUR), _OPEN - end)
    soon = (parts.begin[:, right] >= end) & (parts.begin[:, right] <= limit)
    good = (parts.start[right] >= end) & soon.any(axis=0)
    return good if rule.after_completed else good & ~parts.completed[left]
