"""In which order metrics are asked: those first that told faults from health before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.nodes.machines.samples import Array

PUBLISHED = (
    r"pfc|pause",
    r"cpu",
    r"gpu_util|duty",
    r"power",
    r"gr_engine|graphics",
    r"tensor",
    r"nvlink",
)
"""Minder's order, each metric by what its names have in common."""


def in_order(metrics: Iterable[str], learnt: Sequence[str] = ()) -> list[str]:
    """Metrics as they are asked: as learnt, then as published, then as given.

    Examples
    --------
    >>> in_order(["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "cpu_usage"])
    ['cpu_usage', 'DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_DEV_GPU_TEMP']
    """

    def place(metric: str) -> tuple[int, int]:
        """Where it stands."""
        if metric in learnt:
            return 0, learnt.index(metric)
        known = (k for k, names in enumerate(PUBLISHED) if re.search(names, metric.lower()))
        return 1, next(known, len(PUBLISHED))

    return sorted(metrics, key=place)


def learnt_order(metrics: Sequence[str], scores: Array, faulty: Array) -> tuple[str, ...]:
    """Metrics by a decision tree that tells faulty windows from healthy ones.

    A metric stands the higher the nearer to the root the tree first asks it; of one depth, the one
    that sorts more windows. What the tree never asks comes last.

    Parameters
    ----------
    metrics
        Names, n of them.
    scores
        (windows, n) Of each window and metric the highest score of any machine.
    faulty
        (windows) Whether a machine is faulty then.

    Raises
    ------
    ShapeError
        Where the arrays do not fit together or the windows are all of one kind.

    References
    ----------
    Minder, arXiv 2411.01791, section on the prioritisation of metrics.

    Examples
    --------
    >>> scores = np.array([[1.0, 1.0], [2.0, 9.0], [2.0, 8.0], [1.0, 2.0]])
    >>> learnt_order(["power", "pfc"], scores, np.array([False, True, True, False]))
    ('pfc', 'power')
    """
    from sklearn.tree import DecisionTreeClassifier

    if scores.shape != (faulty.size, len(metrics)) or faulty.all() or not faulty.any():
        raise ShapeError(
            "scores must be (windows, metrics) with windows of both kinds: pass healthy and "
            "faulty ones"
        )
    tree = DecisionTreeClassifier(
        max_depth=len(metrics), min_samples_leaf=max(1, faulty.size // 100), random_state=0,
        class_weight="balanced",
    ).fit(scores, faulty).tree_  # fmt: skip
    depth = np.zeros(tree.node_count, dtype=int)
    for node in range(tree.node_count):  # children come after their parents
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    ranks = []
    for k, metric in enumerate(metrics):
        asked = np.flatnonzero(tree.feature == k)
        first = int(asked[depth[asked].argmin()]) if asked.size else -1
        at = (
            (int(depth[first]), -int(tree.n_node_samples[first])) if asked.size else (len(depth), 0)
        )
        ranks.append((at, metric))
    return tuple(metric for _, metric in sorted(ranks, key=lambda each: each[0]))
