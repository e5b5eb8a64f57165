"""Alerts, a line each: what is so, which rules see it, and a menu that answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.alerts import listing
from app.ask import reader
from app.ask.cached import store_root
from app.show import links, page
from app.views.fleet.alerts_page.answered import MUTES, act
from app.words import escaping, moments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from app.alerts.life import State
    from app.alerts.listing import Known
    from data.alerts import Alert
    from data.state import Annotation

LOOKS: Mapping[str, tuple[str, str]] = {
    "critical": ("red", "priority_high"),
    "warning": ("orange", "visibility"),
}
"""Severity -> its colour and sign."""
BADGES: Mapping[State, tuple[str, str]] = {
    "open": ("orange", "notifications"),
    "acknowledged": ("green", "check"),
    "muted": ("gray", "notifications_off"),
    "resolved": ("gray", "check_circle"),
}
ACKNOWLEDGE, RESOLVE = "Acknowledge", "Resolve"
WIDTHS = (8, 2, 1)


def show(known: Known, states: Mapping[str, State], now: datetime, cluster: str | None) -> None:
    """Every alert that is not resolved; folded, those that were in the last days."""
    rows = listing.ordered([a for a in known.alerts if cluster in (None, a.cluster)], states)
    resolved = [alert for alert in rows if states[alert.alert_id] == "resolved"]
    if len(resolved) == len(rows):
        st.markdown(listing.NONE if known.evaluated is not None else listing.NOT_ASKED)
    for alert in rows[: len(rows) - len(resolved)]:
        _line(alert, states[alert.alert_id], known, now)
    if resolved:
        label = f"{len(resolved):,} resolved in the last 14 days"
        page.folded(label, partial(_resolved, resolved, known, now), key="resolved")


def _resolved(alerts: Sequence[Alert], known: Known, now: datetime) -> None:
    """Alerts that are over."""
    for alert in alerts:
        _line(alert, "resolved", known, now)


def _line(alert: Alert, state: State, known: Known, now: datetime) -> None:
    """What is so with its evidence; below it the rules, since when, and who was told."""
    colour, sign = LOOKS[alert.severity]
    with st.container(key=f"alert_{alert.alert_id}"):
        what, badge, menu = st.columns(WIDTHS, vertical_alignment="center")
        said = links.page(alert.page, alert.named, alert.sentence)
        since = (
            f"{listing.called(alert)} · {alert.cluster} · since {moments.minute(alert.since)} UTC"
        )
        owner = f"{alert.owner} · " if alert.owner else ""
        told = escaping.escaped(f"{owner}{since} · {listing.told_in_words(alert, known)}")
        what.markdown(f":{colour}[:material/{sign}:] {said}  \n:small[{told}]")
        tint, icon = BADGES[state]
        badge.markdown(f":{tint}-badge[:material/{icon}: {state.capitalize()}]")
        with menu:
            _answered(alert, state, known, now)


def _answered(alert: Alert, state: State, known: Known, now: datetime) -> None:
    """What can be said of it, or taken back."""
    said = listing.said_of(alert, state, known, now)
    if said is not None:
        if st.button("Undo", key=f"alert_undo_{said.annotation_id}", type="tertiary",
                     help=escaping.escaped(_by(said))):  # fmt: skip
            act(lambda: actions.undo(store_root(), said.annotation_id, author=reader.author()),
                 "Taken back")  # fmt: skip
        return
    if state == "resolved":
        return
    chosen = st.menu_button(
        "",
        [ACKNOWLEDGE, *MUTES, RESOLVE],
        key=f"alert_menu_{alert.alert_id}",
        type="tertiary",
        icon=":material/more_vert:",
        help="Acknowledge, mute or resolve",
    )
    if chosen == ACKNOWLEDGE:
        act(lambda: actions.put_off(store_root(), alert.target, author=reader.author()),
             "Acknowledged")  # fmt: skip
    elif chosen == RESOLVE:
        act(lambda: actions.resolve(store_root(), alert.target, author=reader.author()),
             "Resolved")  # fmt: skip
    elif chosen is not None:
        days = MUTES[chosen]
        act(lambda: actions.mute(store_root(), alert.target, days=days, author=reader.author()),
             "Muted")  # fmt: skip


def _by(said: Annotation) -> str:
    """Who said it."""
    return f"By {said.author}, {said.made_at.replace('T', ' ')[:16]} UTC"
