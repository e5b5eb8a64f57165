"""Node lists as Slurm writes them: gpu[0001-0004,0007]."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from data.synthetic.columns import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.synthetic.schedule import Schedule


def node_lists(schedule: Schedule, names: list[str]) -> pa.DictionaryArray:
    """The node list of every attempt, NULL where it never started.

    Single nodes are looked up by number; the lists of multi-node attempts follow behind them.
    """
    n_nodes = schedule.n_nodes
    codes = np.full(len(schedule), -1)
    one = np.flatnonzero(n_nodes == 1)
    codes[one] = schedule.nodes[schedule.begins[one]]
    many = np.flatnonzero(n_nodes > 1)
    codes[many] = len(names) + np.arange(len(many))
    lists = _bracketed(schedule, many, names)
    return words(codes, pa.concat_arrays([pa.array(names), pa.array(lists, pa.string())]))


def _bracketed(schedule: Schedule, many: np.ndarray, names: list[str]) -> list[str]:
    if not len(many):
        return []
    stem = names[0].rstrip("0123456789")
    numbers = [name[len(stem) :] for name in names]
    texts = [""] * len(many)
    for attempt, runs in groupby(_runs(schedule), itemgetter(0)):
        parts = [
            numbers[low] if low == high else f"{numbers[low]}-{numbers[high]}"
            for _, low, high in runs
        ]
        texts[attempt] = f"{stem}[{','.join(parts)}]"
    return texts


def _runs(schedule: Schedule) -> Iterator[tuple[int, int, int]]:
    """Number among the multi-node attempts, first and last node of every run of adjacent nodes."""
    n_nodes = schedule.n_nodes
    wide = n_nodes > 1
    attempt = np.repeat(np.cumsum(wide) - 1, n_nodes)
    chosen = np.repeat(wide, n_nodes)
    attempt, node = attempt[chosen], schedule.nodes[chosen]
    order = np.lexsort((node, attempt))
    attempt, node = attempt[order], node[order]
    breaks = (np.diff(attempt) != 0) | (np.diff(node) != 1)
    low = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    high = np.append(low[1:], len(node)) - 1
    yield from zip(attempt[low].tolist(), node[low].tolist(), node[high].tolist(), strict=True)
