"""The report of one incident: what happened, why, what it hit, and what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.incidents.wording import NO_CAUSE
from app import questions
from app.components import glossary
from app.figures import numbers
from app.figures.failures import domains
from app.reports import content, coverage, incident_log, incident_tables, redaction
from app.reports.content import Drawing, Headline, Report, Section
from app.reports.timeline_svg import picture
from data.queries.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.components.glossary import Term
    from app.questions import Coverage, Incident
    from data.store import Store

AROUND = timedelta(days=1)
"""Coverage is told from this long before the incident to this long after it."""
MARKS = (
    "Filled: failures and critical events, which make it an incident. Ring: context. Diamond, dark "
    "bar: consequences. Pale bar: an attempt that ran."
)


def report(store: Store, incident_id: str, *, redact: bool = False) -> Report:
    """What happened here, why, what did it hit, and what now?"""
    names = redaction.names(store, redact=redact)
    found = names.incident(questions.incident(store, incident_id))
    row, cause = found.row, found.cause
    said = questions.said(store, f"incident:{row['incident_id']}")
    titles = {name: c.title for name, c in questions.taxonomy(store).causes.items()}
    held, headlines = _coverage(store, row), _headlines(row, found)
    evidence, *attempts = incident_tables.of(found, titles)
    made = Report(
        kind="incident",
        stem=f"incident-{row['incident_id']}",
        title=f"Incident {row['incident_id']}",
        period=numbers.period(row["start_at"], row["end_at"], "UTC"),
        filters=f"one incident of cluster {row['cluster']}, with all its attempts and events",
        answer=f"{row['summary']}.",
        summary=(f"{cause.owner[:1].upper()}{cause.owner[1:]}: {cause.action}",),
        headlines=headlines,
        notes=_notes(found, titles),
        sections=(
            Section("What happened when",
                    (Drawing("Timeline", MARKS, picture(found.timeline)), evidence)),
            incident_log.section(store, found.verdicts, names),
            Section("What it hit, and why", tuple(attempts)),
            Section("What people said",
                    (incident_tables.said([names.annotation(one) for one in said]),)),
            coverage.section(held),
        ),
        definitions=content.defined(headlines, ()),
        missing=held.missing,
        conf_level=None,
        synthetic=store.current.synthetic,
        basis=content.basis(store),
    )  # fmt: skip
    return replace(made, content_sha256=content.digest(made))


def _coverage(store: Store, row: Mapping[str, object]) -> Coverage:
    """What was collected around the incident."""
    around = Selection(
        cluster=str(row["cluster"]),
        from_at=row["start_at"].to_pydatetime() - AROUND,
        to_at=row["end_at"].to_pydatetime() + AROUND,
    )
    return questions.coverage(store, around)


def _notes(found: Incident, titles: Mapping[str, str]) -> tuple[str, ...]:
    """What must be known before the rest is read."""
    row, notes = found.row, []
    if found.asked_id != row["incident_id"]:
        notes.append(f"Incident {found.asked_id} was merged into this one.")
    if row["retired"]:
        notes.append(
            "Retired: with the records that are now in the store, its members are no incident any "
            "more. What follows is how it stood last."
        )
    if row["decided"]:
        notes.append(_decided(row, titles))
    if isinstance(row["note"], str):
        notes.append(f"Note: {row['note']}")
    return tuple(notes)


def _decided(row: Mapping[str, object], titles: Mapping[str, str]) -> str:
    """That a person decided, and what the evidence says of it."""
    derived = str(row["derived_cause"])
    if derived in NO_CAUSE:
        return "A person decided the cause; no evidence names one."
    if derived == row["cause"]:
        return "A person confirmed the cause that the evidence names."
    return f"A person decided the cause; the evidence names: {titles.get(derived, derived)}."


def _headlines(row: Mapping[str, object], found: Incident) -> tuple[Headline, ...]:
    """Cause, domain and confidence, then the blast radius."""
    loop = (
        (
            _fact(
                glossary.CRASH_LOOPS,
                f"{row['loop_failures']:,} failures in a row, {row['loop_requeues']:,} requeues",
            ),
        )
        if row["loop_failures"]
        else ()
    )
    return (
        Headline("Cause", found.cause.title, "", "", "The leading cause of its failed attempts."),
        Headline("Domain", domains.TITLES.get(str(row["domain"]), str(row["domain"])), "", "",
                 "Hardware, system software, user program, or unknown."),
        _fact(glossary.INCIDENT_CONFIDENCE, numbers.percent(found.confidence)),
        Headline("Status", str(row["status"]), "", "", glossary.OPEN_INCIDENTS.definition),
        _jobs(row),
        _fact(glossary.NODES_HIT, numbers.count(row["n_nodes"])),
        _fact(glossary.LOST_GPU_HOURS, lost(row)),
        _fact(glossary.UNMEASURED, numbers.count(row["n_unmeasured"])),
        *loop,
    )  # fmt: skip


def _fact(term: Term, value: str) -> Headline:
    return Headline(term.label, value, "", "", term.definition)


def _jobs(row: Mapping[str, object]) -> Headline:
    """Jobs hit, first and second order."""
    value = (
        f"{row['n_failed_jobs']:,} failed ({gpus(row['n_failed_gpus'])}), "
        f"{row['n_preempted_jobs']:,} preempted ({gpus(row['n_preempted_gpus'])})"
    )
    return _fact(glossary.BLAST_RADIUS, value)


def gpus(n: object) -> str:
    """A number of GPUs.

    >>> gpus(8), gpus(None)
    ('8 GPUs', 'GPUs unknown')
    """
    return "GPUs unknown" if pd.isna(n) else numbers.counted(int(n), "GPU")


def lost(row: Mapping[str, object]) -> str:
    """GPU-hours lost, with the part of preempted jobs."""
    total = row["lost_gpu_hours"]
    if pd.isna(total):
        return numbers.UNKNOWN
    second = row["second_order_gpu_seconds"]
    least = "at least " if row["n_unmeasured"] else ""
    if pd.isna(second) or not second:
        return f"{least}{numbers.number(total)}"
    part = numbers.number(second / 3600.0)
    return f"{least}{numbers.number(total)}, {part} of it second order"
