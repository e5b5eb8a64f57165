"""Incidents: failures, event bursts and outages that share node, place, run or cause in time.

What each hit and cost stands with it: jobs, nodes, GPUs, lost GPU time; and what led it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.arrays import IntegerArray

from analytics.failures.columns import MINUTE, NEVER, SECOND, codes, overlaps, taken, times
from analytics.failures.incidents import wording
from analytics.failures.incidents.identity import IncidentTables, new_ids
from analytics.failures.incidents.joining import groups_of
from analytics.failures.incidents.members import Given, IncidentOptions, Members, given, members_of
from analytics.failures.incidents.wording import NO_CAUSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints
    from analytics.frames import Columns

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


def incidents(
    failures: pd.DataFrame | Columns,
    attempt_nodes: pd.DataFrame | Columns,
    bursts: pd.DataFrame | Columns,
    *,
    node_events: pd.DataFrame | Columns,
    nodes: pd.DataFrame | Columns,
    preempted: pd.DataFrame | Columns,
    options: IncidentOptions | None = None,
) -> IncidentTables:
    """Incidents from failed attempts, bursts of events and outages.

    Seeds are failures of hardware or system software, NODE_FAIL, members of a crash loop, and
    critical or fatal bursts. They are linked when

    - a burst, or the start of an unplanned outage, falls into the attribution window of a
      failure (10 minutes before to 5 minutes after its end) on a node of its attempt;
    - failures of one node, or bursts of one node, follow each other within 15 minutes (a failure
      whose node is not named counts at every node of its attempt);
    - they are part of a storm in one rack, pod or class of shared causes (see `storm_pairs`);
    - they belong to one crash loop (see `crash_loops`).

    A chain longer than 24 hours is cut, crash loops apart. Other bursts on a seed's node in its
    window join as context; outages and preempted attempts as consequences. A node that fails
    every hour therefore has one incident an hour, and a failure of a whole fleet is one.

    Parameters
    ----------
    failures : DataFrame or arrays by column
        One row a failed attempt: cluster, attempt_key, job_id, cause, domain, state, failed_at,
        start_at, node (of the verdict; null where not named), n_gpus; optional confidence,
        restarted_at, node_lost (counts as NODE_FAIL). All failures, the users' too: crash loops
        are found among them.
    attempt_nodes : DataFrame or arrays by column
        cluster, attempt_key, node; rows of attempts that do not seed are ignored.
    bursts : DataFrame or arrays by column
        As `bursts` returns them; optional cause and domain of each.
    node_events : DataFrame or arrays by column
        cluster, node, start_at, end_at, state, reason, planned (null counts as unplanned).
    nodes : DataFrame or arrays by column
        cluster, node, rack, pod (null where unknown); optional last_seen_at.
    preempted : DataFrame or arrays by column
        cluster, attempt_key, job_id, preempted_by, start_at, end_at, n_gpus.
    options : IncidentOptions, optional
        Times and counts.

    Returns
    -------
    IncidentTables
        The same whatever the order of the rows given.

    Raises
    ------
    ShapeError
        For a missing column.

    Notes
    -----
    A large job is linked with every critical event on any of its nodes around its end, as in the
    paper's attribution; on a job over the whole fleet that may include a bystander. What has no
    time is left out.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section II (window) and Figure 8 (loss, second order).
    """
    chosen = options or IncidentOptions()
    tables = {
        "failures": failures,
        "attempt_nodes": attempt_nodes,
        "bursts": bursts,
        "node_events": node_events,
        "nodes": nodes,
        "preempted": preempted,
    }
    members = members_of(given(tables), chosen)
    return _described(members, _numbered(groups_of(members, chosen)), chosen)


def as_one(records: Given, incident_id: str, options: IncidentOptions) -> IncidentTables | None:
    """The one incident that records make when they are held together; None where none is a seed.

    Whatever would link them is not asked: all that an incident says follows from its records
    alone, as in `incidents`.
    """
    members = members_of(records, options)
    if not members.n_seeds:
        return None
    together = np.zeros(members.n, dtype=np.int64)
    return _described(members, (together, 1), options, ids=np.array([incident_id], dtype=object))


def _described(
    members: Members,
    groups: tuple[Ints, int],
    options: IncidentOptions,
    *,
    ids: NDArray[np.object_] | None = None,
) -> IncidentTables:
    """Both tables of members by the number of their group, under new ids where none are given."""
    group, n = groups
    rows, found = _rows(members, group, options), _incidents(members, group, n, options)
    if ids is None:
        ids = new_ids(rows, found["cluster"], found["domain"])
    found = {"incident_id": ids} | found | {"summary": wording.summaries(found, options.titles)}
    rows = {"incident_id": ids[rows.pop("group")]} | rows
    return IncidentTables(
        _frame(found, ("start_at", "incident_id")),
        _frame(rows, ("incident_id", "at", "kind", "key")),
    )


def _numbered(group: Ints) -> tuple[Ints, int]:
    """Groups numbered from 0, and how many there are; -1 stays."""
    found, number = np.unique(group, return_inverse=True)
    n_none = int(np.searchsorted(found, 0))
    return number - n_none, len(found) - n_none


def _frame(table: Columns, by: Sequence[str]) -> pd.DataFrame:
    """A table in the order of some of its columns; times in UTC."""
    order = np.lexsort([pd.factorize(table[name], sort=True)[0] for name in reversed(by)])
    ordered = {name: values[order] for name, values in table.items()}
    return pd.DataFrame(
        {name: times(one) if name.endswith("at") else one for name, one in ordered.items()}
    )


def _incidents(
    members: Members, group: Ints, n: int, options: IncidentOptions
) -> dict[str, NDArray[Any]]:
    """The columns of n incidents, without their ids; times in microseconds."""
    inside = group >= 0
    start, end = np.full(n, np.iinfo(np.int64).max), np.full(n, NEVER)
    np.minimum.at(start, group[inside], members.first[inside])
    np.maximum.at(end, group[inside], members.last[inside])
    seed = np.unique(group[: members.n_seeds], return_index=True)[1]
    clusters = np.append(members.failures["cluster"], members.severe["cluster"])
    of_events = group[members.n_failures : members.n_seeds]
    return {
        "cluster": clusters[seed],
        "start_at": start,
        "end_at": end,
        **leading_causes(members, group),
        **accounts(members, group, n, options),
        **nodes_hit(members, group, n),
        "n_events": np.bincount(of_events, members.severe["n"], minlength=n).astype(np.int64),
        **_loops(members, group, n),
        "superseded_by": np.full(n, None, dtype=object),
        "retired": np.zeros(n, dtype=bool),
    }


def _loops(members: Members, group: Ints, n: int) -> Columns:
    """Failures and requeues of the longest crash loop of each incident."""
    failures, requeues = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    inside = np.flatnonzero(members.loop >= 0)
    if members.loops is not None and len(inside):
        number, first = np.unique(members.loop[inside], return_index=True)
        n_failures, n_requeues = members.loops.loops.to_numpy(dtype=np.int64)[number].T
        order = np.lexsort((n_requeues, n_failures))  # of several the longest stays
        incident = group[inside[first[order]]]
        failures[incident], requeues[incident] = n_failures[order], n_requeues[order]
    return {"loop_failures": failures, "loop_requeues": requeues}


def _rows(members: Members, group: Ints, options: IncidentOptions) -> dict[str, NDArray[Any]]:
    """The columns of all members, with the group of each; times in microseconds."""
    n_failures, n_seeds = members.n_failures, members.n_seeds
    outage = np.flatnonzero(group[n_seeds:] >= 0)
    of_outages, first = group[n_seeds:][outage], members.first[n_seeds:][outage]
    began = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(began, group[:n_seeds], members.first[:n_seeds])
    of_mild, mild = _context(members, group, options)
    parts: list[dict[str, Any]] = [
        _failure_rows(members, options) | {"group": group[:n_failures]},
        _burst_rows(members.severe, "seed") | {"group": group[n_failures:n_seeds]},
        _burst_rows(taken(members.mild, mild), "context") | {"group": of_mild},
        _outage_rows(taken(members.outages, outage), first, first >= began[of_outages])
        | {"group": of_outages},
        _preemption_rows(members.preempted) | {"group": group[members.preempted_by]},
    ]
    return {name: np.concatenate([_filled(part, name) for part in parts]) for name in parts[1]}


def _filled(part: Mapping[str, Any], name: str) -> NDArray[Any]:
    """A column of a part: what is the same in all rows is repeated, None where it has none."""
    value = part.get(name)
    if isinstance(value, np.ndarray):
        return value
    found = np.empty(len(part["group"]), dtype=object)
    found[:] = value
    return found


def _outage_rows(outages: Columns, first: Ints, late: Bools) -> dict[str, Any]:
    return {
        "kind": "node_event",
        "key": outage_keys(outages, first),
        "at": outages["start_at"],
        "end_at": outages["end_at"],
        "node": outages["node"],
        "text": wording.outage_texts(outages),
        "role": np.where(late, "consequence", "context").astype(object),
        "signal": "outage",
    }


def _preemption_rows(preempted: Columns) -> dict[str, Any]:
    pairs = zip(preempted["job_id"], preempted["preempted_by"], strict=True)
    return {
        "kind": "preemption",
        "key": preempted["attempt_key"],
        "at": preempted["end_at"],
        "end_at": preempted["end_at"],
        "text": [f"job {job} preempted by job {by}" for job, by in pairs],
        "role": "consequence",
        "signal": "preemption",
    }


def _failure_rows(members: Members, options: IncidentOptions) -> dict[str, Any]:
    failures = members.failures
    return {
        "kind": "failure",
        "key": failures["attempt_key"],
        "at": failures["failed_at"],
        "end_at": failures["failed_at"],
        "node": failures["node"],
        "text": wording.failure_texts(failures, options.titles),
        "role": "seed",
        "signal": failures["state"],
    }


def _burst_rows(bursts: Columns, role: str) -> dict[str, Any]:
    return {
        "kind": "health_event",
        "key": bursts["burst_id"],
        "at": bursts["first_at"],
        "end_at": bursts["last_at"],
        "node": bursts["node"],
        "text": wording.burst_texts(bursts),
        "severity": bursts["severity"],
        "role": role,
        "signal": wording.signals(bursts),
    }


def _context(members: Members, group: Ints, options: IncidentOptions) -> tuple[Ints, Ints]:
    """Incident and row of the milder bursts on a seed's node in its window, each pair once."""
    failed, severe = members.occupied(), np.arange(members.n_failures, members.n_seeds)
    seeds = np.append(failed.member, severe)
    places = np.append(failed.place, members.place[severe])
    around = members.at(seeds, places, options.window).known()
    seed, mild = overlaps(around, members.mild_spans)
    width = len(members.mild["n"]) + 1
    pairs = np.unique(group[around.member[seed]] * width + members.mild_spans.member[mild])
    return pairs // width, pairs % width


def outage_keys(outages: Columns, first: Ints) -> list[str]:
    """Node and start, which with the cluster are the key of an outage."""
    starts = np.datetime_as_string(first.view("datetime64[us]"), unit="s")
    return [f"{node}@{start}Z" for node, start in zip(outages["node"], starts, strict=True)]
