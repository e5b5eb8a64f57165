"""What an incident hit and cost: jobs, nodes, GPUs, lost GPU time; and what led it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from analytics.failures.columns import MINUTE, NEVER, SECOND, microseconds
from analytics.failures.incidents.wording import NO_CAUSE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.failures.incidents.members import Members
    from analytics.failures.incidents.options import IncidentOptions

    Ints = NDArray[np.int64]

PROXIMATE = ("nccl_timeout", "nccl_remote_error", "node_lost", "hardware", "software")
"""Causes behind which another one stands, or that name no more than a domain."""

_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def lost_gpu_seconds(
    start_at: pd.Series, end_at: pd.Series, n_gpus: pd.Series, *, lost_minutes: float = 30.0
) -> pd.Series:
    """GPU-seconds of work that attempts lost when they ended, until checkpoints are measured.

    .. math:: \\min(t_{end} - t_{start},\\; 30\\ \\mathrm{min}) \\times n_{GPU}

    the mean loss with hourly checkpoints, and all of a shorter run.

    Parameters
    ----------
    start_at, end_at : Series
        Of each attempt, UTC.
    n_gpus : Series
        GPUs of each; 0 loses nothing.
    lost_minutes : float
        Half the interval between checkpoints, minutes.

    Returns
    -------
    Series of Int64
        Whole GPU-seconds; null where start, end or GPUs are unknown or the end is before the
        start.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, Figure 8 and the assumption stated with it.

    Examples
    --------
    >>> at = pd.to_datetime(pd.Series(["2026-01-01T00:00Z"] * 2))
    >>> end = at + pd.to_timedelta(pd.Series([600, 7200]), unit="s")
    >>> lost_gpu_seconds(at, end, pd.Series([8, 8])).tolist()
    [4800, 14400]
    """
    start, end = microseconds(start_at), microseconds(end_at)
    gpus = pd.to_numeric(n_gpus).to_numpy(dtype=float, na_value=np.nan)
    known = (start != NEVER) & (end != NEVER) & (end >= start) & (gpus >= 0)
    ran = np.where(known, end - np.where(known, start, end), 0)
    seconds = np.minimum(ran, int(lost_minutes * MINUTE)) * np.where(known, gpus, 0).astype(
        np.int64
    )
    return pd.Series(seconds // SECOND, dtype="Int64").where(pd.Series(known))


def accounts(members: Members, group: Ints, options: IncidentOptions) -> pd.DataFrame:
    """Of each incident, indexed by group: jobs, attempts, GPUs and what they lost."""
    failures, aside = members.failures, members.preempted
    of_aside = group[members.preempted_by]
    failed = _attempts(failures, "failed_at", group[: len(failures)], options)
    second = _attempts(aside, "end_at", of_aside, options)
    rows = pd.concat([failed, second], ignore_index=True) if len(second) else failed
    found = pd.DataFrame({"group": np.unique(group[: members.n_seeds])}).set_index("group")
    for name, part in (("", rows), ("failed_", failed), ("preempted_", second)):
        if part.empty:
            found[[f"n_{name}jobs", f"n_{name}gpus"]] = np.nan
            continue
        jobs = part.groupby(["group", "job"])["n_gpus"].max().groupby("group")
        found[f"n_{name}jobs"] = jobs.size()
        found[f"n_{name}gpus"] = jobs.sum(min_count=1)
    by_group = rows.groupby("group")
    found["n_failures"] = failed.groupby("group").size()
    found["n_preempted"] = second.groupby("group").size()
    found["lost_gpu_seconds"] = by_group["lost"].sum(min_count=1)
    found["second_order_gpu_seconds"] = second.groupby("group")["lost"].sum(min_count=1)
    found["n_unmeasured"] = by_group["unmeasured"].sum()
    return _filled(found)


def _attempts(
    attempts: pd.DataFrame, end: str, group: Ints, options: IncidentOptions
) -> pd.DataFrame:
    """Incident, job, GPUs and loss of attempts; a job without an id is its attempt."""
    job = attempts["job_id"].astype(object)
    lost = lost_gpu_seconds(
        attempts["start_at"], attempts[end], attempts["n_gpus"], lost_minutes=options.lost_minutes
    )
    gpus = pd.to_numeric(attempts["n_gpus"]).to_numpy(dtype=float, na_value=np.nan)
    return pd.DataFrame(
        {
            "group": group,
            "job": job.where(job.notna(), attempts["attempt_key"]).astype(str).to_numpy(),
            "n_gpus": pd.Series(gpus).astype("Int64"),
            "lost": lost,
            "unmeasured": lost.isna(),
        }
    )


def _filled(found: pd.DataFrame) -> pd.DataFrame:
    """Counts of nothing are 0; GPUs and losses are 0 where no attempt was hit, else unknown."""
    for name in ("", "failed_", "preempted_"):
        found[f"n_{name}jobs"] = found[f"n_{name}jobs"].fillna(0).astype(np.int64)
        nothing = found[f"n_{name}jobs"] == 0
        found[f"n_{name}gpus"] = found[f"n_{name}gpus"].astype("Int64").mask(nothing, 0)
    for name in ("n_failures", "n_preempted", "n_unmeasured"):
        found[name] = found[name].fillna(0).astype(np.int64)
    for name, n in (("lost_gpu_seconds", "n_jobs"), ("second_order_gpu_seconds", "n_preempted")):
        found[name] = found[name].astype("Int64").mask(found[n] == 0, 0)
    return found


def leading_causes(members: Members, group: Ints) -> pd.DataFrame:
    """Cause and domain that lead each incident, indexed by group.

    The cause on which the verdicts of its failures lay most weight: the sum of their confidence
    (1 each where there is none). A cause that names something comes before one behind which
    another stands (`PROXIMATE`), and that before none; so where no verdict names a cause, the
    earliest critical signal leads. At equal weight the cause seen first leads, a signal included.
    """
    failures, severe = members.failures, members.severe
    confidence = pd.Series(1.0, index=failures.index)
    if "confidence" in failures.columns:
        confidence = (
            pd.to_numeric(failures["confidence"]).astype(float).fillna(0.01).clip(lower=0.01)
        )
    nothing = pd.Series([None] * len(severe), index=severe.index, dtype=object)
    seeds = pd.DataFrame(
        {
            "group": group[: members.n_seeds],
            "cause": [*failures["cause"], *severe.get("cause", nothing)],
            "domain": [*failures["domain"], *severe.get("domain", nothing)],
            "weight": np.append(confidence.to_numpy(), np.zeros(len(severe))),
            "at": members.first[: members.n_seeds],
        }
    )
    seeds["cause"] = seeds["cause"].astype(object).where(seeds["cause"].notna(), "unknown")
    seeds["tier"] = np.where(
        seeds["cause"].isin(NO_CAUSE), 0, np.where(seeds["cause"].isin(PROXIMATE), 1, 2)
    )
    named = seeds.sort_values(["weight", "at", "domain"], ascending=[False, True, True])
    causes = named.groupby(["group", "cause"], as_index=False).agg(
        tier=("tier", "first"),
        weight=("weight", "sum"),
        at=("at", "min"),
        domain=("domain", "first"),
    )
    causes["weight"] = causes["weight"].round(6)
    causes = causes.sort_values(
        ["group", "tier", "weight", "at", "cause"], ascending=[True, False, False, True, True]
    )
    found = causes.drop_duplicates("group").set_index("group")[["cause", "domain"]]
    found["domain"] = found["domain"].astype(object).where(found["domain"].notna(), "unknown")
    return found


def nodes_hit(members: Members, group: Ints) -> pd.DataFrame:
    """Nodes of each incident, indexed by group: nodes, nodes_named and n_nodes.

    `nodes` are those that a verdict or a critical event names, else those of outages and context,
    else those of the attempts, and then `nodes_named` is false. `n_nodes` counts all of them.
    """
    rank = np.where(np.arange(len(members.place)) < members.n_seeds, 2, 1)
    named = pd.DataFrame({"group": group, "place": members.place, "rank": rank})
    failure, place = members.of_attempts
    taken = pd.DataFrame({"group": group[failure], "place": place, "rank": 0})
    rows = pd.concat([named, taken], ignore_index=True)
    rows = rows[(rows["place"] >= 0) & (rows["group"] >= 0)]
    rows = rows.sort_values("rank", ascending=False).drop_duplicates(["group", "place"])
    total = rows.groupby("group").size()
    shown = rows[rows["rank"] == rows.groupby("group")["rank"].transform("max")]
    shown = shown.assign(node=members.names[shown["place"].to_numpy()])
    shown = shown.sort_values(["group", "node"])
    found = pd.DataFrame({"group": np.unique(group[: members.n_seeds])}).set_index("group")
    names, groups = shown["node"].tolist(), shown["group"].to_numpy()
    begins, ends = (np.searchsorted(groups, found.index, side).tolist() for side in _SIDES)
    found["nodes"] = [tuple(names[a:b]) for a, b in zip(begins, ends, strict=True)]
    found["nodes_named"] = found.index.isin(shown.loc[shown["rank"] > 0, "group"])
    found["n_nodes"] = total.reindex(found.index).fillna(0).astype(np.int64)
    return found
