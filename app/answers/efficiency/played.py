"""A period played again, and what is regained of it without some nodes: one number, asked here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.efficiency.habits import recorded_habits
from analytics.efficiency.what_if import what_if
from analytics.efficiency.without_nodes import Period
from analytics.estimate import CONF_LEVEL
from data.queries import efficiency, exposure
from data.queries import what_if as queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.efficiency.habits import Habits
    from analytics.efficiency.what_if import Change, WhatIf
    from data.filters import Selection
    from data.store import Store


def played(
    store: Store, selection: Selection, change: Change, *, conf_level: float = CONF_LEVEL
) -> WhatIf:
    """The period played again.

    Raises
    ------
    LedgerMissingError
        Where the ledger, which joins attempts to runs and knows how they save, is not built.
    """
    habits = _habits(store)
    attempts = queries.attempts(store, selection)
    return what_if(attempts, habits, _held(store, selection), change, conf_level=conf_level)


def period(store: Store, selection: Selection) -> Period:
    """The period, to be asked what it regains without nodes: the numbers of `played`.

    Raises
    ------
    LedgerMissingError
        As `played`.
    """
    habits = _habits(store)
    # Habits that are modelled are drawn run by run, of all runs.
    modelled = any(each.models for each in habits.values())
    attempts = queries.attempts(store, selection, incidents=not modelled)
    return Period.of(attempts, habits, _held(store, selection))


def _habits(store: Store) -> Mapping[str, Habits]:
    """Of each class of runs, how they save."""
    notes = efficiency.ledger_notes(store)
    return {name: recorded_habits(notes[name]) for name in ("several_nodes", "one_node")}


def _held(store: Store, selection: Selection) -> pd.DataFrame:
    """Exposure of each node."""
    return pd.DataFrame(exposure.node_exposure(store, selection))
