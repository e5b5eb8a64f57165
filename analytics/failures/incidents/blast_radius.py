"""What an incident hit and cost: jobs, nodes, GPUs, lost GPU time; and what led it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.arrays import IntegerArray

from analytics.failures.columns import MINUTE, NEVER, SECOND, codes
from analytics.failures.incidents.wording import NO_CAUSE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.failures.columns import Ints
    from analytics.failures.incidents.members import Members
    from analytics.failures.incidents.options import IncidentOptions
    from analytics.frames import Columns

    Floats = NDArray[np.float64]

PROXIMATE = ("nccl_timeout", "nccl_remote_error", "node_lost", "hardware", "software")
"""Causes behind which another one stands, or that name no more than a domain."""


def _lost(start: Ints, end: Ints, n_gpus: Floats, lost_minutes: float) -> Floats:
    """GPU-seconds of work that attempts lost when they ended, until checkpoints are measured.

    .. math:: \\min(t_{end} - t_{start},\\; 30\\ \\mathrm{min}) \\times n_{GPU}

    the mean loss with hourly checkpoints, and all of a shorter run; times in microseconds. NaN
    where start, end or GPUs are unknown or the end is before the start.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, Figure 8 and the assumption stated with it.
    """
    known = (start != NEVER) & (end != NEVER) & (end >= start) & (n_gpus >= 0)
    ran = np.where(known, end - np.where(known, start, end), 0)
    gpus = np.where(known, n_gpus, 0).astype(np.int64)
    seconds = np.minimum(ran, int(lost_minutes * MINUTE)) * gpus // SECOND
    return np.where(known, seconds, np.nan)


def _whole(values: Floats) -> IntegerArray:
    """Whole numbers, null where NaN."""
    unknown = np.isnan(values)
    return IntegerArray(np.where(unknown, 0, values).astype(np.int64), unknown)


def accounts(members: Members, group: Ints, n: int, options: IncidentOptions) -> dict[str, Any]:
    """Of each of n incidents: jobs, attempts, GPUs and what they lost.

    Counts of nothing are 0; GPUs and losses are 0 where no attempt was hit, else unknown.
    """
    failed = _attempts(members.failures, "failed_at", group[: members.n_failures], options)
    second = _attempts(members.preempted, "end_at", group[members.preempted_by], options)
    rows = {name: np.append(failed[name], second[name]) for name in failed}
    found: dict[str, Any] = {}
    for name, part in (("", rows), ("failed_", failed), ("preempted_", second)):
        job = codes(part, ["group", "job"])
        n_jobs = int(job.max(initial=-1)) + 1
        largest, of_job = np.full(n_jobs, np.nan), np.zeros(n_jobs, dtype=np.int64)
        np.fmax.at(largest, job, part["gpus"])
        of_job[job] = part["group"]
        found[f"n_{name}jobs"] = np.bincount(of_job, minlength=n)
        found[f"n_{name}gpus"] = _sums(largest, of_job, n)
    found["n_failures"] = np.bincount(failed["group"], minlength=n)
    found["n_preempted"] = np.bincount(second["group"], minlength=n)
    found["lost_gpu_seconds"] = _sums(rows["lost"], rows["group"], n)
    found["second_order_gpu_seconds"] = _sums(second["lost"], second["group"], n)
    found["n_unmeasured"] = np.bincount(rows["group"][np.isnan(rows["lost"])], minlength=n)
    return found


def _attempts(attempts: Columns, end: str, group: Ints, options: IncidentOptions) -> Columns:
    """Incident, job, GPUs and loss of attempts; a job without an id is its attempt."""
    named = pd.notna(attempts["job_id"])
    job = np.where(named, attempts["job_id"], attempts["attempt_key"])
    gpus = attempts["n_gpus"]
    lost = _lost(attempts["start_at"], attempts[end], gpus, options.lost_minutes)
    return {"group": group, "job": job, "gpus": gpus, "lost": lost}


def _sums(values: Floats, group: Ints, n: int) -> IntegerArray:
    """Sum of what is known in each of n groups: 0 of no value, null where none is known."""
    known = ~np.isnan(values)
    total = np.bincount(group[known], values[known], minlength=n)
    nothing_known = np.bincount(group[known], minlength=n) == 0
    return _whole(np.where(nothing_known & (np.bincount(group, minlength=n) > 0), np.nan, total))


def leading_causes(members: Members, group: Ints) -> dict[str, Any]:
    """Cause and domain that lead each incident, in the order of their numbers.

    The cause on which the verdicts of its failures lay most weight: the sum of their confidence
    (1 each where there is none). A cause that names something comes before one behind which
    another stands (`PROXIMATE`), and that before none; so where no verdict names a cause, the
    earliest critical signal leads. At equal weight the cause seen first leads, a signal included.
    """
    failures, severe, at = members.failures, members.severe, members.first[: members.n_seeds]
    said = failures.get("confidence", np.ones(members.n_failures))
    weight = np.append(np.fmax(said, 0.01), np.zeros(len(severe["n"])))  # 0.01 where NaN
    cause, causes = _in_order(np.append(failures["cause"], severe["cause"]))
    domain, domains = _in_order(np.append(failures["domain"], severe["domain"]))
    order = np.lexsort((domain, at, -weight))
    pairs, number = np.unique(
        (group[: members.n_seeds] * len(causes) + cause)[order], return_inverse=True
    )
    first_at = np.full(len(pairs), np.iinfo(np.int64).max)
    np.minimum.at(first_at, number, at[order])
    leading = np.full(len(pairs), len(domains) - 1)
    known = np.flatnonzero(domain[order] < len(domains) - 1)[::-1]
    leading[number[known]] = domain[order][known]  # of several the first stays
    incident, cause = np.divmod(pairs, len(causes))
    tier = np.array([0 if one in NO_CAUSE else 1 if one in PROXIMATE else 2 for one in causes])
    weights = np.bincount(number, weight[order], minlength=len(pairs)).round(6)
    best = np.lexsort((cause, first_at, -weights, -tier[cause], incident))
    best = best[np.unique(incident[best], return_index=True)[1]]
    return {"cause": causes[cause[best]], "domain": domains[leading[best]]}


def _in_order(names: NDArray[np.object_]) -> tuple[Ints, NDArray[np.object_]]:
    """Rank of each name, and the names by rank; the last one, `unknown`, of those not known."""
    rank, known = pd.factorize(names, sort=True)
    return np.where(rank < 0, len(known), rank), np.append(known, "unknown").astype(object)


def nodes_hit(members: Members, group: Ints, n: int) -> dict[str, Any]:
    """Nodes of each of n incidents: nodes, nodes_named and n_nodes.

    `nodes` are those that a verdict or a critical event names, else those of outages and context,
    else those of the attempts, and then `nodes_named` is false. `n_nodes` counts all of them.
    """
    failure, place = members.of_attempts
    place = np.append(members.place, place)
    rank = np.where(np.arange(len(place)) < members.n_seeds, 2, 1)
    rank[members.n :] = 0
    incident = np.append(group, group[failure])
    hit = (place >= 0) & (incident >= 0)
    place, rank, incident = place[hit], rank[hit], incident[hit]
    order = np.lexsort((-rank, place, incident))
    width = len(members.names) + 1
    order = order[np.unique((incident * width + place)[order], return_index=True)[1]]
    place, rank, incident = place[order], rank[order], incident[order]
    highest = np.full(n, -1)
    np.maximum.at(highest, incident, rank)
    shown = rank == highest[incident]
    names, of_names = members.names[place[shown]], incident[shown]
    order = np.lexsort((names, of_names))
    bounds = pairwise(np.searchsorted(of_names[order], np.arange(n + 1)))
    nodes = np.empty(n, dtype=object)
    for number, (begin, end) in enumerate(bounds):
        nodes[number] = tuple(names[order[begin:end]])
    return {
        "nodes": nodes,
        "nodes_named": highest > 0,
        "n_nodes": np.bincount(incident, minlength=n),
    }
