"""Rows of the simulator of recovery policies, beside plain event loops."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from analytics.recovery.policy import BASE, policies
from tests.benchmarks.measured import FailedError, python
from tests.benchmarks.row import Row, Section

if TYPE_CHECKING:
    from tests.benchmarks.made import Made

MODULE = "tests.benchmarks.recovery"
RUNS = 10_000
PART = {BASE: 1000, "": 250}
"""Runs of an event loop, whose seconds are multiplied."""
MOST = {BASE: 1 / 10, "": 1 / 3}
MOST_GB = 1.0
MOST_ERRORS = 3.0


def recovery(made: Made) -> list[Section]:
    """Checkpoints alone, and the policy that takes longest."""
    del made
    slowest = max((json.loads(python(MODULE, "engine", key, 500).printed)[2], key)
                  for key in policies())[1]  # fmt: skip
    return [Section("Recovery policies", [_beside_loop(BASE), _beside_loop(slowest)])]


def _beside_loop(key: str) -> Row:
    """One policy, simulated and looped."""
    kind = key if key in MOST else ""
    engine = python(MODULE, "engine", key, RUNS)
    looped = python(MODULE, "loop", key, PART[kind])
    value, error, seconds = json.loads(engine.printed)
    of_loop, its_error, of_part = json.loads(looped.printed)
    apart = abs(value - of_loop) / math.hypot(error, its_error)
    if apart > MOST_ERRORS:
        raise FailedError(f"{key}: {value} beside {of_loop}, {apart:.1f} standard errors apart")
    return Row(
        f"10,000 runs of 30 days on 16,384 GPUs, {policies()[key].system}",
        (seconds,),
        f"a plain event loop ({PART[kind]:,} runs, times {RUNS // PART[kind]})",
        of_part * RUNS / PART[kind],
        engine.peak_gb,
        most_ratio=MOST[kind],
        most_gb=MOST_GB,
    )
