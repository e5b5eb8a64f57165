"""What to do now: a line a row, with the link to its evidence, and who put it off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.fleet.actions import listed
from app.answers.fleet.actions.action import TITLES
from app.ask import reader
from app.ask.cached import ask, fresh, store_root, whole
from app.show import links, page
from app.widgets import notice
from app.words import escaping, numbers
from app.words.plain import clause

if TYPE_CHECKING:
    from app.answers.fleet.actions.action import Action
    from app.answers.fleet.actions.listed import Listed, PutOff
    from app.show.scope import Scope

ACKNOWLEDGE = "Acknowledge"
SNOOZES = {"Snooze for a day": 1, "Snooze for a week": 7, "Snooze for four weeks": 28}
ICONS = {
    "node": "dns", "host": "dns", "incident": "bolt", "mass_failure": "groups",
    "cause": "trending_up", "source": "visibility_off", "straggler": "hourglass_top",
    "run": "show_chart", "suspect": "policy", "hang": "hourglass_disabled",
    "alert": "notifications",
}  # fmt: skip
"""The sign of each kind."""
WIDTHS = (7, 2, 1, 3)


def show(scope: Scope) -> None:
    """The list, the largest stake first."""
    now = datetime.now(UTC)
    beside = fresh(listed.kept)
    known = whole(listed.found, scope.selection, scope.timezone)
    found = listed.listed(
        ask, scope.selection, now, timezone=scope.timezone, beside=beside, known=known
    )
    what, stake, *_ = st.columns(WIDTHS, vertical_alignment="bottom")
    what.header("Do this now", anchor=False)
    if found.due:
        stake.caption("GPU-h at stake")
    if not found.due:
        st.markdown(found.nothing)
    with st.container(gap="xxsmall"):
        for action in listed.first(found.due, listed.SHOWN):
            _line(action)
    _rest(found, scope)


def _line(action: Action) -> None:
    """What, what is at stake with why behind it, and a menu that puts it off."""
    with st.container(key=f"action_{_key(action)}"):
        what, stake, menu, _ = st.columns(WIDTHS, vertical_alignment="center")
        said = links.page(action.page, action.named, clause(action.what))
        what.markdown(f":gray[:material/{ICONS[action.kind]}:] {said}")
        stake.markdown(_stake(action), help=escaping.escaped(_whole(action)))
        with menu:
            chosen = st.menu_button(
                "",
                [ACKNOWLEDGE, *SNOOZES],
                key=f"put_off_{_key(action)}",
                type="tertiary",
                icon=":material/more_vert:",
                help="Acknowledge or snooze",
            )
    if chosen is not None:
        _put_off(action, SNOOZES.get(chosen))


def _stake(action: Action) -> str:
    """GPU-hours at stake."""
    stake = action.stake
    return "not known" if stake is None else f"**{numbers.number(stake.value)}**"


def _whole(action: Action) -> str:
    """What a line leaves out: all of what and why, and what the stake rests on."""
    stake = action.stake
    bounds = f"{numbers.interval(stake)} GPU-h, " if stake is not None and stake.has_width else ""
    said = f"{TITLES[action.kind]}: {action.what}. {action.why}."
    return f"{said} At stake: {bounds}{action.stake_basis}."


def _rest(found: Listed, scope: Scope) -> None:
    """What did not fit, and what somebody put off."""
    more, put_off = len(found.due) - listed.SHOWN, len(found.put_off)
    with st.container(horizontal=True):
        if more > 0 and st.button(f"{more:,} more", type="tertiary", key="more_actions"):
            st.dialog("Do this now", width="large")(page.blocks)([listed.table(found)], scope)
        if put_off and st.button(f"{put_off:,} put off", type="tertiary", key="actions_put_off"):
            st.dialog("Acknowledged and snoozed", width="large")(_put_off_rows)(found)


def _put_off_rows(found: Listed) -> None:
    """What somebody acknowledged or snoozed; each can be undone."""
    for each in found.put_off:
        _undoable(each)


def _undoable(each: PutOff) -> None:
    """One row with its undo."""
    text, button = st.columns([6, 1], vertical_alignment="center")
    said = links.page(each.action.page, each.action.named, each.action.what)
    text.markdown(f"{said}  \n:small[{escaping.escaped(each.in_words)}]")
    if button.button("Undo", key=f"undo_{each.said.annotation_id}", type="tertiary"):
        with notice.explained():
            actions.undo(store_root(), each.said.annotation_id, author=reader.author())
            st.rerun()


def _put_off(action: Action, days: int | None) -> None:
    """Writes it down; the page then runs again without the row."""
    with notice.explained():
        actions.put_off(store_root(), action.target, days=days, author=reader.author())
        st.toast("Acknowledged" if days is None else "Snoozed", icon=":material/check:")
        st.rerun()


def _key(action: Action) -> str:
    """The target as part of a widget's name."""
    return action.target.replace(":", "_")
