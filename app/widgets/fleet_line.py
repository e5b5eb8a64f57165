"""A line below the head of a page: what Overview says, so that no page is read without it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from app.alerts import listing
from app.alerts.evaluate import clock
from app.answers.fleet.in_short import as_overview, in_short
from app.ask.cached import ask, fresh
from app.show import links
from app.words import escaping

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope

LOOKS = {
    "well": ("green", "check"),
    "watch": ("orange", "visibility"),
    "act": ("red", "priority_high"),
    "unknown": ("gray", "question_mark"),
}
"""Verdict -> its colour and sign."""


def place() -> DeltaGenerator:
    """Where the line will stand."""
    return st.container(key="fleet_line")


def show(at: DeltaGenerator, scope: Scope) -> None:
    """Verdict, commonest cause, loss and open alerts; drawn last, as the page is why one came."""
    fleet = in_short(ask, as_overview(scope.of_overview))
    wall = datetime.now(UTC).replace(second=0, microsecond=0)
    known = fresh(listing.known, clock(ask, wall))
    alerts = listing.in_short(known, wall, scope.selection.cluster)
    colour, sign = LOOKS[fleet.verdict]
    badge = f":{colour}-badge[:material/{sign}: Fleet: {fleet.well[:1].lower()}{fleet.well[1:]}]"
    parts = []
    if fleet.commonest is not None:
        parts.append(f"most failures: {escaping.escaped(fleet.commonest)}")
    parts.append(f"lost to failures: {fleet.lost}")
    parts.append(f"alerts: {links.page('alerts', {}, alerts)}")
    at.caption(f"{badge} {' · '.join(parts)}")
