"""The kinds of reports there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from app.reports import fleet, incident, node

if TYPE_CHECKING:
    from app.reports.report import Report
    from data.filters import Selection
    from data.store import Store

Kind = Literal["fleet", "incident", "node"]
KINDS: tuple[Kind, ...] = ("fleet", "incident", "node")


def report(
    store: Store,
    kind: Kind,
    selection: Selection,
    *,
    about: str = "",
    redact: bool = False,
    conf_level: float = 0.90,
    seed: int = 0,
) -> Report:
    """A report of one kind; `about` is the id of its incident or the name of its node.

    Filters choose what the fleet report counts; of a node its cluster and period hold, and an
    incident is told whole.
    """
    if kind == "incident":
        return incident.report(store, about, redact=redact)
    if kind == "node":
        return node.report(store, about, selection, redact=redact)
    return fleet.report(store, selection, conf_level=conf_level, seed=seed, redact=redact)
