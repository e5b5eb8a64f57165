"""Evidence on failed attempts: its shape, the cause that a piece names, and how strongly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.errors import ShapeError
from analytics.failures.columns import codes, require
from analytics.failures.xid import sxid_entries, xid_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.precedence import Weights

COLUMNS = {
    "attempt": "int64",  # number of the attempt
    "cluster": "object",  # whose clock told the time
    "kind": "object",  # health_event, node_event, job_log, scheduler
    "key": "object",
    "node": "object",
    "offset_s": "float64",  # time of the evidence minus end of the attempt; NaN unknown
    "check_name": "object",
    "severity": "object",
    "xid": "float64",
    "cause": "object",  # None: names none
    "odds": "float64",  # >= 0
    "scope": "object",  # node or process
    "job_named": "object",  # True: names this attempt's job; False: another; None: none
    "causal_ratio": "float64",  # in [0, 1]; NaN unknown
    "n_records": "float64",  # records that it stands for; NaN for one
    "text": "object",
    "log_method": "object",  # log_rule or log_model; None for other kinds
}
"""Columns of evidence and their types; one row for each piece of evidence and attempt."""
_NEEDED = ("attempt", "kind", "key", "node", "offset_s", "cause", "odds", "scope", "job_named",
           "causal_ratio")  # fmt: skip


def evidence_frame(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Pieces of evidence as one frame of the columns and types in `COLUMNS`.

    Parameters
    ----------
    parts : sequence of DataFrame
        Rows from several sources, each with at least attempt, kind, key, node, offset_s, cause,
        odds, scope, job_named and causal_ratio. A further column that a source lacks is null;
        columns that are not in `COLUMNS` are left out.

    Raises
    ------
    ShapeError
        Where a column is missing or cannot have its type.

    Examples
    --------
    >>> piece = pd.DataFrame({"attempt": [0], "kind": "scheduler", "key": "", "node": "a1",
    ...     "offset_s": 0, "cause": None, "odds": 0, "scope": "node", "job_named": None,
    ...     "causal_ratio": 1})
    >>> frame = evidence_frame([piece])
    >>> frame["offset_s"].dtype, list(frame.columns) == list(COLUMNS)
    (dtype('float64'), True)
    """
    for part in parts:
        require("evidence", part, _NEEDED)
    kept = [part for part in parts if len(part)]
    return pd.DataFrame({name: _column(name, kind, kept) for name, kind in COLUMNS.items()})


def _column(name: str, kind: str, parts: Sequence[pd.DataFrame]) -> np.ndarray[Any, Any]:
    """One column of all parts, in its type."""
    empty = np.nan if kind == "float64" else None
    try:
        pieces = [
            part[name].to_numpy(dtype=kind)
            if name in part.columns
            else np.full(len(part), empty, kind)
            for part in parts
        ]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=kind)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"evidence: {name} must be {kind} ({error}): convert it") from None


def of_events(events: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Cause and odds of health events.

    A critical or fatal event speaks for its cause. So does the warning of an XID, and a kernel line
    that needs no action because a program is at fault (XID 43), and the kernel's word
    that it killed a process for memory or saw one hang: these are about one process (``scope``
    process). Other warnings, and info, are context: odds 0. An event of unknown severity is
    context too.

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
    group = codes(events, _KEYS)
    first = np.unique(group, return_index=True)[1]
    values = [events[name].to_numpy(dtype=object)[first] for name in _KEYS]
    read = [
        _of_event({key: None if pd.isna(value) else value
                   for key, value in zip(_KEYS, one, strict=True)}, table)
        for one in zip(*values, strict=True)
    ]  # fmt: skip
    cause, odds, scope = np.array(read, dtype=object).reshape(-1, 3)[group].T
    columns = {"cause": cause, "odds": odds.astype(float), "scope": scope}
    return pd.DataFrame(columns, index=events.index)


_KEYS = ["check_name", "severity", "xid", "sxid", "source", "message"]


def _of_event(event: dict[Any, Any], table: Weights) -> tuple[str | None, float, str]:
    """Cause, odds and scope of one event."""
    code, switch_code = event["xid"], event["sxid"]
    if code is not None or switch_code is not None:
        entry = xid_entries().get(code) if code is not None else sxid_entries().get(switch_code)
        cause = entry.cause if entry is not None else None
    else:
        cause = table.cause_of(event["check_name"], event["message"])
    cause = None if cause == "unknown" else cause
    by_program = cause is not None and table.taxonomy.domain_of(cause) == "user"
    of_process = (
        event["xid"] is not None
        and (event["severity"] == "warning" or (by_program and event["severity"] == "info"))
    ) or (event["source"] == "kernel" and event["check_name"] in _OF_A_PROCESS)
    if cause is None or (event["severity"] not in ("critical", "fatal") and not of_process):
        return cause, 0.0, "node"
    odds = table.odds["process" if of_process else event["severity"]]
    if cause in _UNSPECIFIC:
        odds *= table.odds["unspecific"]
    return cause, odds, "process" if of_process else "node"


_OF_A_PROCESS = frozenset({"oom_kill", "hung_task"})
_UNSPECIFIC = frozenset({"hardware", "software", "system_service"})


def of_reason(reason: str, check: str, table: Weights) -> tuple[str | None, float]:
    """Cause and odds of the reason of a node event or of the scheduler.

    Parameters
    ----------
    reason : str
        As the source wrote it.
    check : str
        ``node_event`` or ``scheduler``.
    table : Weights
        From `analytics.failures.precedence.weights`.

    Returns
    -------
    (str or None, float)
        Cause and odds; odds 0 where the reason names no cause or speaks of a warning. A reason for
        which a job only waited names none.
    """
    waited = check == "scheduler" and table.waiting.search(reason) is not None
    cause = None if waited else table.cause_of(check, reason)
    mild = re.search(r"\bwarn(ing)?\b|inspect", reason, re.IGNORECASE) is not None
    kind = "outage" if check == "node_event" else "reason"
    return cause, 0.0 if cause is None or mild else table.odds[kind]
