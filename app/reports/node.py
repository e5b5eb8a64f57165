"""The report of one node: outages, health events, failures, incidents, and its jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from app.answers.content import Chart
from app.answers.failures import node, said
from app.answers.fleet import coverage
from app.reports.report import Report, Section, defined, rests_on
from app.words import numbers
from app.words.addresses import Place
from app.words.periods import Period

if TYPE_CHECKING:
    from analytics.failures.node_history import Node
    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names
    from data.filters import Selection

KIND = {
    "metavar": "NAME",
    "help": "of this node",
    "where": "name the node",
    "placeholder": "Node, e.g. gpu0012",
    "remedy": "Type its name, as the scheduler writes it.",
}
MARKS = (
    "Bars: times out of service. Filled: attempts that this node ended, critical and fatal events. "
    "Ring: other events. Diamond: attempts that failed for another reason, tickets."
)
MOST_ROWS = 100
"""Rows of a table that are printed."""


def report(ask: Ask, request: Request, names: Names) -> Report:  # noqa: ARG001 - of all kinds
    """What happened on this node in the period, and what did it end?"""
    selection = request.selection
    answer, one = (
        node.answer(ask, request.about, selection),
        ask(node.node, request.about, selection),
    )
    name = one.node
    failed = answer.table("failed_attempts").first(MOST_ROWS)
    named = node.in_period(ask(node.named_in, one.cluster, name), selection)
    target = f"node:{one.cluster}/{name}"
    told = said.table(ask(said.history, target), target)
    held = coverage.answer(ask, replace(selection, cluster=one.cluster))
    service = (node.outages(one), node.urgent_events(one), node.tickets(one))
    return Report(
        kind="node",
        stem=f"node-{name}",
        title=f"Node {name}",
        during=Period(selection.from_at, selection.to_at, request.timezone),
        clusters=() if one.cluster is None else (one.cluster,),
        filters=f"node {name} of {node.whose(one)}, all jobs",
        answer=answer.sentence,
        summary=_summary(one, named, node.without_jobs(ask, one)),
        headlines=answer.numbers,
        notes=answer.notes,
        sections=(
            Section("What happened when", _drawn(one, selection), shown_on=_page(one)),
            *(Section(verdict.title, (verdict,)) for verdict in answer.tables("lemon")),
            Section("Incidents", (answer.table("incidents").first(MOST_ROWS),)),
            Section("Failed attempts", (failed,)),
            Section("Health and service", tuple(table.first(MOST_ROWS) for table in service)),
            Section("What it is", (node.facts(one).first(MOST_ROWS),)),
            Section("What people said", (told,)),
            rests_on(held),
        ),
        definitions=defined(answer.numbers, answer.terms),
        missing=held.record["missing"],
        conf_level=None,
    )


def _page(one: Node) -> Place:
    """Its page."""
    named = {} if one.cluster is None else {"cluster": one.cluster}
    return Place("node", {"node": one.node} | named)


def _drawn(one: Node, selection: Selection) -> tuple[Chart, ...]:
    """The timeline, where there is anything on it."""
    lanes = one.timeline(selection.from_at, selection.to_at)
    if lanes is None:
        return ()
    options = {"began": False}
    return (
        Chart("failures.timeline", "Timeline", MARKS, (lanes,), options=options, captioned=True),
    )


def _summary(one: Node, named: pd.DataFrame, without: str | None) -> tuple[str, ...]:
    """What ran here, what failed, and what is unknown of it; `without`: why no job is known."""
    ran, failed = len(one.attempts), len(one.failed)
    sentences = [f"{numbers.counted(ran, 'attempt')} ran here, {failed:,} of them failed."]
    if not ran:
        sentences = ["No attempt is recorded here in the period."]
    if without is not None:
        sentences = [f"{without[:1].upper()}{without[1:]}."]
    if one.n_unknown:
        verb = "has" if one.n_unknown == 1 else "have"
        sentences.append(f"{one.n_unknown:,} of these {verb} no evidence of a cause.")
    if len(named):
        total = named["lost_gpu_hours"].sum(min_count=1)
        lost = None if pd.isna(total) else float(total)
        least = "at least " if lost is not None and named["n_unmeasured"].any() else ""
        sentences.append(
            f"{numbers.counted(len(named), 'incident')} of the period "
            f"{'names' if len(named) == 1 else 'name'} this node, with "
            f"{least}{numbers.number(lost)} GPU-hours lost on all nodes hit."
        )
    return (*sentences, *(f"Its status is {status}." for status in one.status))
