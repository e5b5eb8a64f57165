"""A headline number: value, change, interval and n, which opens the rows behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app.words import numbers, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.estimate import Estimate
    from app.words.terms import Term


LEAST_WIDTH = 24
"""Of a column, in letters of its label: longer labels get more room, so that none is cut off."""


@dataclass(frozen=True)
class Change:
    """How a value differs from that of the preceding period."""

    ratio: float
    """Relative change; 0.1 is 10 % more."""
    before: str
    """The former value, written out."""
    certain: bool
    """The two intervals do not overlap."""


@dataclass(frozen=True)
class Headline:
    """A number as it is shown."""

    term: Term
    value: str
    basis: str
    """Interval, level and n."""
    opens: Callable[[], None]
    """Shows the rows behind the number."""
    change: Change | None = None
    higher_is_better: bool = False


def of_rate(
    term: Term, rate: Estimate, before: Estimate | None, *, opens: Callable[[], None]
) -> Headline:
    """A rate, in the unit that its label names."""
    value = numbers.number(rate.value)
    basis = _basis(rate, numbers.interval(rate))
    return Headline(term, value, basis, opens, change(rate, before, numbers.number))


def of_duration(
    term: Term, hours: Estimate, before: Estimate | None, *, opens: Callable[[], None]
) -> Headline:
    """A duration in hours, of which more is better; where only a bound is known, the bound."""
    interval = numbers.duration_interval(hours)
    if hours.value is None:
        return Headline(term, interval, _basis(hours, ""), opens)
    was = change(hours, before, numbers.duration)
    value = numbers.duration(hours.value)
    return Headline(term, value, _basis(hours, interval), opens, was, higher_is_better=True)


def of_count(
    term: Term, n: int | None, *, of: int, basis: str, opens: Callable[[], None]
) -> Headline:
    """How many of a known number; a count has no interval."""
    value = numbers.UNKNOWN if n is None else f"{n:,} of {of:,}"
    return Headline(term, value, basis, opens)


def change(
    now: Estimate, before: Estimate | None, write: Callable[[float | None], str]
) -> Change | None:
    """The change on the preceding period; None where one of the two is unknown or was 0."""
    if before is None or now.value is None or not before.value:
        return None
    return Change(now.value / before.value - 1.0, write(before.value), _apart(now, before))


def row(headlines: Sequence[Headline]) -> None:
    """Headline numbers side by side."""
    widths = [max(len(headline.term.label), LEAST_WIDTH) for headline in headlines]
    for column, headline in zip(st.columns(widths), headlines, strict=True):
        with column, st.container(gap="xxsmall"):
            _show(headline)


def _show(headline: Headline) -> None:
    """One number, the line that opens its rows, and its change."""
    st.metric(
        headline.term.label,
        headline.value,
        help=headline.term.definition
        + (f"\n\n{terms.CHANGE}" if headline.change is not None else ""),
    )
    if st.button(
        _unbroken(headline.basis),
        key=f"rows_{headline.term.label}",
        type="tertiary",
        icon=":material/table_rows:",
        help="Open the rows behind this number",
    ):
        headline.opens()
    if headline.change is not None:
        st.caption(_change(headline.change, headline.higher_is_better))


def _unbroken(text: str) -> str:
    """A basis whose lines never break between a number and its sign.

    >>> _unbroken("5.80 to 7.30 (90 %), n = 100")
    '5.80 to 7.30 (90\\xa0%), n\\xa0=\\xa0100'
    """
    return text.replace(" %", "\xa0%").replace(" = ", "\xa0=\xa0")


def _change(was: Change, higher_is_better: bool) -> str:
    """The change in words; a number of it only where it is more than chance."""
    if not was.certain:
        return f"{was.before} before: no clear change"
    better = (was.ratio > 0) == higher_is_better
    text = f":{'green' if better else 'red'}[**{numbers.percent(was.ratio, signed=True)}**]"
    return f"{text} on {was.before} before"


def _basis(estimate: Estimate, interval: str) -> str:
    """Interval at its level, and n."""
    n = f"n = {estimate.n:,}"
    if estimate.lower is None and estimate.upper is None:
        return n
    level = numbers.level(estimate)
    return f"{interval} ({level}), {n}" if interval else f"{level}, {n}"


def _apart(one: Estimate, other: Estimate) -> bool:
    """Whether two intervals do not overlap; unbounded ones do."""
    if one.lower is None or one.upper is None or other.lower is None or other.upper is None:
        return False
    return one.lower > other.upper or other.lower > one.upper
