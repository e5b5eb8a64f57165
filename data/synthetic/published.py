"""The published numbers the demo is calibrated on, and what it assumes where none is published.

Source of everything marked A: Kokolis et al., arXiv 2410.21680 (cluster RSC-1). What carries no
mark is this demo's own choice.
"""

from __future__ import annotations

from typing import Final

HOUR_S: Final = 3_600
DAY_S: Final = 86_400

STATE_SHARES: Final = {
    "COMPLETED": 0.60,
    "FAILED": 0.24,
    "PREEMPTED": 0.10,
    "REQUEUED": 0.02,
    "TIMEOUT": 0.006,
    "OUT_OF_MEMORY": 0.001,
    "CANCELLED": 0.033,
}
"""Share of attempts by the state they end in (A2, Fig. 3). The paper's NODE_FAIL (0.001) is not
listed: it follows from the planted failure rate. CANCELLED is what the others leave."""

CANCELLED_WAITING: Final = 0.012
"""Share of attempts cancelled before they start; part of CANCELLED."""

FAILURES_PER_1000_NODE_DAYS: Final = 6.50
"""Hardware failures per 1,000 node-days of running time, the mean over the fleet (A5, RSC-1)."""

LEMON_RATIO: Final = 0.012
"""Share of nodes that are lemons (A8)."""

LEMON_MOST_FAILURES: Final = 0.5
"""Share of all failures that lemons have at most."""

LEMON_LEAST_NODES: Final = 16
"""Smallest cluster with a lemon."""

GROUP_SHARES: Final = {"small": (0.93, 0.09), "medium": (0.065, 0.25), "large": (0.005, 0.66)}
"""Share of jobs and of GPU-time: over 90 % of jobs use at most one node and hold less than 10 % of
GPU-time, those of 256 GPUs and more 66 % (A1)."""

SMALL_JOBS: Final = {1: (0.45, 0.012), 2: (0.09, 0.006), 4: (0.08, 0.012), 8: (0.31, 0.06)}
"""GPUs -> relative share of jobs and, within the group, of GPU-time; one node at most. Over 40 % of
all jobs use one GPU (A1)."""

MEDIUM_JOBS: Final = {16: (0.029, 0.05), 32: (0.018, 0.06), 64: (0.011, 0.065), 128: (0.007, 0.075)}
"""The same of two to sixteen nodes."""

LARGE_JOBS: Final = {
    256: (0.0024, 0.17),
    512: (0.0014, 0.15),
    1024: (0.0006, 0.12),
    2048: (0.0004, 0.10),
    4096: (0.0002, 0.12),
}
"""The same of the classes that fit into half the cluster; jobs of 4,096 GPUs hold 12 % of GPU-time
(A1)."""

LONGEST_RUN_S: Final = 7 * DAY_S
"""Longest a job may run (A1)."""

PREEMPTIBLE_AFTER_S: Final = 2 * HOUR_S
"""Running time after which a multi-node job may be preempted (A1). Single-node jobs run at the
lowest quality of service and may be preempted at any time: only so can a tenth of all attempts be
preempted (A2) in a mix whose small jobs run for less than an hour."""

CHECKPOINT_INTERVAL_S: Final = HOUR_S
"""Productive time between two checkpoints (A6, A7: hourly)."""

CHECKPOINT_WRITE_S: Final = 60
"""Time a multi-node job stops for, to write a checkpoint."""

STARTUP_S: Final = 5 * 60
"""Time from start to the first step of a multi-node job (A6: u0 = 5 min)."""

REQUEUE_HOLD_S: Final = 121
"""Time before a requeued job is eligible again; Slurm adds two minutes and a second."""
