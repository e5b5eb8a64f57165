"""Training runs that want somebody: one that diverges, one that hangs, a rank to test again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.answers.fleet.actions.action import MOST_RUNS, RECENT, Action, recorded, target
from app.answers.training import beside, corruption, hangs, runs, stability
from app.answers.training.stability import TITLES
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answers.training.stability import RunStability
    from app.ask import Ask
    from data.filters import Selection

    Run = tuple[str, str]
    """Cluster and run."""


def of_runs(ask: Ask, selection: Selection) -> Iterator[Action]:
    """What the runs that logged last want: to be set back, a rank tested again, a hang ended."""
    found = ask(runs.listed, selection)
    old = found["last_at"] < found["last_at"].max() - RECENT  # of unknown time none is
    found = found[~old].head(MOST_RUNS)
    for row in found.to_dict("records"):
        run = (str(row["cluster"]), str(row["run_id"]))
        if row["n_rows"]:
            yield from _set_back(ask, run)
        if row["n_ranks"] > 1:
            yield from _test_again(ask, run)
        if row["n_dumps"] > 0:
            yield from _end_hang(ask, run)


def _set_back(ask: Ask, run: Run) -> Iterator[Action]:
    """A run whose log ends in a divergence, NaN or a spike from which it has not recovered."""
    judged = ask(stability.measured, *run)
    episodes = [e for e in judged.found.episodes if e.ended == "end of log"]
    if not episodes:
        return
    last = episodes[-1]
    gpus = _gpus(judged)
    stake = recorded(24.0 * gpus, last.events[0].n_rows) if gpus else None
    yield Action(
        "run",
        target("run", *run),
        what=f"Set run {run[1]} back"
        + (f" to step {last.rewind_step:,}" if last.rewind_step is not None else ""),
        why=f"{TITLES[last.kind]} since step {last.start_step:,}, not recovered by step "
        f"{last.last_step:,} ({numbers.gpu_count(gpus)})",
        stake=stake,
        stake_basis="a day that it trains" if stake else "its GPUs are not known",
        page="runs",
        named={"run": run[1], "cluster": run[0]},
    )


def _test_again(ask: Ask, run: Run) -> Iterator[Action]:
    """A rank against which what it logged speaks."""
    answer = corruption.answer(ask, *run)
    if answer.record["verdict"] != "suspects":
        return
    grade = str(answer.record["suspects"][0]["grade"])
    yield Action(
        "suspect",
        target("suspect", *run),
        what=answer.sentence.partition(":")[0].rstrip("."),
        why=f"run {run[1]}: {grade} of silent corruption by what ranks logged",
        stake=None,
        stake_basis="not known: what it computed since may be wrong",
        page="runs",
        named={"run": run[1], "cluster": run[0], "runs_tab": "Corruption"},
        hides=(2 if grade == "proof" else 1, 0.0),
    )


def _end_hang(ask: Ask, run: Run) -> Iterator[Action]:
    """A hang whose ranks were dumped, and whose attempt still runs or is not known."""
    judged = ask(hangs.of_run, *run)
    answer = hangs.answer(judged)
    if judged is None or answer.record["verdict"] not in ("found", "ambiguous"):
        return
    if judged.attempt is not None and _has_ended(ask, run, judged.attempt.attempt_key):
        return
    yield Action(
        "hang",
        target("hang", *run),
        what=f"End the hang of run {run[1]}",
        why=answer.sentence.rstrip("."),
        stake=None,
        stake_basis="not known: dumps do not say how long it stands",
        page="runs",
        named={"run": run[1], "cluster": run[0], "runs_tab": "Hangs"},
        hides=(2, 0.0),
    )


def _has_ended(ask: Ask, run: Run, attempt_key: str | None) -> bool:
    """Whether the records say that an attempt of a run has ended."""
    attempts = ask(beside.measured, *run).attempts
    own = attempts[attempts["attempt_key"] == attempt_key]
    return bool(own["end_at"].notna().any())


def _gpus(judged: RunStability) -> float | None:
    """GPUs of the last attempt; None where they are not known."""
    if judged.beside is None or judged.beside.attempts.empty:
        return None
    last = judged.beside.attempts.iloc[-1]
    return None if pd.isna(last["n_gpus"]) else float(last["n_gpus"])
