"""A line below the head of a page: what Overview says, so that no page is read without it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet.actions import listed
from app.answers.fleet.in_short import as_overview, in_short
from app.ask.cached import ask, fresh, whole
from app.show import links
from app.words import escaping
from app.words.plain import clause

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
    """Verdict, commonest cause, loss and first action; drawn last, as the page is why one came."""
    beside = fresh(listed.kept)
    seen = as_overview(scope.of_overview)
    known = whole(listed.found, seen, scope.timezone)
    fleet = in_short(
        ask, seen, datetime.now(UTC), timezone=scope.timezone, beside=beside, known=known
    )
    colour, sign = LOOKS[fleet.verdict]
    badge = f":{colour}-badge[:material/{sign}: Fleet: {fleet.well[:1].lower()}{fleet.well[1:]}]"
    parts = []
    if fleet.commonest is not None:
        parts.append(f"most failures: {escaping.escaped(fleet.commonest)}")
    parts.append(f"lost to failures: {fleet.lost}")
    if fleet.first is not None:
        to_do = links.page(fleet.first.page, fleet.first.named, clause(fleet.first.what))
        parts.append(f"first of all: {to_do}")
    at.caption(f"{badge} {' · '.join(parts)}")
