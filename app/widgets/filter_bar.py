"""The filters in the sidebar; they live in the address, so that a link restores the view."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.answers.fleet.choices import choices as offered
from app.ask.cached import ask, snapshot
from app.show.scope import FILTERS, Scope
from app.widgets import copy_button, empty_state, follow, inputs
from app.words import escaping, numbers
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from app.answers.fleet.choices import Choices

PRESETS = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "28d": timedelta(days=28),
    "90d": timedelta(days=90),
}
ALL, CUSTOM = "all", "custom"
EARLIEST, LATEST = datetime(1970, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - local times
"""Streamlit's own limits are ten years either way: failure logs are older than that."""


ALL_OF = {"cluster": "all clusters", "partition": "all partitions", "account": "all accounts"}
"""Filters that name a value of the store, and what they are without one."""
USES = ("period", "cluster", "partition", "min_gpus", "account")
"""Filters that a page may use."""


def show(*, min_gpus: int = 0, uses: Collection[str] = USES) -> Scope:
    """Draws the filters and returns what they select.

    Parameters
    ----------
    min_gpus
        Smallest job that this page counts unless the reader says otherwise.
    uses
        Filters that the page goes by. The others are neither shown nor part of what is selected;
        they stay in the address, for the next page.
    """
    published = snapshot()
    choices = ask(offered) if published else None
    if choices is None or choices.first_at is None:
        return _scope(Selection(min_gpus=min_gpus), "UTC", choices)
    with st.sidebar, _of_every_page():
        shown, unused = st.container(), st.container(key="unused_filters")
        place = {name: shown if name in uses else unused for name in USES}
        with place["cluster"]:
            cluster = _one_of("cluster", choices.clusters, ALL_OF["cluster"])
        timezone = _timezone(choices, cluster)
        with place["period"]:
            from_at, to_at = _period(choices, timezone)
        with place["partition"]:
            partition = _one_of("partition", choices.partitions, ALL_OF["partition"])
        with place["min_gpus"]:
            smallest = _min_gpus(min_gpus)
        with place["account"]:
            account = _one_of("account", choices.accounts, ALL_OF["account"])
        with st.container(horizontal=True):
            if uses:
                st.button("Reset", on_click=_reset, width="stretch")
            copy_button.link()
    _tell_absent(uses)
    in_use: dict[str, dict[str, Any]] = {
        "cluster": {"cluster": cluster},
        "period": {"from_at": from_at, "to_at": to_at},
        "partition": {"partition": partition},
        "min_gpus": {}
        if smallest is None
        else {"min_gpus": smallest, "by_size_min_gpus": smallest},
        "account": {"account": account},
    }
    of_page, of_all = (
        {field: value for name in names for field, value in in_use[name].items()}
        for names in (uses, USES)
    )
    selection = replace(Selection(min_gpus=min_gpus), **of_page)
    return replace(_scope(selection, timezone, choices, uses), of_overview=Selection(**of_all))


def of_store(*, min_gpus: int = 0, uses: Collection[str] = USES) -> Scope:
    """The same on a page that is about records: where the store holds none, it says so and ends."""
    scope = show(min_gpus=min_gpus, uses=uses)
    if scope.empty:
        empty_state.no_store()
        st.stop()
    return scope


def _of_every_page() -> AbstractContextManager[None]:
    """What is drawn within belongs to main.py and not to the page that draws it.

    Streamlit drops from the address what belongs to another page: what a browser's Back names of
    the filters would be lost, and each step would add entries to its history.
    """
    context = get_script_run_ctx()
    if context is None:
        return nullcontext()
    return context.run_with_active_hash(context.pages_manager.main_script_hash)


def _scope(
    selection: Selection,
    timezone: str,
    choices: Choices | None,
    uses: Collection[str] = USES,
) -> Scope:
    """The selection with what is needed to say it."""
    seen = follow.browser()
    return Scope(
        selection,
        timezone=timezone,
        synthetic=choices is not None and choices.synthetic,
        snapshot=snapshot(),
        mode=seen.mode,
        empty=choices is None or choices.first_at is None,
        uses=frozenset(uses),
        clusters=() if choices is None else choices.clusters,
        narrow=seen.narrow,
    )


def _one_of(name: str, options: tuple[str, ...], everything: str) -> str | None:
    """One of the values in the store, or all of them."""
    absent = _absent(name)
    named = st.query_params.get(name)
    if named and name not in st.session_state and named not in options:
        st.session_state[absent] = named
    chosen = st.selectbox(
        name.capitalize(),
        options,
        index=None,
        placeholder=everything,
        key=name,
        bind="query-params",
    )
    if chosen is not None:
        st.session_state.pop(absent, None)
    return chosen


def _absent(name: str) -> str:
    """Where what the address names, and the store does not hold, stays until another is chosen."""
    return f"absent_{name}"


def _tell_absent(uses: Collection[str]) -> None:
    """Above the page's figures: which filter of the address they do not go by."""
    told = [
        f"No {name} {escaping.escaped(unknown)} in this store: shown are {everything}."
        for name, everything in ALL_OF.items()
        if name in uses and (unknown := st.session_state.get(_absent(name)))
    ]
    if told:
        st.warning(" ".join(told), icon=":material/warning:")


def _min_gpus(page_default: int) -> int | None:
    """Smallest job counted; None where the reader leaves it to the page."""
    return inputs.number(
        "Smallest job (GPUs)",
        inputs.Within(0, inputs.MOST_GPUS),
        key="min_gpus",
        value=None,
        step=1,
        placeholder=f"{page_default:,} (this page's default)",
    )


def _period(choices: Choices, timezone: str) -> tuple[datetime | None, datetime | None]:
    """The period chosen, in UTC; presets end at the last record."""
    chosen = inputs.choice(
        "Period",
        [*PRESETS, ALL, CUSTOM],
        default=FILTERS["period"],
        key="period",
        help="Presets end with the last record in the store, not now.",
    )
    if chosen == CUSTOM:
        return _custom_period(choices, timezone)
    to_at = _end(choices.last_at)
    if chosen == ALL or to_at is None:
        return None, None
    return to_at - PRESETS[str(chosen)], to_at


def _custom_period(choices: Choices, timezone: str) -> tuple[datetime | None, datetime | None]:
    """From and to in the cluster's zone; an open end is that of the data."""
    zone = ZoneInfo(timezone)
    bounds = []
    for name in ("from", "to"):
        local = st.datetime_input(
            f"{name.capitalize()} ({timezone})",
            value=None,
            min_value=EARLIEST,
            max_value=LATEST,
            key=name,
            bind="query-params",
        )
        bounds.append(None if local is None else local.replace(tzinfo=zone).astimezone(UTC))
    from_at, to_at = bounds
    if from_at is not None and to_at is not None and from_at >= to_at:
        st.warning("The period ends before it begins.", icon=":material/warning:")
    if from_at is None and to_at is None:
        st.caption(f"Data: {numbers.period(choices.first_at, choices.last_at, timezone)}")
    return from_at, to_at


def _end(last_at: datetime | None) -> datetime | None:
    """The full hour after the last record, which so lies inside the half-open period."""
    if last_at is None:
        return None
    return last_at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _timezone(choices: Choices, cluster: str | None) -> str:
    """The zone of the cluster, or of all clusters where they share one; else UTC."""
    if cluster is not None:
        return choices.timezones.get(cluster, "UTC")
    zones = {choices.timezones.get(name, "UTC") for name in choices.clusters}
    return zones.pop() if len(zones) == 1 else "UTC"


def _reset() -> None:
    """Every filter back to its default."""
    for name, value in FILTERS.items():
        st.session_state[name] = value
        st.session_state.pop(_absent(name), None)
