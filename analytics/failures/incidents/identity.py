"""Ids of incidents that stay when the derivation runs again, data come late, or parts merge."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.columns import Spans, joint_codes, microseconds, overlaps, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Ints
    from analytics.frames import Columns

    Names = NDArray[np.object_]

DIGITS = 12
"""Hexadecimal digits of an id."""
_INCIDENT = ("incident_id", "cluster", "start_at", "superseded_by")
_MEMBER = ("incident_id", "kind", "key", "at", "end_at", "node", "role", "signal")


@dataclass(frozen=True)
class IncidentTables:
    """Incidents and what they consist of."""

    incidents: pd.DataFrame
    """One row an incident, by start: incident_id, cluster, start_at (first seed or outage),
    end_at (last one; an outage counts with its start), cause, domain, n_jobs (failed or preempted
    by a requeue), n_failed_jobs, n_preempted_jobs, n_failures and n_preempted (attempts),
    n_events, nodes (tuple), nodes_named, n_nodes, n_gpus, n_failed_gpus, n_preempted_gpus (sum
    over jobs of their largest attempt: how many distinct GPUs they are is not recorded),
    lost_gpu_seconds, second_order_gpu_seconds (the preempted part of it), n_unmeasured (attempts
    whose loss is not known), loop_failures and loop_requeues (of the longest crash loop, 0 where
    none), summary, superseded_by, retired (see `carry_over`)."""
    members: pd.DataFrame
    """One row a member: incident_id, kind (failure, health_event, node_event, preemption), key
    (attempt_key; burst_id; node@start), at, end_at, node, text, severity, role (seed, context,
    consequence), signal."""


def incident_id(cluster: str, cause_class: str, kind: str, key: str) -> str:
    """Id of an incident: the start of the SHA-256 of its cluster, cause class and earliest member.

    The class is the domain of the leading cause, so that a finer verdict keeps the id.

    Examples
    --------
    >>> incident_id("c", "hardware", "failure", "4711")
    '0aed25785e93'
    """
    text = "\x1f".join((cluster, cause_class, kind, key))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def new_ids(members: Columns, clusters: Names, classes: Names) -> Names:
    """Id of each group of members from its cluster, its class and its earliest seed.

    `members` has the columns group (from 0), at, kind, key and role. The earliest is the first by
    time, kind and key: the order of the rows is irrelevant.
    """
    seeds = np.flatnonzero(members["role"] == "seed")
    kind, key = (pd.factorize(members[name][seeds], sort=True)[0] for name in ("kind", "key"))
    group = members["group"][seeds]
    order = np.lexsort((key, kind, members["at"][seeds], group))
    first = seeds[order[np.unique(group[order], return_index=True)[1]]]
    columns = (clusters, classes, members["kind"][first], members["key"][first])
    ids = [incident_id(*map(str, row)) for row in zip(*columns, strict=True)]
    return np.array(ids, dtype=object)


def carry_over(
    new: pd.DataFrame,
    new_members: pd.DataFrame,
    old: pd.DataFrame,
    old_members: pd.DataFrame,
) -> IncidentTables:
    """A new derivation under the ids of the one before, so that links and notes never break.

    The heir of an old incident is the new one that holds its earliest seed that still exists.

    - Derived again, with late members or an earlier first one, an incident keeps its id.
    - After a merge the oldest id (by start, then by id) stays; the others point to it.
    - After a split the part with the earliest member keeps the id, the other gets one of its own.
    - What is no incident any more (its failures were decided otherwise) is retired, pointing to
      nothing. If it comes back, it has its id again.

    Parameters
    ----------
    new, new_members : DataFrame
        As `incidents` returns them.
    old, old_members : DataFrame
        As this function returned them before; columns that the store does not keep may be
        missing, except incident_id, cluster, start_at, superseded_by and those of the members.
        Without a column `retired` an incident that nothing superseded counts as living.

    Returns
    -------
    IncidentTables
        incidents: the new ones, then the retired rows of old ones (retired true), whose
        superseded_by names a living incident, or nothing. members: of the new ones alone.

    Raises
    ------
    ShapeError
        For a missing column.

    Notes
    -----
    An event that comes late can become the first of a burst, and so its key; an old burst
    that is gone is therefore also recognised by signal, node and a time inside the new one.
    """
    for name, frame in (("new", new), ("old", old)):
        require(name, frame, _INCIDENT)
    for name, frame in (("new_members", new_members), ("old_members", old_members)):
        require(name, frame, _MEMBER)
    gone = old["superseded_by"].notna()
    if "retired" in old.columns:
        gone |= old["retired"].astype("boolean").fillna(False).astype(bool)
    living = old[~gone].sort_values(["start_at", "incident_id"])
    heirs = _heirs(_seeds(new, new_members), _seeds(living, old_members))
    heir = living["incident_id"].map(heirs)
    inherited = dict(
        reversed([*zip(heir.dropna(), living["incident_id"][heir.notna()], strict=True)])
    )
    ids = _final_ids(new["incident_id"], inherited, set(living["incident_id"]))
    found = _renamed(new, ids).assign(superseded_by=None, retired=False)
    successors = dict(zip(old["incident_id"], old["superseded_by"], strict=True))
    successors |= dict(zip(living["incident_id"], heir.map(ids), strict=True))
    kept = old[~old["incident_id"].isin(found["incident_id"])].sort_values("incident_id")
    alive = set(found["incident_id"])
    pointed = [_resolved(one, successors, alive) for one in kept["incident_id"]]
    kept = kept.assign(
        superseded_by=pd.Series(pointed, index=kept.index, dtype=object), retired=True
    )
    found = found.sort_values(["start_at", "incident_id"], ignore_index=True)
    members = _renamed(new_members, ids).sort_values(["incident_id", "at", "kind", "key"])
    return IncidentTables(
        _stacked(found, kept.reindex(columns=found.columns)), members.reset_index(drop=True)
    )


def _renamed(frame: pd.DataFrame, ids: dict[str, str]) -> pd.DataFrame:
    """The frame under other ids."""
    return frame.assign(incident_id=frame["incident_id"].astype(object).map(ids).astype(object))


def _stacked(found: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """The rows of both in the types of the first, nullable where the second does not know."""
    if kept.empty:
        return found
    if found.empty:
        return kept.reset_index(drop=True)
    rows = pd.concat([found.astype(object), kept.astype(object)], ignore_index=True)
    for name, dtype in found.dtypes.items():
        wider: Any = {"i": "Int64", "b": "boolean"}.get(dtype.kind, dtype)
        rows[name] = rows[name].astype(wider if rows[name].isna().any() else dtype)
    return rows


def _seeds(incidents: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """Seeds of these incidents with their cluster, earliest first."""
    seeds = members[members["role"] == "seed"].merge(
        incidents[["incident_id", "cluster"]], on="incident_id"
    )
    seeds = seeds.astype(dict.fromkeys(("cluster", "kind", "key"), object))  # also where empty
    return seeds.sort_values(["at", "kind", "key", "incident_id"]).reset_index(drop=True)


def _heirs(new: pd.DataFrame, old: pd.DataFrame) -> dict[str, str]:
    """New incident that holds the earliest surviving seed of each old one."""
    key = ["cluster", "kind", "key"]
    holders = new[[*key, "incident_id"]].rename(columns={"incident_id": "heir"})
    found = old.merge(holders.drop_duplicates(key), on=key, how="left")
    lost = np.flatnonzero(found["heir"].isna() & (found["kind"] == "health_event"))
    bursts = new[new["kind"] == "health_event"]
    at, holder = _grown(found.iloc[lost], bursts)
    heir = found["heir"].to_numpy(dtype=object).copy()
    heir[lost[at]] = bursts["incident_id"].to_numpy(dtype=object)[holder]
    found = found.assign(heir=heir)
    first = found[found["heir"].notna()].drop_duplicates("incident_id")
    return dict(zip(first["incident_id"], first["heir"], strict=True))


def _grown(lost: pd.DataFrame, bursts: pd.DataFrame) -> tuple[Ints, Ints]:
    """Old bursts and the first new one each of the same signal and node that holds their start."""
    columns = ["cluster", "node", "signal"]
    before, after = joint_codes(
        [lost[columns].astype(object), bursts[columns].astype(object)], columns
    )
    start = microseconds(lost["at"])
    left, right = overlaps(
        Spans(before, start, start, np.arange(len(lost))),
        Spans(
            after,
            microseconds(bursts["at"]),
            microseconds(bursts["end_at"]),
            np.arange(len(bursts)),
        ),
    )
    known = before[left] >= 0
    pairs = pd.DataFrame({"old": left[known], "new": right[known]})
    pairs = pairs.sort_values(["old", "new"]).drop_duplicates("old")
    return pairs["old"].to_numpy(), pairs["new"].to_numpy()


def _final_ids(fresh: pd.Series, inherited: dict[str, str], taken: set[str]) -> dict[str, str]:
    """Id of each new incident: inherited, else its own, else the next that is free."""
    found = dict(inherited)
    used = taken | set(inherited.values()) | (set(fresh) - set(inherited))
    for one in sorted(set(fresh) - set(inherited)):
        chosen = one
        while chosen in taken or (chosen != one and chosen in used):
            chosen = incident_id("", "", "after", chosen)
        used.add(chosen)
        found[one] = chosen
    return found


def _resolved(one: str, successors: dict[str, object], alive: set[str]) -> str | None:
    """The living incident at the end of a chain of supersession; None where it ends in none."""
    seen = {one}
    following = successors.get(one)
    while isinstance(following, str) and following not in alive:
        if following in seen:
            return None
        seen.add(following)
        following = successors.get(following)
    return following if isinstance(following, str) else None
