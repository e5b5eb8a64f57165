"""The report of one node: outages, health events, failures, incidents, and its jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from app import questions
from app.components import glossary
from app.figures import numbers
from app.reports import content, coverage, incident_tables, node_tables, redaction
from app.reports.content import Drawing, Headline, Report, Section
from app.reports.node_timeline import timeline
from app.reports.timeline_svg import picture

if TYPE_CHECKING:
    from app.components.glossary import Term
    from app.questions import Node
    from data.queries.selection import Selection
    from data.store import Store

MARKS = (
    "Bars: times out of service. Filled: attempts that this node ended, critical and fatal events. "
    "Ring: other events. Diamond: attempts that failed for another reason, tickets."
)


def report(store: Store, name: str, selection: Selection, *, redact: bool = False) -> Report:
    """What happened on this node in the period, and what did it end?"""
    names = redaction.names(store, redact=redact)
    found = names.node(questions.node(store, name, selection, cluster=selection.cluster))
    titles = {key: cause.title for key, cause in questions.taxonomy(store).causes.items()}
    here = replace(selection, cluster=found.cluster)
    rows = questions.incidents_of_node(store, found.cluster, name)
    incidents = _in_period(rows, selection)
    said = questions.said(store, f"node:{found.cluster}/{name}")
    held, headlines = questions.coverage(store, here), _headlines(found, incidents)
    made = Report(
        kind="node",
        stem=f"node-{content.file_name(name)}",
        title=f"Node {name}",
        period=numbers.period(selection.from_at, selection.to_at, "UTC"),
        filters=f"node {name} of cluster {found.cluster}, all jobs",
        answer=node_tables.answer(found),
        summary=_summary(found, incidents),
        headlines=headlines,
        notes=node_tables.limits(found),
        sections=(
            Section("What happened when", _drawn(found, selection)),
            Section("Incidents", (node_tables.incidents(incidents),)),
            Section("Failed attempts", (node_tables.failed(found, titles),)),
            Section("Health and service", (
                node_tables.outages(found), node_tables.events(found), node_tables.tickets(found),
            )),
            Section("What it is", (node_tables.facts(found),)),
            Section("What people said", (
                incident_tables.said([names.annotation(one) for one in said]),
            )),
            coverage.section(held, selection.from_at, selection.to_at),
        ),
        definitions=content.defined(headlines, glossary.DOMAINS),
        missing=held.missing,
        conf_level=None,
        synthetic=store.current.synthetic,
        basis=content.basis(store),
    )  # fmt: skip
    return replace(made, content_sha256=content.digest(made))


def _drawn(node: Node, selection: Selection) -> tuple[Drawing, ...]:
    """The timeline, where there is anything on it."""
    found = timeline(node, selection)
    return () if found is None else (Drawing("Timeline", MARKS, picture(found, began=False)),)


def _in_period(rows: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Incidents that touch the period."""
    kept = pd.Series(True, index=rows.index)
    if selection.from_at is not None:
        kept &= rows["end_at"] >= pd.Timestamp(selection.from_at)
    if selection.to_at is not None:
        kept &= rows["start_at"] < pd.Timestamp(selection.to_at)
    return rows[kept]


def _summary(node: Node, incidents: pd.DataFrame) -> tuple[str, ...]:
    """What ran here, what failed, and what is unknown of it."""
    ran, failed = len(node.attempts), len(node.failed)
    said = [f"{numbers.counted(ran, 'attempt')} ran here, {failed:,} of them failed."]
    unknown = int(node.failed["domain"].eq("unknown").sum())
    if unknown:
        verb = "has" if unknown == 1 else "have"
        said.append(f"{unknown:,} of these {verb} no evidence of a cause.")
    if len(incidents):
        lost = incident_tables.known(incidents["lost_gpu_hours"].sum(min_count=1))
        least = "at least " if lost is not None and incidents["n_unmeasured"].any() else ""
        said.append(
            f"{numbers.counted(len(incidents), 'incident')} of the period "
            f"{'names' if len(incidents) == 1 else 'name'} this node, with "
            f"{least}{numbers.number(lost)} GPU-hours lost on all nodes hit."
        )
    status = node.said.loc[node.said["field"].eq("status"), "value"].tolist()
    return (*said, *(f"Its status is {one}." for one in status))


def _headlines(node: Node, incidents: pd.DataFrame) -> tuple[Headline, ...]:
    """The numbers of the report's head."""
    n_open = int(node.tickets["end_at"].isna().sum())
    return (
        _count(glossary.NODE_OUTAGES, len(node.outages), f"{len(node.planned):,} planned"),
        _count(glossary.NODE_EVENTS, len(node.urgent),
               f"of {numbers.counted(len(node.events), 'health event')}"),
        _count(glossary.NODE_FAILURES, len(node.failed_here),
               f"of {len(node.failed):,} failed, {len(node.attempts):,} ran here"),
        _count(glossary.NODE_INCIDENTS, len(incidents), ""),
        _count(glossary.NODE_TICKETS, len(node.tickets), f"{n_open:,} open"),
    )  # fmt: skip


def _count(term: Term, n: int, of: str) -> Headline:
    return Headline(term.label, numbers.count(n), of, "", term.definition, n)
