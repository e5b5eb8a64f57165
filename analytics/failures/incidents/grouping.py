"""Incidents: failures, event bursts and outages that share node, place, run or cause in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, overlaps, taken, times
from analytics.failures.incidents import wording
from analytics.failures.incidents.blast_radius import accounts, leading_causes, nodes_hit
from analytics.failures.incidents.identity import IncidentTables, new_ids
from analytics.failures.incidents.links import groups_of
from analytics.failures.incidents.members import Given, Members, given, members_of
from analytics.failures.incidents.options import IncidentOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.failures.columns import Ints
    from analytics.frames import Columns


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


def _outage_rows(outages: Columns, first: Ints, late: NDArray[np.bool_]) -> dict[str, Any]:
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
