"""Training runs that want somebody: one that diverges."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pandas as pd

from app.answers.fleet.actions.rows import Action, recorded, target
from app.answers.training import runs, stability
from app.answers.training.stability import TITLES
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answers.training.stability import RunStability
    from app.ask import Ask
    from data.filters import Selection

RECENT = timedelta(days=3)
"""Runs that logged within so long before the newest step of all are looked at."""
MOST_RUNS = 8
"""Of them, those that logged last."""


def of_runs(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Runs whose log ends in a divergence, NaN or a spike from which they have not recovered."""
    found = ask(runs.listed, selection)
    found = found[found["last_at"] >= found["last_at"].max() - RECENT].head(MOST_RUNS)
    for row in found.to_dict("records"):
        cluster, run_id = str(row["cluster"]), str(row["run_id"])
        judged = ask(stability.measured, cluster, run_id)
        episodes = [e for e in judged.found.episodes if e.ended == "end of log"]
        if not episodes:
            continue
        worst = episodes[-1]
        gpus = _gpus(judged)
        stake = recorded(24.0 * gpus, worst.events[0].n_rows) if gpus else None
        back = worst.rewind_step
        yield Action(
            "run",
            target("run", cluster, run_id),
            what=f"Set run {run_id} back" + (f" to step {back:,}" if back is not None else ""),
            why=f"{TITLES[worst.kind]} since step {worst.start_step:,}, not recovered by step "
            f"{worst.last_step:,} ({numbers.gpu_count(gpus)})",
            stake=stake,
            stake_basis="a day that it trains" if stake else "its GPUs are not known",
            page="runs",
            named={"run": run_id, "cluster": cluster},
        )


def _gpus(judged: RunStability) -> float | None:
    """GPUs of the last attempt; None where they are not known."""
    if judged.beside is None or judged.beside.attempts.empty:
        return None
    last = judged.beside.attempts.iloc[-1]
    return None if pd.isna(last["n_gpus"]) else float(last["n_gpus"])
