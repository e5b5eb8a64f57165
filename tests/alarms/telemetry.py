"""What a cluster logs beside its jobs and faults, while nothing is wrong and where it is.

A kernel has its ordinary lines, a training its losses with spikes that pass, machines their
metrics, and reserve nodes go out of service and come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from analytics.arrays import Floats

LINES_A_DAY = 12.0
ROWS_A_DAY = 240
ROWS_A_SAVE = 20
RANKS, ROWS_OF_RANKS = 4, 40
"""Ranks that log their own loss, and how seldom those but the first do."""
SPIKE_DAYS, SPIKE_ROWS = 8.0, 4.0
"""Days from one spike of the loss to the next, and rows in which it passes."""
N_RESERVE = 12
OUT_EVERY_DAYS, OUT_DAYS = 15.0, 0.42
"""Mean time to the next outage of a reserve node, and the median of its length."""
METRICS = {"DCGM_FI_DEV_GPU_UTIL": 92.0, "DCGM_FI_DEV_GPU_TEMP": 61.0,
           "DCGM_FI_DEV_POWER_USAGE": 610.0}  # fmt: skip
SAMPLES, SAMPLE_S = 60, 30


def lines(draw: np.random.Generator, n_days: float) -> Floats:
    """Days at which the kernel of some node writes an ordinary line; fewer on weekends."""
    days = draw.uniform(0, n_days, draw.poisson(LINES_A_DAY * n_days))
    return np.sort(days[(days % 7 < 5) | (draw.random(len(days)) < 0.4)])


def outages(
    draw: np.random.Generator, n_days: float, worse_from: float, times: float
) -> list[tuple[int, float, float]]:
    """Reserve node, first and last day of each time out; from a day on so many times as often."""
    found = []
    for node in range(N_RESERVE):
        day = 0.0
        while day < n_days:
            wait = draw.exponential(OUT_EVERY_DAYS)
            if day + wait > worse_from:
                begin = max(day, worse_from)
                wait = begin - day + draw.exponential(OUT_EVERY_DAYS / times)
            begin = day + float(wait)
            day = begin + float(draw.lognormal(np.log(OUT_DAYS), 1.0))
            if begin < n_days:
                found.append((node, begin, day))
    return found


def training(
    draw: np.random.Generator,
    attempts: Sequence[tuple[str, float, float]],
    diverged: tuple[float, float],
) -> pd.DataFrame:
    """Rows of a run's log: key, day, step, rank, loss, grad_norm; each attempt begins where the one
    before saved. From one day until another its loss has left its level."""
    parts, step = [], 0
    for key, begin, end in attempts:
        n = int((end - begin) * ROWS_A_DAY)
        if n < 1:
            continue
        day = begin + np.arange(1, n + 1) / ROWS_A_DAY
        steps = step + np.arange(1, n + 1)
        spike = _spikes(draw, n)
        away = np.clip(np.where(day < diverged[1], day - diverged[0], 0.0), 0.0, None)
        rise = 1.0 - np.exp(-away * ROWS_A_DAY / 15.0)
        level = 2.0 + 1.5 * (1.0 + steps / 400.0) ** -0.3 + 1.2 * rise + spike
        loss = level + 0.015 * draw.standard_t(5, n)
        norm = 0.4 * np.exp(draw.normal(0, 0.12, n)) * (1.0 + 4.0 * spike + 5.0 * rise)
        parts.append(pd.DataFrame({"key": key, "day": day, "step": steps, "rank": 0, "loss": loss,
                                   "grad_norm": norm}))  # fmt: skip
        some = slice(0, n, ROWS_OF_RANKS)
        for rank in range(1, RANKS):
            own = loss[some] + draw.normal(0, 0.03, len(loss[some]))
            parts.append(pd.DataFrame({"key": key, "day": day[some], "step": steps[some],
                                       "rank": rank, "loss": own}))  # fmt: skip
        step += n // ROWS_A_SAVE * ROWS_A_SAVE
    return pd.concat(parts, ignore_index=True)


def _spikes(draw: np.random.Generator, n: int) -> Floats:
    """Rises of the loss that pass within some rows."""
    found = np.zeros(n)
    for at in draw.integers(0, n, draw.poisson(n / ROWS_A_DAY / SPIKE_DAYS)).tolist():
        found[at:] += draw.uniform(0.1, 1.5) * np.exp(-np.arange(n - at) / SPIKE_ROWS)
    return found


def metrics(
    draw: np.random.Generator, nodes: Sequence[str], cluster: str, until: datetime
) -> pd.DataFrame:
    """Samples of the half hour before a time: the phases of a job, which all of its machines have,
    each at its own level."""
    at = pd.date_range(end=until, periods=SAMPLES, freq=f"{SAMPLE_S}s", unit="us")
    rows: list[dict[str, Any]] = []
    for metric, usual in METRICS.items():
        phase = 1.0 - 0.3 * (np.arange(SAMPLES) % 20 < 2)
        for node in nodes:
            own = usual * (1.0 + 0.02 * draw.normal()) * phase
            values = own * (1.0 + 0.01 * draw.normal(size=SAMPLES))
            rows += [{"cluster": cluster, "node": node, "metric": metric, "observed_at": when,
                      "reading": value}
                     for when, value in zip(at, values.tolist(), strict=True)]  # fmt: skip
    return pd.DataFrame(rows)
