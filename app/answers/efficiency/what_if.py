"""A period again without its worst nodes and with another checkpoint interval: what is regained?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pandas as pd

from analytics.efficiency.habits import recorded_habits
from analytics.efficiency.what_if import Change, WhatIf, what_if
from analytics.estimate import CONF_LEVEL
from app.answers.content import Answer
from app.answers.efficiency import best_interval, left_out
from app.answers.efficiency.what_if_shown import TERMS, Shown
from app.answers.fleet.choices import last_whole
from data.errors import DataError
from data.queries import efficiency, exposure, fleet
from data.queries import what_if as queries

if TYPE_CHECKING:
    from analytics.efficiency.what_if import Every
    from app.answers.efficiency.left_out import By
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

WORST = 3


@dataclass(frozen=True)
class Wish:
    """What is otherwise than it was."""

    worst: int = WORST
    """So many nodes are left out."""
    nodes: tuple[str, ...] = ()
    """These, instead."""
    by: By = "before"
    interval: Every = "best"
    gpus: int | None = None
    """Size of the job whose best interval is told; None for the largest usual one."""


def period(store: Store, selection: Selection, *, month: bool = True) -> Selection:
    """The selection with a period: where it names none the last whole month that is recorded, or
    with `month` false all of the records.

    Raises
    ------
    DataError
        Where no record has a time.
    """
    first_at, last_at = fleet.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read the scheduler's records first")
    begin, end = selection.from_at, selection.to_at
    if month and begin is None and end is None:
        begin, end = last_whole(store, "month", selection.cluster)
        if begin < first_at:
            begin, end = first_at, None
    return replace(
        selection, from_at=begin or first_at, to_at=end or last_at + timedelta(microseconds=1)
    )


def played(
    store: Store, selection: Selection, change: Change, *, conf_level: float = CONF_LEVEL
) -> WhatIf:
    """The period played again.

    Raises
    ------
    LedgerMissingError
        Where the ledger, which joins attempts to runs and knows how they save, is not built.
    """
    notes = efficiency.ledger_notes(store)
    habits = {name: recorded_habits(notes[name]) for name in ("several_nodes", "one_node")}
    held = pd.DataFrame(exposure.node_exposure(store, selection))
    attempts = queries.attempts(store, selection)
    return what_if(attempts, habits, held, change, conf_level=conf_level)


def answer(
    ask: Ask, selection: Selection, wish: Wish | None = None, *, conf_level: float = CONF_LEVEL
) -> Answer:
    """GPU-hours regained, of which by what; what is given up; the best interval of a job."""
    wish = wish or Wish()
    of = ask(period, selection)
    nodes = left_out.chosen(ask, of, wish.worst, wish.nodes, wish.by)
    change = Change(nodes.nodes, nodes.hindsight, wish.interval)
    found = ask(played, of, change, conf_level=conf_level)
    best = best_interval.of_size(ask, of, wish.gpus, conf_level=conf_level)
    shown = Shown(ask, of, wish, nodes, found, best)
    return Answer(
        shown.sentence(),
        tuple(shown.numbers()),
        tuple(shown.blocks()),
        tuple(shown.notes()),
        TERMS,
        record=shown.record(),
        sheet=shown.sheet(),
    )
