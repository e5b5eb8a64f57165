"""Incidents: failures, event bursts and outages that share node, place, run or cause in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import MINUTE, Spans, microseconds, overlaps, times
from analytics.failures.incidents import wording
from analytics.failures.incidents.blast_radius import accounts, leading_causes, nodes_hit
from analytics.failures.incidents.identity import new_ids
from analytics.failures.incidents.links import groups_of
from analytics.failures.incidents.members import Frames, Members, members_of
from analytics.failures.incidents.options import IncidentOptions
from analytics.failures.incidents.tables import MEMBER_COLUMNS, IncidentTables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def incidents(
    failures: pd.DataFrame,
    attempt_nodes: pd.DataFrame,
    bursts: pd.DataFrame,
    *,
    node_events: pd.DataFrame,
    nodes: pd.DataFrame,
    preempted: pd.DataFrame,
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
    failures : DataFrame
        One row a failed attempt: cluster, attempt_key, job_id, cause, domain, state, failed_at,
        start_at, node (of the verdict; null where not named), n_gpus; optional confidence,
        restarted_at, node_lost (counts as NODE_FAIL). All failures, the users' too: crash loops
        are found among them.
    attempt_nodes : DataFrame
        cluster, attempt_key, node; rows of attempts that do not seed are ignored.
    bursts : DataFrame
        As `bursts` returns them; optional cause and domain of each.
    node_events : DataFrame
        cluster, node, start_at, end_at, state, reason, planned (null counts as unplanned).
    nodes : DataFrame
        cluster, node, rack, pod (null where unknown); optional last_seen_at.
    preempted : DataFrame
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
    members = members_of(
        Frames(failures, attempt_nodes, bursts, node_events, nodes, preempted), chosen
    )
    group = groups_of(members, chosen)
    rows = _rows(members, group, chosen)
    found = _incidents(members, group, chosen)
    ids = new_ids(rows, found[["cluster", "domain"]])
    found = found.assign(incident_id=ids)
    found["summary"] = wording.summaries(found, chosen.titles)
    rows["incident_id"] = ids.reindex(rows["group"]).to_numpy()
    rows = rows.sort_values(["incident_id", "at", "kind", "key"]).reset_index(drop=True)
    found = found.sort_values(["start_at", "incident_id"]).reset_index(drop=True)
    first = ["incident_id", "cluster", "start_at", "end_at", "cause", "domain"]
    return IncidentTables(
        found[[*first, *(name for name in found.columns if name not in first)]],
        rows[list(MEMBER_COLUMNS)],
    )


def _incidents(members: Members, group: Ints, options: IncidentOptions) -> pd.DataFrame:
    """The row of each incident, indexed by group, without its id."""
    inside = group >= 0
    clusters = [*members.failures["cluster"], *members.severe["cluster"]]
    seeds = pd.DataFrame({"group": group[: members.n_seeds], "cluster": clusters})
    spans = pd.DataFrame(
        {"group": group[inside], "first": members.first[inside], "last": members.last[inside]}
    ).groupby("group")
    found = seeds.drop_duplicates("group").set_index("group").sort_index()
    found["start_at"] = times(spans["first"].min().to_numpy()).array
    found["end_at"] = times(spans["last"].max().to_numpy()).array
    found = found.join(leading_causes(members, group))
    found = found.join(accounts(members, group, options)).join(nodes_hit(members, group))
    n_failures = len(members.failures)
    events = pd.Series(members.severe["n"].to_numpy(dtype=np.int64))
    of_events = events.groupby(group[n_failures : members.n_seeds]).sum()
    found["n_events"] = of_events.reindex(found.index).fillna(0).astype(np.int64)
    return found.join(_loops(members, group, found.index)).assign(superseded_by=None, retired=False)


def _loops(members: Members, group: Ints, index: pd.Index[int]) -> pd.DataFrame:
    """Failures and requeues of the longest crash loop of each incident."""
    inside = members.loop >= 0
    if not inside.any():
        return pd.DataFrame({"loop_failures": 0, "loop_requeues": 0}, index=index)
    pairs = pd.DataFrame(
        {"group": group[: len(members.failures)][inside], "loop": members.loop[inside]}
    ).drop_duplicates()
    loops = pairs.merge(members.loops.loops, on="loop")
    loops = loops.sort_values(["n_failures", "n_requeues"], ascending=False)
    longest = loops.drop_duplicates("group").set_index("group")[["n_failures", "n_requeues"]]
    longest = longest.reindex(index).fillna(0).astype(np.int64)
    return longest.rename(columns={"n_failures": "loop_failures", "n_requeues": "loop_requeues"})


def _rows(members: Members, group: Ints, options: IncidentOptions) -> pd.DataFrame:
    """The rows of all members, with the group of each."""
    n_failures, n_seeds = len(members.failures), members.n_seeds
    outage = np.flatnonzero(group[n_seeds:] >= 0)
    of_outages, first = group[n_seeds:][outage], members.first[n_seeds:][outage]
    began = pd.Series(members.first[:n_seeds]).groupby(group[:n_seeds]).min()
    late = first >= began.reindex(of_outages).to_numpy()
    of_mild, mild = _context(members, group, options)
    parts = [
        _failure_rows(members, options).assign(group=group[:n_failures]),
        _burst_rows(members.severe, "seed").assign(group=group[n_failures:n_seeds]),
        _burst_rows(members.mild.iloc[mild], "context").assign(group=of_mild),
        _outage_rows(members.outages.iloc[outage], first, late).assign(group=of_outages),
        _preemption_rows(members.preempted).assign(group=group[members.preempted_by]),
    ]
    filled = [part for part in parts if len(part)] or parts[:1]
    return pd.concat([part.astype({"node": object, "severity": object}) for part in filled])


def _outage_rows(outages: pd.DataFrame, first: Ints, late: NDArray[np.bool_]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kind": "node_event",
            "key": _outage_keys(outages, first),
            "at": _utc(outages["start_at"]),
            "end_at": _utc(outages["end_at"]),
            "node": outages["node"].to_numpy(),
            "text": wording.outage_texts(outages),
            "severity": None,
            "role": np.where(late, "consequence", "context"),
            "signal": "outage",
        }
    )


def _preemption_rows(preempted: pd.DataFrame) -> pd.DataFrame:
    pairs = zip(preempted["job_id"], preempted["preempted_by"], strict=True)
    return pd.DataFrame(
        {
            "kind": "preemption",
            "key": preempted["attempt_key"].to_numpy(),
            "at": _utc(preempted["end_at"]),
            "end_at": _utc(preempted["end_at"]),
            "node": None,
            "text": [f"job {job} preempted by job {by}" for job, by in pairs],
            "severity": None,
            "role": "consequence",
            "signal": "preemption",
        }
    )


def _failure_rows(members: Members, options: IncidentOptions) -> pd.DataFrame:
    failures = members.failures
    return pd.DataFrame(
        {
            "kind": "failure",
            "key": failures["attempt_key"].to_numpy(),
            "at": _utc(failures["failed_at"]),
            "end_at": _utc(failures["failed_at"]),
            "node": failures["node"].to_numpy(),
            "text": wording.failure_texts(failures, options.titles),
            "severity": None,
            "role": "seed",
            "signal": failures["state"].to_numpy(),
        }
    )


def _burst_rows(bursts: pd.DataFrame, role: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kind": "health_event",
            "key": bursts["burst_id"].to_numpy(),
            "at": _utc(bursts["first_at"]),
            "end_at": _utc(bursts["last_at"]),
            "node": bursts["node"].to_numpy(),
            "text": wording.burst_texts(bursts),
            "severity": bursts["severity"].to_numpy(),
            "role": role,
            "signal": wording.signals(bursts),
        }
    )


def _context(members: Members, group: Ints, options: IncidentOptions) -> tuple[Ints, Ints]:
    """Incident and row of the milder bursts on a seed's node in its window, each pair once."""
    before, after = (
        int(minutes * MINUTE) for minutes in (options.before_minutes, options.after_minutes)
    )
    failed = members.occupied()
    severe = np.arange(len(members.failures), members.n_seeds)
    events = members.at(severe, members.place[severe])
    around = Spans(
        np.append(failed.place, events.place),
        np.append(failed.first, events.first) - before,
        np.append(failed.last, events.last) + after,
        np.append(failed.member, events.member),
    ).known()
    seed, mild = overlaps(around, members.mild_spans)
    pairs = pd.DataFrame(
        {"group": group[around.member[seed]], "mild": members.mild_spans.member[mild]}
    ).drop_duplicates()
    return pairs["group"].to_numpy(), pairs["mild"].to_numpy()


def _outage_keys(outages: pd.DataFrame, first: Ints) -> list[str]:
    """Node and start, which with the cluster are the key of an outage."""
    starts = times(first).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [f"{node}@{start}" for node, start in zip(outages["node"], starts, strict=True)]


def _utc(column: pd.Series) -> pd.Series:
    """Times of one kind, whatever the query gave."""
    return times(microseconds(column))
