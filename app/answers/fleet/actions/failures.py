"""Open incidents, mass failures that nobody explained, and causes that rose."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.mass_failures import BY, WINDOW_MINUTES, mass_failures
from app.answers.failures import incidents
from app.answers.failures.replay import collected
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import risen
from app.answers.fleet.actions.action import Action, recorded, target
from app.answers.reliability import sight
from app.ask import FEW
from app.words import moments, numbers
from app.words.periods import custom_period
from data.queries import incidents as incident_queries
from data.queries import occurrences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

BY_RULE = "by the 30-minute rule"
QUIET_DAYS = 7
"""Days without a record of an incident after which nothing of it is at stake, if its nodes are
back: what it lost is lost."""
QUIET = f"nothing now: no record of it for {QUIET_DAYS} days"
OVER = f"{QUIET}, and none of its nodes is out"
NOT_WATCHED = f"{QUIET}; whether its nodes are back is not known, no node events were collected"
AROUND = timedelta(minutes=WINDOW_MINUTES)


def of_incidents(
    ask: Ask, selection: Selection, *, told: Collection[tuple[str | None, str]] = ()
) -> Iterator[Action]:
    """Incidents that nobody has resolved: of very many the largest and the latest.

    One that hit no job is left out where the hosts that it names have rows of their own (`told`).
    """
    each = [
        ask(incidents.rows, selection, incidents.Kind(), first=first, limit=FEW)
        for first in ("largest", "latest")
    ]
    rows = pd.concat(each).drop_duplicates("incident_id")
    rows = rows[(rows["status"] != "resolved") & ~_told(rows, told)]
    quiet = ask(incident_queries.quiet, rows["incident_id"].tolist())
    over = quiet[(quiet["quiet_days"] >= QUIET_DAYS) & (quiet["n_out"] == 0)]
    gone = set(over["incident_id"])
    watched = {cluster: ask(collected, cluster) for cluster in rows["cluster"].unique()}
    seen = ask(sight.sight, selection)
    for row in rows.to_dict("records"):
        known = watched[row["cluster"]].hold_at(row["start_at"])
        yield _of_incident(
            row,
            over=(OVER if known else NOT_WATCHED) if row["incident_id"] in gone else None,
            jobs_known=not seen.of(row["cluster"]).jobs_unknown,
        )


def _told(rows: pd.DataFrame, told: Collection[tuple[str | None, str]]) -> pd.Series:
    """Which incidents hit no job, and name only hosts of other rows."""
    hosts = [
        bool(nodes) and all((cluster, node) in told for node in nodes)
        for cluster, nodes in zip(rows["cluster"], rows["nodes"], strict=True)
    ]
    return rows["n_jobs"].eq(0) & pd.Series(hosts, index=rows.index, dtype=bool)


def _of_incident(row: Mapping[Any, Any], *, over: str | None, jobs_known: bool) -> Action:
    """An incident: what it lost is at stake until it is over, then nothing; `over` says why.

    Where no job of the time was recorded nobody knows what it hit.
    """
    n_jobs, hours = int(row["n_jobs"] or 0), row["lost_gpu_hours"]
    unseen = not jobs_known and not n_jobs
    hit = "whom it hit is not known" if unseen else f"{numbers.counted(n_jobs, 'job')} hit"
    why = f"{hit}, from {moments.minute(row['start_at'])} UTC"
    lost = None if pd.isna(hours) or unseen else float(hours)
    stake = None if lost is None else recorded(lost, n_jobs)
    basis = sight.NO_JOBS if unseen else BY_RULE
    if over is not None and unseen:
        basis = over
    elif over is not None:
        stake, basis = recorded(0.0, n_jobs), over
        why += f"; over, {numbers.number(lost)} GPU-hours were lost"
    return Action(
        "incident",
        f"incident:{row['incident_id']}",
        what=str(row["summary"]).partition(";")[0],
        why=f"{why}; {row['status']}",
        stake=stake,
        stake_basis=basis,
        page="incident",
        named={"incident": str(row["incident_id"])},
        is_over=over is not None,
        hides=(0, lost or 0.0) if over is not None else (0, 0.0),
    )


def found_mass_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Mass failures that nobody explained: who, where or what under its own name, and a key."""
    found = mass_failures(occurrences.unexplained_failures(store, selection))
    rows = [
        asdict(each)
        | {"key": each.key}
        | {by: each.name if by == each.by else None for by in BY if by != "cause"}
        for each in found
    ]
    names = ("cluster", "by", *BY, "first_at", "last_at", "failures", "of_failures", "of_cause",
             "rule_gpu_hours", "key")  # fmt: skip
    return pd.DataFrame(rows, columns=list(names))


def of_mass_failures(ask: Ask, selection: Selection, timezone: str) -> Iterator[Action]:
    """Many failures of one user, node or cause within minutes."""
    titles = ask(cause_titles)
    for row in ask(found_mass_failures, selection).to_dict("records"):
        cause = titles.get(row["cause"], row["cause"])
        who = cause if row["by"] == "cause" else f"{row['by']} {row[row['by']]}"
        minutes = numbers.counted(
            max(1, math.ceil((row["last_at"] - row["first_at"]).total_seconds() / 60.0)), "minute"
        )
        hours = row["rule_gpu_hours"]
        yield Action(
            "mass_failure",
            target("mass_failure", row["key"]),
            what=f"{row['failures']:,} failures of {who} within {minutes}",
            why=f"of {row['of_failures']:,} in the period; {row['of_cause']:,} by {cause}; at "
            f"{moments.minute(row['first_at'])} UTC, in no incident",
            stake=None if pd.isna(hours) else recorded(float(hours), int(row["failures"])),
            stake_basis=BY_RULE if not pd.isna(hours) else "no GPUs are stated",
            page="failures",
            named=period(row["first_at"] - AROUND, row["last_at"] + AROUND, timezone)
            | {"cluster": str(row["cluster"])},
        )


def of_causes(ask: Ask, selection: Selection, timezone: str) -> Iterator[Action]:
    """Causes that strike more often than before."""
    titles = ask(cause_titles)
    compared = ask(risen.compared, selection)
    for each in compared.risen:
        title = titles.get(each.cause, each.cause)
        ratio = each.ratio
        times = "were none" if ratio.value is None else f"were {each.before:,}"
        rate = "" if ratio.value is None else f": {numbers.number(ratio.value)} times the rate"
        known = each.stake_gpu_hours.value is not None
        yield Action(
            "cause",
            target("cause", selection.cluster or "", each.cause),
            what=f"{title} rose",
            why=f"{each.now:,} occurrences where {times} {compared.before_in_words}{rate} "
            f"({numbers.interval(ratio)}), false discovery rate {numbers.percent(each.q_value)}",
            stake=each.stake_gpu_hours if known else None,
            stake_basis="beyond those expected" if known else "no GPUs are stated",
            page="failures",
            named=period(compared.split_at, compared.to_at, timezone) | {"domain": each.domain},
        )


def period(from_at: datetime | None, to_at: datetime | None, timezone: str) -> dict[str, str]:
    """A period as an address names it."""
    if from_at is None or to_at is None:
        return {}
    first, last = (pd.Timestamp(at).tz_convert(timezone) for at in (from_at, to_at))
    return custom_period(first, last)
