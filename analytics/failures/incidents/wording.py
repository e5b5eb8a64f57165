"""Incidents and their members in plain words."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.frames import Columns

NAMED_NODES = 3
"""Nodes that a sentence names; more are counted."""
NO_CAUSE = ("unknown", "requeued")
"""Causes that name none."""
_TOLD = (
    "cause", "nodes", "nodes_named", "n_failed_jobs", "n_failed_gpus", "n_preempted_jobs",
    "n_preempted_gpus", "loop_failures",
)  # fmt: skip


def summary(incident: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """One sentence on an incident, saying no more than its numbers do.

    What happened is named first, then what ended near it: that the one caused the other is the
    verdict's claim, and the colon leaves it there.

    Parameters
    ----------
    incident : mapping
        A row of the incidents, as `incidents` returns them.
    titles : mapping
        Cause to its title in plain words.

    Examples
    --------
    >>> summary({"cause": "nvlink", "nodes": ("a17",), "nodes_named": True, "n_failed_jobs": 3,
    ...     "n_failed_gpus": 384, "n_preempted_jobs": 0, "n_preempted_gpus": 0,
    ...     "loop_failures": 0}, {"nvlink": "NVLink errors"})
    'NVLink errors on node a17: 3 jobs (384 GPUs) ended'
    """
    parts = [f"{_what(incident, titles)}: {_ended(incident)}"]
    if incident["n_preempted_jobs"]:
        aside = _jobs(incident["n_preempted_jobs"], incident["n_preempted_gpus"])
        parts.append(f"{aside} preempted by the requeue")
    return "; ".join(parts)


def summaries(incidents: Columns, titles: Mapping[str, str]) -> np.ndarray[Any, Any]:
    """The sentence of each incident."""
    rows = zip(*(incidents[name].tolist() for name in _TOLD), strict=True)
    told = [summary(dict(zip(_TOLD, row, strict=True)), titles) for row in rows]
    return np.array(told, dtype=object)


def _what(incident: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The cause and where."""
    cause = incident["cause"]
    where = _where(incident["nodes"]) if incident["nodes_named"] else ""
    if cause == "node_lost" and where:
        lost = where.removeprefix(" on ")
        return f"{lost[:1].upper()}{lost[1:]} lost, no evidence why"
    if cause in NO_CAUSE:
        return f"No known cause{where}"
    title = titles.get(cause, cause.replace("_", " "))
    return f"{title[:1].upper()}{title[1:]}{where}"


def _where(nodes: Sequence[str]) -> str:
    """The nodes that evidence names."""
    if not nodes:
        return ""
    if len(nodes) > NAMED_NODES:
        return f" on {len(nodes):,} nodes"
    return f" on node{'s' if len(nodes) > 1 else ''} {', '.join(nodes)}"


def _ended(incident: Mapping[str, Any]) -> str:
    """The jobs that ended, and whether one of them did so over and over."""
    n = incident["n_failed_jobs"]
    if not n:
        return "no job is known to have ended"
    jobs = _jobs(n, incident["n_failed_gpus"])
    again = incident["loop_failures"]
    if not again:
        return f"{jobs} ended"
    if n == 1:
        return f"{jobs} failed {again:,} times in a row"
    return f"{jobs} ended, one of them {again:,} times in a row"


def _jobs(n: int, gpus: Any) -> str:
    """Number of jobs and, where known, of their GPUs."""
    size = "" if pd.isna(gpus) or not gpus else f" ({int(gpus):,} GPU{'s' if gpus > 1 else ''})"
    return f"{n:,} job{'s' if n > 1 else ''}{size}"


def signals(bursts: Columns) -> list[str]:
    """What each burst shows: ``XID 79``, ``SXid 12028``, or the name of its check."""
    columns = (bursts["xid"], bursts["sxid"], bursts["check_name"])
    return [_signal(*row) for row in zip(*columns, strict=True)]


def _signal(xid: float, sxid: float, check_name: str | None) -> str:
    if not isnan(xid):
        return f"XID {int(xid)}"
    if not isnan(sxid):
        return f"SXid {int(sxid)}"
    return "event" if check_name is None else check_name


def burst_texts(bursts: Columns) -> list[str]:
    """Each burst in words: its signal, how often, and the message of its first event."""
    return [
        signal
        + ("" if n == 1 else f", {n:,} times")
        + (f": {text}" if isinstance(text, str) and text else "")
        for signal, n, text in zip(signals(bursts), bursts["n"], bursts["message"], strict=True)
    ]


def failure_texts(failures: Columns, titles: Mapping[str, str]) -> list[str]:
    """Each failure in words: job, state and the verdict's cause."""
    return [
        f"job {job if isinstance(job, str) else '?'} ended {state}: "
        + (titles.get(cause, cause.replace("_", " ")) if isinstance(cause, str) else "no verdict")
        for job, state, cause in zip(
            failures["job_id"], failures["state"], failures["cause"], strict=True
        )
    ]


def outage_texts(outages: Columns) -> list[str]:
    """Each outage in words: state and reason."""
    return [
        f"node {state if isinstance(state, str) else 'out of service'}"
        f"{f': {reason}' if isinstance(reason, str) and reason else ''}"
        for state, reason in zip(outages["state"], outages["reason"], strict=True)
    ]
