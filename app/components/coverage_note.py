"""What a page rests on and what is missing: it stands below every page's first sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.components import synthetic_badge, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Coverage

DAY = pd.Timedelta(days=1)


@dataclass(frozen=True)
class SourceDays:
    """On how many days of the period a source has a record, in any cluster."""

    source: str
    days: int
    of: int


def show(held: Coverage, scope: Scope) -> None:
    """The badge of generated data, the filters, the sources and their gaps, in small type."""
    badge = f"{synthetic_badge.markdown()} " if scope.synthetic else ""
    chosen = scope.selection
    in_utc = numbers.period(chosen.from_at, chosen.to_at, "UTC")
    st.caption(
        f"{badge}{verbatim.escaped(scope.filters)}. {sentence(held, scope)}",
        help=None if scope.timezone == "UTC" else f"In UTC: {in_utc}",
    )


def sentence(held: Coverage, scope: Scope) -> str:
    """Sources with records on every day, then those with gaps, then those without any."""
    found = source_days(held, scope)
    complete = [each.source for each in found if each.days == each.of]
    partly = [f"{each.source} on {each.days:,}" for each in found if each.days < each.of]
    parts = []
    if complete:
        parts.append(f"{', '.join(complete)} on all {numbers.counted(found[0].of, 'day')}")
    if partly:
        parts.append(f"{', '.join(partly)} of {numbers.counted(found[0].of, 'day')}")
    parts += [f"none of {', '.join(held.missing)}"] if held.missing else []
    return f"Records: {'; '.join(parts)}."


def source_days(held: Coverage, scope: Scope) -> list[SourceDays]:
    """Days with a record of every source that has one; jobs first, then most days first."""
    first, last = span(held, scope)
    n_days = max(1, (last - first) // DAY)
    days = held.days.groupby("source")["day"].nunique().sort_values(ascending=False, kind="stable")
    found = [SourceDays(str(source), int(n), n_days) for source, n in days.items()]
    return sorted(found, key=lambda each: each.source != "jobs")


def span(held: Coverage, scope: Scope) -> tuple[pd.Timestamp, pd.Timestamp]:
    """The whole days (UTC) that the period touches; without one, those of the records."""
    chosen = scope.selection
    from_at = chosen.from_at or held.days["day"].min()
    to_at = chosen.to_at or held.days["day"].max() + DAY
    return pd.Timestamp(from_at).floor("D"), pd.Timestamp(to_at).ceil("D")
