"""A rank of a run may compute wrongly, by what ranks logged."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from analytics.training import corruption as analysis
from analytics.training.indicator_names import indicator
from app.alerts.past import reached
from app.alerts.rule import Episode, Found
from app.answers.fleet.actions import action
from app.answers.training.corruption import KINDS
from app.words import numbers
from app.words.plain import in_a_row
from data.queries import corruption as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Floats
    from analytics.training.corruption import Corruption, Logged, Suspect
    from app.alerts.rule import Watch
    from app.alerts.runs import Run
    from app.ask import Ask
    from data.store import Store

GRAVE = ("proof", "strong")
"""Grades that are told; weak evidence, which one bad batch makes too, stands on the run's page."""
MONTH = timedelta(days=28)
FIRST_STEPS = 64
"""Steps of a run up to twice which the first look at it counts."""


def series(store: Store, cluster: str, run_id: str) -> list[Logged]:
    """What ranks of a run logged that can show corruption."""
    found = queries.logged(store, cluster, run_id, indicator)
    return [analysis.Logged(name, *columns) for name, columns in found.items()]


def found(ask: Ask, watch: Watch, of_ranks: Sequence[Run]) -> Found | None:
    """Suspects of runs; None where no rank can be judged."""
    chance = _chance(watch, len(of_ranks))
    told: list[Episode] = []
    can_judge = False
    for run in of_ranks:
        held = ask(series, run.cluster, run.run_id)
        judged = analysis.suspects(held, false_alarms=spent(chance, len(_steps(held))))
        can_judge |= bool(judged.judged)
        episode = _episode(ask, run, held, judged, watch.now, chance)
        told += [] if episode is None else [episode]
    return Found(reached(told, watch)) if can_judge else None


def _chance(watch: Watch, n_runs: int) -> float:
    """Chance of a false suspect of one run, so that those of a month keep to the rule's share."""
    share = MONTH / timedelta(hours=watch.hours_per_false_alarm(max(n_runs, 1)))
    return min(analysis.FALSE_ALARMS, share)


def spent(chance: float, n_steps: int) -> float:
    """What a look at a run of so many steps may spend of its chance: each doubling of its steps is
    one look, of which all together spend it.

    >>> [round(spent(0.06, n), 3) for n in (10, 100, 128, 256)]
    [0.03, 0.03, 0.01, 0.005]
    """
    look = 1 + max(0, math.floor(math.log2(max(n_steps, 1) / FIRST_STEPS)))
    return chance / (look * (look + 1))


def _steps(held: Sequence[Logged]) -> Floats:
    found: Floats = np.unique(np.concatenate([each.steps for each in held]))
    return found


def _told(found: Corruption) -> Suspect | None:
    return next((one for one in found.suspects if one.grade in GRAVE), None)


def _episode(
    ask: Ask,
    run: Run,
    held: Sequence[Logged],
    found: Corruption,
    now: datetime,
    chance: float,
) -> Episode | None:
    one = _told(found)
    if one is None:
        return None
    step = _told_step(held, one, chance)
    at = ask(queries.logged_at, run.cluster, run.run_id, (one.since_step, step))
    raised_at = at[1] or run.last_at or now
    return Episode(
        action.target("suspect", run.cluster, run.run_id),
        min(at[0] or raised_at, raised_at),
        raised_at,
        None if run.over_at is None else max(run.over_at, raised_at),
        _sentence(run, one),
        "runs",
        {**run.named, "runs_tab": "Corruption"},
        owner=run.user,
    )


def _told_step(held: Sequence[Logged], one: Suspect, chance: float) -> int:
    """The first step by which the log shows the suspect as surely."""
    steps = _steps(held)
    low, high = int(np.searchsorted(steps, one.since_step)) - 1, len(steps) - 1
    while high - low > 1:
        middle = (low + high) // 2
        known = _until(held, steps[middle])
        seen = _told(analysis.suspects(known, false_alarms=spent(chance, middle + 1)))
        low, high = (low, middle) if seen is not None else (middle, high)
    return int(steps[high])


def _until(held: Sequence[Logged], step: float) -> list[Logged]:
    """What was logged up to a step."""
    found = []
    for each in held:
        kept = each.steps <= step
        attempts = None if each.attempts is None else each.attempts[kept]
        found.append(
            analysis.Logged(
                each.name, each.steps[kept], each.ranks[kept], each.values[kept], attempts
            )
        )
    return found


def _sentence(run: Run, one: Suspect) -> str:
    ranks = in_a_row([str(rank) for rank in one.ranks])
    who = f"rank {ranks}" if len(one.ranks) == 1 else f"one of ranks {ranks}"
    chance = "no chance in it" if one.p_value is None else f"chance {numbers.number(one.p_value)}"
    return (
        f"Run {run.run_id}: {who} may compute wrongly since step {one.since_step:,}: it "
        f"{KINDS[one.kind]} in {one.series} ({numbers.counted(one.n_steps, 'step')} of "
        f"{numbers.counted(one.n_compared, 'value')} compared, {chance})"
    )
