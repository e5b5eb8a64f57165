"""What a verdict rests on, and what else was considered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app.components import table, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.components.scope import Scope

COLUMNS = ["when", "role", "check", "severity", "node", "cause", "text", "why", "n", "at", "key"]
ROLES = {
    "cause": "speaks for the verdict",
    "other": "speaks for another cause, or too weakly for any",
    "consequence": "follows from the cause",
    "excluded": "does not count",
    "context": "seen near the end, no reason to fail",
}
"""What each role means, for the line below the table."""


def show(evidence: Sequence[Mapping[str, Any]], end_at: pd.Timestamp, scope: Scope) -> None:
    """One row a piece of evidence, what counts first."""
    if not evidence:
        st.markdown(
            "No health event, node event, scheduler's reason or log line near the end of this "
            "attempt was recorded: nothing says why it ended."
        )
        return
    table.show(frame(evidence, end_at), name="evidence", scope=scope)
    st.caption(" · ".join(f"{role}: {meaning}" for role, meaning in ROLES.items()))


def alternatives(found: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> None:
    """Other causes that were considered, and why they were not chosen."""
    if not found:
        st.markdown("No other cause was considered.")
        return
    for each in found:
        title = titles.get(str(each["cause"]), str(each["cause"]))
        reason = verbatim.escaped(str(each.get("reason") or "less evidence"))
        share = numbers.percent(each.get("confidence"))
        st.markdown(f"- {verbatim.escaped(title)} ({share}): {reason}")


def frame(evidence: Sequence[Mapping[str, Any]], end_at: pd.Timestamp) -> pd.DataFrame:
    """Evidence as a table: time relative to the end, source, text, role and why."""
    order = list(ROLES)
    ranked = sorted(evidence, key=lambda e: order.index(e["role"]) if e["role"] in order else 9)
    rows = [
        {
            **each,
            "when": relative(each.get("offset_s")),
            "check": _check(each),
            "at": _at(each, end_at),
        }
        for each in ranked
    ]
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def relative(offset_s: float | None) -> str:
    """A time relative to the end of the attempt.

    >>> relative(-44.5), relative(0.0), relative(150.0)
    ('44.5 s before the end', 'at the end', '2.50 min after the end')
    """
    if offset_s is None or pd.isna(offset_s):
        return numbers.UNKNOWN
    if not offset_s:
        return "at the end"
    side = "before" if offset_s < 0 else "after"
    return f"{numbers.duration(abs(offset_s) / 3600.0)} {side} the end"


def _check(each: Mapping[str, Any]) -> str:
    """The check that spoke, with its code where it has one."""
    check, xid = each.get("check") or each.get("kind"), each.get("xid")
    return f"{check} {xid:.0f}" if isinstance(xid, int | float) and xid == xid else str(check)


def _at(each: Mapping[str, Any], end_at: pd.Timestamp) -> pd.Timestamp | None:
    """The time of a piece of evidence."""
    offset = each.get("offset_s")
    return None if offset is None or pd.isna(end_at) else end_at + pd.Timedelta(seconds=offset)
