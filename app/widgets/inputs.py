"""Inputs that the address may name: numbers within bounds, and one of a few."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import streamlit as st
from streamlit.runtime.state import get_session_state

from app.words import escaping, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.delta_generator import DeltaGenerator


def says(key: str) -> str | None:
    """The text of a name, the last where it stands there twice; None where it is not there."""
    with get_session_state().query_params() as named:
        return named.get(key)


def take_out(key: str) -> None:
    """Takes a name out, in the browser too: its widget begins as on an address without it."""
    with get_session_state().query_params() as named:
        named.remove_param(key)
        named.set_initial_query_params_from_current()


N = TypeVar("N", int, float)

MOST_GPUS = 10_000_000
"""Of a job: no cluster has as many."""
MOST_GPUS_OF_NODE = 1_024
MOST_DAYS = 36_600
"""A hundred years."""
MOST_MINUTES = 525_600.0
"""A year."""
MOST_RATE = 1_000_000.0
"""Failures per 1,000 node-days: each node fails every 86 seconds."""
LONGEST = 32
"""Characters of a number in an address, and of what is shown of another text."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Within(Generic[N]):
    """The least and the most that a number may be; whole where both are."""

    least: N
    most: N

    def left_out(self, written: str) -> str | None:
        """Why a text in an address is not taken; None where it is, or where it is empty.

        >>> Within(0, 1_000).left_out("1e999")
        'is no whole number from 0 to 1,000'
        >>> Within(0, 1_000).left_out("64")
        """
        text = written.strip()
        if not text or (len(text) <= LONGEST and _NUMBER.fullmatch(text) and self._has(text)):
            return None
        kind = "whole number" if self._whole else "number"
        return f"is no {kind} from {self.least:,.10g} to {self.most:,.10g}"

    @property
    def _whole(self) -> bool:
        return isinstance(self.most, int)

    def _has(self, text: str) -> bool:
        number = float(text)
        return self.least <= number <= self.most and (not self._whole or number.is_integer())


GPUS: Within[int] = Within(1, MOST_GPUS)


@overload
def number(
    label: str,
    within: Within[N],
    *,
    key: str,
    value: N,
    at: DeltaGenerator | None = None,
    **look: Any,
) -> N: ...
@overload
def number(
    label: str,
    within: Within[N],
    *,
    key: str,
    value: None,
    at: DeltaGenerator | None = None,
    **look: Any,
) -> N | None: ...
def number(
    label: str,
    within: Within[N],
    *,
    key: str,
    value: N | None,
    at: DeltaGenerator | None = None,
    **look: Any,
) -> N | None:
    """Draws the input; what the address says of it counts where it is within the bounds.

    Else the page's own value stands, and a line says what was left out until the reader enters
    another.

    Parameters
    ----------
    label, within, key
        The key is its name in the address, too.
    value
        The page's own; it may be larger than the bounds where a store says so.
    at
        Where it is drawn; here where that is not said.
    look
        Further arguments of Streamlit's input.
    """
    place: Any = st if at is None else at
    absent = f"absent_{key}"
    why = _taken_from_address(key, within)
    if why is not None:
        st.session_state[absent] = label, why
    chosen: N | None = place.number_input(
        label,
        min_value=within.least,
        max_value=within.most if value is None else max(within.most, value),
        value=value,
        key=key,
        bind="query-params",
        **look,
    )
    if chosen != value:
        st.session_state.pop(absent, None)
    of, told = st.session_state.get(absent, ("", ""))
    if of == label:  # another page's input may have the same key
        place.warning(told)
    return chosen


def _taken_from_address(key: str, within: Within[Any]) -> str | None:
    """Takes a number that is none out of the address; the line that says so."""
    written = says(key)
    why = None if written is None else within.left_out(written)
    if written is None or why is None:
        return None
    take_out(key)
    shown = plain.shortened("".join(c if c.isprintable() else "\ufffd" for c in written), LONGEST)
    return escaping.escaped(f"{key}={shown} in the address {why}: left out.")


V = TypeVar("V")


def choice(label: str, options: Sequence[V], *, default: V, key: str, **look: Any) -> V:
    """Draws the choice; `key` is its name in the address, too.

    An address that names it without a value (`?period=`) has Streamlit choose nothing, although
    something must be: there the default stands.
    """
    if says(key) == "":
        take_out(key)
    chosen: V = st.segmented_control(
        label, options, default=default, required=True, key=key, bind="query-params", **look
    )
    return chosen


def named(key: str) -> str | None:
    """What the box of that key will hold, before it is drawn; None where it will be empty."""
    name = st.session_state[key] if key in st.session_state else st.query_params.get(key)
    return name.strip() if name and name.strip() else None


def searched(label: str, *, key: str, placeholder: str, width: int = 420) -> str:
    """A box for a name, without its blanks at both ends; `key` is what the address calls it."""
    name = st.text_input(
        label,
        key=key,
        bind="query-params",
        placeholder=placeholder,
        icon=":material/search:",
        label_visibility="collapsed",
        width=width,
    )
    return (name or "").strip()


def job_size(
    title: str = "MTTF of a job of (GPUs)", *, key: str = "job_gpus", told: str | None = None
) -> int | None:
    """Draws the input; None where the largest usual size shall do."""
    return number(
        title,
        GPUS,
        key=key,
        value=None,
        step=8,
        placeholder="largest usual size",
        width=230,
        help=told,
    )
