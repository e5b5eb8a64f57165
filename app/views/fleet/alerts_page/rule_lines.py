"""Rules of alerts, a line each: what each says, whether it is on, what it would have told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.alerts import asked, listing
from app.alerts.rules import rules
from app.ask import reader
from app.ask.cached import ask, store_root
from app.show import page
from app.views.fleet.alerts_page.answered import MUTES, act
from app.widgets import notice
from app.words import escaping, moments, numbers
from app.words.plain import first_few

if TYPE_CHECKING:
    from datetime import datetime

    from app.alerts.listing import Known
    from app.alerts.rule import Rule
    from app.show.scope import Scope

WIDTHS = (9, 2, 2, 1)
LACKS = "It compares with a target: state {} in the section [alerts] of site.toml."


def show(known: Known, now: datetime, scope: Scope) -> None:
    """Every rule; of the one that is asked, what it would have told."""
    budget = known.settings.false_alarms_per_month
    alarms = "1 false alarm" if budget == 1 else f"{numbers.number(budget)} false alarms"
    st.caption(listing.BUDGET.format(alarms))
    for rule in rules():
        _line(rule, known, now)
        if st.query_params.get("rule") == rule.name:
            _backtest(rule, known, now, scope)


def _line(rule: Rule, known: Known, now: datetime) -> None:
    """What a rule says, whether it is on, and what can be done."""
    with st.container(key=f"rule_{rule.name}"):
        what, badge, test, menu = st.columns(WIDTHS, vertical_alignment="center")
        blind = known.blind(rule.name)
        sight = (
            f"  \n:small[Cannot be judged: {escaping.escaped(first_few(blind, 2, between='; '))}]"
        )
        what.markdown(
            f"**{rule.title}**  \n{escaping.escaped(rule.means)}{sight if blind else ''}",
            help=escaping.escaped(rule.to_do),
        )
        badge.markdown(_badge(rule, known, now))
        if test.button("Back-test", key=f"backtest_{rule.name}", type="tertiary",
                       icon=":material/history:"):  # fmt: skip
            st.query_params["rule"] = rule.name
            st.rerun()
        with menu:
            _menu(rule, known, now)


def _badge(rule: Rule, known: Known, now: datetime) -> str:
    """On, off, or muted until when."""
    muted = known.said.muted_until(f"rule:{rule.name}", now)
    if rule.name not in known.on:
        lacking = ": no target" if known.lacks(rule) else ""
        return f":gray-badge[:material/toggle_off: Off{lacking}]"
    if muted is not None:
        return f":gray-badge[:material/notifications_off: Muted until {moments.minute(muted)} UTC]"
    return ":green-badge[:material/toggle_on: On]"


def _menu(rule: Rule, known: Known, now: datetime) -> None:
    """Switch, mute, or take the last word back."""
    is_on = rule.name in known.on
    muted = known.said.muted_until(f"rule:{rule.name}", now) is not None
    said = known.said_of_rule(rule.name, now)
    switch = "Switch off" if is_on else "Switch on"
    switches = () if known.lacks(rule) else (switch,)
    offered = [*switches, *(MUTES if is_on and not muted else ()), *(["Undo"] if said else ())]
    if not offered:
        return
    chosen = st.menu_button(
        "",
        offered,
        key=f"rule_menu_{rule.name}",
        type="tertiary",
        icon=":material/more_vert:",
        help="Switch or mute",
    )
    if chosen == "Undo" and said is not None:
        act(
            lambda: actions.undo(store_root(), said.annotation_id, author=reader.author()),
            "Taken back",
        )
    elif chosen == switch:
        _switch(rule, on=not is_on)
    elif chosen is not None:
        days, target = MUTES[chosen], f"rule:{rule.name}"
        act(lambda: actions.mute(store_root(), target, days=days, author=reader.author()), "Muted")


def _backtest(rule: Rule, known: Known, now: datetime, scope: Scope) -> None:
    """What it would have told in the past, and the switch beside it."""
    with st.container(border=True, key="backtest"):
        with notice.explained(), st.spinner("Asking the past of this store", show_time=True):
            answer = asked.answer(ask, rule.name, now, scope.selection.cluster)
        st.markdown(f"**{escaping.escaped(answer.sentence)}**")
        page.notes(answer.notes)
        if len(answer.table("backtest")):
            page.blocks(answer.blocks, scope, titled=False)
        on, close = st.columns([1, 5])
        if known.lacks(rule):
            st.caption(LACKS.format(rule.needs))
        elif rule.name not in known.on and on.button(
            "Switch on", key="backtest_on", type="primary"
        ):
            _switch(rule, on=True)
        if close.button("Close", key="backtest_close", type="tertiary"):
            del st.query_params["rule"]
            st.rerun()


def _switch(rule: Rule, *, on: bool) -> None:
    act(
        lambda: actions.switch(store_root(), rule.name, on=on, author=reader.author()),
        "Switched on" if on else "Switched off",
    )
