"""Things to do, a function a kind: what, why, what is at stake, and where the evidence is."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.evidence import of_events
from analytics.failures.mass_failures import WINDOW_MINUTES
from analytics.failures.precedence import weights
from analytics.fleet.coverage import silent_sources
from analytics.nodes.host_findings import host_findings
from analytics.training.stragglers.slowdown import STRAGGLING
from app.answers.efficiency import ledger_parts
from app.answers.failures import incidents, replay, verdicts
from app.answers.failures.mass import found_mass_failures
from app.answers.failures.node import no_job_known
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import coverage, names, risen
from app.answers.fleet.actions.action import HIDDEN, Action, period, recorded, target
from app.answers.fleet.ingests import STALE_HOURS
from app.answers.nodes import lemons
from app.answers.reliability import sight
from app.answers.training import fleet
from app.ask import FEW
from app.words import moments, numbers
from app.words.plain import in_a_sentence
from data.filters import Selection
from data.queries import collected, efficiency, hosts
from data.queries import incidents as incident_queries
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from analytics.nodes.host_findings import HostFinding, Told
    from app.ask import Ask
    from data.store import Store

REASONS = 2
"""Reasons told here; the node's page has all."""
SAVED = "that its absence saves in as many days as were looked at"
KINDS = 3
"""Kinds of events told here; the host's page has all."""
_STORED = "what is stored there or served from there"
_REACHED = "whoever reaches it over the network"
_STOPS = "all that runs there, as it can stop at any time"
AT_RISK = {
    "disk": _STORED, "filesystem_mount": "whoever works with files from there",
    "nic": _REACHED, "ib_link": _REACHED, "ethernet_link": _REACHED, "network": _REACHED,
    "host_memory": _STOPS, "cpu": _STOPS, "pcie": _STOPS, "operating_system": _STOPS,
}  # fmt: skip
"""Cause -> what is at risk where the host runs no job."""
NO_JOB_THERE = "not known: no job is known to have run there"
SERVED = "what this host serves"
Host = tuple[str | None, str]
LOST_BY_IT = "lost when it struck"
QUIET_DAYS = 7
"""Days without a record of an incident after which nothing of it is at stake, if its nodes are
back: what it lost is lost."""
QUIET = f"nothing now: no record of it for {QUIET_DAYS} days"
OVER = f"{QUIET}, and none of its nodes is out"
NOT_WATCHED = f"{QUIET}; whether its nodes are back is not known, no node events were collected"
AROUND = timedelta(minutes=WINDOW_MINUTES)
UNSEEN = "not known: nobody sees what it hides"
EXPLAINS = ("health_events.kernel", "health_events.health_check", "job_logs")
"""Of them, those that say why attempts failed."""


def of_lemons(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Nodes that are lemons, with what draining them saves; those where that may be nothing are to
    be watched."""
    for row in lemons.standing_out(ask, selection):
        saved = row["saved_gpu_hours"]
        known = saved is not None and saved.value is not None
        yield Action(
            "node",
            target("node", row["cluster"], row["node"]),
            what=_to_do(row),
            why="; ".join(row["reasons"][:REASONS]),
            stake=saved if known else None,
            stake_basis=SAVED if known else "no GPU-hours of its failures are known",
            page="node",
            named={"node": str(row["node"]), "cluster": str(row["cluster"])},
        )


def _to_do(row: Mapping[str, Any]) -> str:
    """Whether the node should leave, stay out or be watched."""
    if row["verdict"] != "lemon":
        return f"Watch {row['node']}"
    return f"Keep {row['node']} out" if row["is_out"] else f"Drain {row['node']}"


def needing(store: Store, selection: Selection) -> tuple[HostFinding, ...]:
    """Hosts without jobs that somebody should look at; faults of user programs are left out."""
    rows = hosts.warned(store, selection)
    site = load_site(store.root)
    cause = of_events(rows, weights(site.attribution.table, site.causes))["cause"]
    of_user = cause.map(lambda name: name is not None and site.causes.domain_of(name) == "user")
    rows = rows.assign(cause=cause, what=[_called(row) for row in rows.to_dict("records")])
    return host_findings(rows[~of_user.astype(bool)])


def of_hosts(ask: Ask, selection: Selection, told: Collection[Host] = ()) -> Iterator[Action]:
    """Hosts that need somebody, but those that another row tells.

    Nobody can say how many GPU-hours hang on one.
    """
    for host in ask(needing, selection):
        if (host.cluster, host.node) in told:
            continue
        first, more = host.told[0], len(host.told) - KINDS
        kinds = [_in_words(event) for event in host.told[:KINDS]]
        kinds += [f"{numbers.counted(more, 'other kind')} of events"] if more > 0 else []
        whose = "" if host.cluster is not None else "; cluster unknown"
        risk = AT_RISK.get(first.cause or "", SERVED)
        yield Action(
            "host",
            target("host", host.cluster or "", host.node),
            what=f"Look after host {host.node}: {first.what}",
            why=f"{'; '.join(kinds)}; at risk: {risk}{whose}; {no_job_known(ask, host.cluster)}",
            stake=None,
            stake_basis=NO_JOB_THERE,
            page="node",
            named={"node": host.node} | ({} if host.cluster is None else {"cluster": host.cluster}),
            hides=(3 if first.grave else 1, float(host.n_times)),
        )


def _in_words(event: Told) -> str:
    if event.n_times == 1:
        return f"{event.what} on {moments.minute(event.first_at)} UTC"
    since = f"{moments.minute(event.first_at)} to {moments.minute(event.last_at)} UTC"
    return f"{event.what} {numbers.counted(event.n_times, 'time')}, {since}"


def _called(row: dict[object, object]) -> str:
    for code, name in (("xid", "XID"), ("sxid", "SXid")):
        if row[code] == row[code] and row[code] is not None:
            return f"{name} {int(str(row[code]).partition('.')[0])}"
    return str(row["check_name"] or "event").replace("_", " ")


def of_incidents(
    ask: Ask, selection: Selection, *, told: Collection[Host] = ()
) -> Iterator[Action]:
    """Unresolved incidents: if there are very many, the largest and the latest.

    One that hit no job is left out where the hosts that it names have rows of their own (`told`).
    """
    rows = ask(incidents.rows, selection, incidents.Kind(), first="largest", limit=FEW)
    if len(rows) == FEW:
        latest = ask(incidents.rows, selection, incidents.Kind(), first="latest", limit=FEW)
        rows = pd.concat([rows, latest]).drop_duplicates("incident_id")
    elsewhere = [
        row["n_jobs"] == 0
        and bool(row["nodes"])
        and all((row["cluster"], node) in told for node in row["nodes"])
        for row in rows.to_dict("records")
    ]
    rows = rows[rows["status"].ne("resolved") & ~np.array(elsewhere, dtype=bool)]
    quiet = ask(incident_queries.quiet, rows["incident_id"].tolist())
    over = quiet[(quiet["quiet_days"] >= QUIET_DAYS) & (quiet["n_out"] == 0)]
    gone = set(over["incident_id"])
    watched = {cluster: ask(replay.collected, cluster) for cluster in rows["cluster"].unique()}
    seen, not_known = ask(sight.sight, selection), _not_known(ask)
    for row in rows.to_dict("records"):
        known = watched[row["cluster"]].hold_at(row["start_at"])
        yield _of_incident(
            row,
            over=(OVER if known else NOT_WATCHED) if row["incident_id"] in gone else None,
            jobs_known=not seen.of(row["cluster"]).jobs_unknown,
            not_known=not_known,
        )


def _not_known(ask: Ask) -> str:
    """Why GPU-hours at stake are not known."""
    if ask(efficiency.has_ledger):
        return "not known: no GPUs are stated, or no cause is known"
    return f"{ledger_parts.NOT_COMPUTED}: {ledger_parts.NOT_BUILT}"


def _of_incident(
    row: Mapping[Any, Any], *, over: str | None, jobs_known: bool, not_known: str
) -> Action:
    """An incident: what it lost is at stake until it is over, then nothing; `over` says why.

    Where no job of the time was recorded nobody knows what it hit; `not_known` says why what it
    lost is not.
    """
    n_jobs, hours = int(row["n_jobs"] or 0), row["lost_gpu_hours"]
    unseen = not jobs_known and not n_jobs
    hit = "whom it hit is not known" if unseen else f"{numbers.counted(n_jobs, 'job')} hit"
    why = f"{hit}, from {moments.minute(row['start_at'])} UTC"
    lost = None if hours is None or pd.isna(hours) or unseen else float(hours)
    stake = None if lost is None else recorded(lost, n_jobs)
    if over is not None and not unseen:
        stake = recorded(0.0, n_jobs)
        why += "; over" if lost is None else f"; over, {numbers.number(lost)} GPU-hours were lost"
    return Action(
        "incident",
        f"incident:{row['incident_id']}",
        what=f"Resolve {in_a_sentence(str(row['summary']).partition(';')[0])}",
        why=f"{why}; {row['status']}",
        stake=stake,
        stake_basis=over or (sight.NO_JOBS if unseen else LOST_BY_IT if stake else not_known),
        page="incident",
        named={"incident": str(row["incident_id"])},
        is_over=over is not None,
        hides=(0, 0.0 if over is None else lost or 0.0),
    )


def of_mass_failures(ask: Ask, selection: Selection, timezone: str) -> Iterator[Action]:
    """Many failures of one user, node or cause within minutes."""
    titles = ask(cause_titles)
    for row in ask(found_mass_failures, selection).to_dict("records"):
        cause = titles.get(row["cause"], row["cause"])
        who = cause if row["by"] == "cause" else f"{row['by']} {row[row['by']]}"
        minutes = numbers.counted(
            max(1, math.ceil((row["last_at"] - row["first_at"]).total_seconds() / 60.0)), "minute"
        )
        hours = None if pd.isna(row["held_gpu_hours"]) else float(row["held_gpu_hours"])
        yield Action(
            "mass_failure",
            target("mass_failure", row["key"]),
            what=f"{row['failures']:,} failures of {who} within {minutes}",
            why=f"of {row['of_failures']:,} in the period; {row['of_cause']:,} by {cause}; at "
            f"{moments.minute(row['first_at'])} UTC, in no incident",
            stake=None,
            stake_basis=f"not known; they held {numbers.number(hours)} GPU-hours",
            page="failures",
            named=period(row["first_at"] - AROUND, row["last_at"] + AROUND, timezone)
            | {"cluster": str(row["cluster"])},
            hides=(0, hours or 0.0),
        )


def of_causes(ask: Ask, selection: Selection, timezone: str) -> Iterator[Action]:
    """Causes that strike more often than before."""
    titles = ask(cause_titles)
    compared = ask(risen.compared, selection)
    before = "in the period of equal length before"
    if compared.halves:
        before = "in the earlier half of the records"
    for cause in compared.risen:
        title = titles.get(cause.cause, cause.cause)
        ratio = cause.ratio
        times = "were none" if ratio.value is None else f"were {cause.before:,}"
        rate = "" if ratio.value is None else f": {numbers.number(ratio.value)} times the rate"
        known = cause.stake_gpu_hours.value is not None
        yield Action(
            "cause",
            target("cause", selection.cluster or "", cause.cause),
            what=f"{title} rose",
            why=f"{cause.now:,} occurrences where {times} {before}{rate} "
            f"({numbers.interval(ratio)}), false discovery rate {numbers.percent(cause.q_value)}",
            stake=cause.stake_gpu_hours if known else None,
            stake_basis="beyond those expected" if known else _not_known(ask),
            page="failures",
            named=period(compared.split_at, compared.to_at, timezone) | {"domain": cause.domain},
        )


def of_sources(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Sources that stopped, or were never read."""
    known = ask(coverage.held, Selection(selection.cluster))
    for row in silent_sources(known).to_dict("records"):
        name, hides = HIDDEN.get(row["source"], (row["source"], "all that it would show since"))
        yield _source(
            (row["cluster"], row["source"]),
            what=f"No {name} since {numbers.day(row['last_day'])}",
            why=f"{row['cluster']}: other sources go on for "
            f"{numbers.counted(int(row['days_silent']), 'day')}; hidden: {hides}",
            hides=(1, row["days_silent"]),
        )
    if "jobs" not in known.with_records:
        return
    counts = ask(verdicts.summarised, selection)
    unexplained = counts.counted.unexplained
    homeless = {records.table for records in ask(names.without_cluster)}
    for source, (name, hides) in HIDDEN.items():
        if source not in (*known.with_records, *known.silent):
            of_cluster = " of a known cluster" if source.partition(".")[0] in homeless else ""
            many = numbers.counted(unexplained, "unexplained failure")
            failures = f" ({many})" if source in EXPLAINS and unexplained else ""
            yield _source(
                ("", source),
                what=f"Collect {name}{of_cluster}",
                why=f"none were ever read; hidden: {hides}{failures}",
                hides=(0, unexplained if source in EXPLAINS else 0.0),
            )


def of_collected(ask: Ask, selection: Selection, now: datetime) -> Iterator[Action]:
    """Sources of `faultline collect` of which nothing new comes."""
    for row in ask(collected.until, Selection(selection.cluster)).to_dict("records"):
        until = row["collected_until"]
        hours = None if pd.isna(until) else (now - until).total_seconds() / 3600.0
        failed = isinstance(row["error"], str)
        if failed or hours is None or hours >= STALE_HOURS:
            last = (
                "never collected"
                if hours is None
                else f"last collected {numbers.duration(hours)} ago"
            )
            yield _source(
                (row["cluster"], row["source"], "collect"),
                what=f"{row['source']} of {row['cluster']} was {last}",
                why=f"the last attempt failed: {row['error']}" if failed
                else "does `faultline collect` still run?",
                hides=(2, hours or 0.0),
            )  # fmt: skip


def _source(parts: tuple[str, ...], *, what: str, why: str, hides: tuple[int, float]) -> Action:
    return Action("source", target("source", *parts), what, why, None, UNSEEN, "data",
                  hides=hides)  # fmt: skip


def of_stragglers(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Traced runs that straggle, each job by its newest trace."""
    traces = ask(fleet.traces, selection)
    seen: set[tuple[str, str]] = set()
    for row in traces[traces["slowdown"] > STRAGGLING].to_dict("records"):
        job = None if pd.isna(row["job_id"]) else (str(row["cluster"]), str(row["job_id"]))
        if job in seen:
            continue
        if job is not None:
            seen.add(job)
        gpus, ratio = row["n_gpus"], row["wasted_ratio"]
        stake = None
        if not (pd.isna(gpus) or pd.isna(ratio)):
            stake = recorded(24.0 * float(ratio) * float(gpus), int(row["n_steps"]))
        what = f"job {job[1]}" if job else f"trace {row['name']}"
        cause = str(row["strongest_cause"]).lower()
        yield Action(
            "straggler",
            target("straggler", *(job or ("", str(row["trace_id"])))),
            what=f"Find what slows {what}"
            if cause == numbers.UNKNOWN
            else f"Fix {cause} of {what}",
            why=f"its steps take {numbers.number(row['slowdown'])} times the ideal "
            f"({numbers.gpu_count(gpus)})",
            stake=stake,
            stake_basis="a day that it trains" if stake else "no meta file states its GPUs",
            page="stragglers",
            named={"trace": str(row["trace"])},
        )
