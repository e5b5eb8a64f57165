"""What a piece of evidence says: the cause it names, and how strongly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.xid import sxid_causes, xid_causes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.precedence import Weights


def of_events(events: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Cause and odds of health events.

    A critical or fatal event speaks for its cause. So does a kernel warning, and a kernel line
    that needs no action because a program is at fault (XID 43): these are about one process
    (``scope`` process). Other warnings, and info, are context: odds 0. An event of unknown
    severity is context too.

    Parameters
    ----------
    events : DataFrame
        Columns check_name, severity, xid, sxid, source, message; one row an event.
    table : Weights
        From `analytics.failures.precedence.weights`.

    Returns
    -------
    DataFrame
        Columns cause (None where nothing names one), odds (>= 0) and scope (node or process),
        with the index of `events`.
    """
    group = events.groupby(_KEYS, dropna=False, sort=False).ngroup().to_numpy()
    firsts = events[_KEYS].iloc[np.unique(group, return_index=True)[1]].astype(object)
    found = [
        _of_event({key: None if pd.isna(value) else value for key, value in one.items()}, table)
        for one in firsts.to_dict("records")
    ]
    said = pd.DataFrame(found, columns=["cause", "odds", "scope"], dtype=object)
    return said.iloc[group].set_index(events.index).astype({"odds": "float64"})


_KEYS = ["check_name", "severity", "xid", "sxid", "source", "message"]


def _of_event(event: dict[Any, Any], table: Weights) -> tuple[str | None, float, str]:
    """Cause, odds and scope of one event."""
    code, switch_code = event["xid"], event["sxid"]
    if code is not None:
        cause = xid_causes().get(int(code))
    elif switch_code is not None:
        cause = sxid_causes().get(int(switch_code))
    else:
        cause = table.cause_of(event["check_name"], event["message"])
    cause = None if cause == "unknown" else cause
    by_program = cause is not None and table.taxonomy.domain_of(cause) == "user"
    of_process = event["xid"] is not None and (
        event["severity"] == "warning" or (by_program and event["severity"] == "info")
    )
    if cause is None or (event["severity"] not in ("critical", "fatal") and not of_process):
        return cause, 0.0, "node"
    odds = table.odds["process" if of_process else event["severity"]]
    if cause in _UNSPECIFIC:
        odds *= table.odds["unspecific"]
    return cause, odds, "process" if of_process else "node"


_UNSPECIFIC = frozenset({"hardware", "software", "system_service"})


def of_reasons(
    reasons: Sequence[str], check: str, table: Weights
) -> list[tuple[str | None, float]]:
    """Cause and odds of the reasons of node events or of the scheduler.

    Parameters
    ----------
    reasons : sequence of str
        Reasons as the source wrote them.
    check : str
        ``node_event`` or ``scheduler``.
    table : Weights
        From `analytics.failures.precedence.weights`.

    Returns
    -------
    list of (str or None, float)
        Cause and odds of each; odds 0 where the reason names no cause or speaks of a warning. A
        reason for which a job only waited names none.
    """
    kind = "outage" if check == "node_event" else "reason"
    said = []
    for reason in reasons:
        waited = check == "scheduler" and table.waiting.search(reason) is not None
        cause = None if waited else table.cause_of(check, reason)
        mild = re.search(r"\bwarn(ing)?\b|inspect", reason, re.IGNORECASE) is not None
        said.append((cause, 0.0 if cause is None or mild else table.odds[kind]))
    return said
