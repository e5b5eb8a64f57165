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
    return what_if(*_records(store, selection), change, conf_level=conf_level)


def period(store: Store, selection: Selection) -> Period:
    """The period, to be asked what it regains without nodes: the numbers of `played`.

    Raises
    ------
    LedgerMissingError
        As `played`.
    """
    return Period.of(*_records(store, selection))


def _records(
    store: Store, selection: Selection
) -> tuple[pd.DataFrame, Mapping[str, Habits], pd.DataFrame]:
    """Attempts, habits and exposure."""
    notes = efficiency.ledger_notes(store)
    habits = {name: recorded_habits(notes[name]) for name in ("several_nodes", "one_node")}
    held = pd.DataFrame(exposure.node_exposure(store, selection))
    return queries.attempts(store, selection), habits, held
