"""The headline numbers of incidents, each with the incidents that it opens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.components import glossary, headline, incident_rows
from app.components.headline import Headline
from app.figures import numbers

if TYPE_CHECKING:
    from analytics.failures.incident_rate import IncidentSummary
    from app.components.scope import Scope


def of(summary: IncidentSummary, kind: dict[str, str | None], scope: Scope) -> list[Headline]:
    """How often, at what cost, how many need somebody, how many are loops."""
    opens = partial(incident_rows.dialog, scope, kind, total=summary.n_incidents)
    return [
        headline.of_rate(
            glossary.INCIDENTS_WITH_JOBS, summary.rate_per_1000_node_days, None, opens=opens
        ),
        Headline(glossary.LOST_GPU_HOURS, lost(summary), second_order(summary), opens),
        Headline(
            glossary.OPEN_INCIDENTS,
            numbers.count(summary.n_open),
            f"of {numbers.counted(summary.n_incidents, 'incident')}",
            partial(incident_rows.dialog, scope, kind | {"status": "open"}, total=summary.n_open),
        )
        if kind["status"] in (None, "open")
        else Headline(
            glossary.OPEN_INCIDENTS,
            numbers.count(summary.n_open),
            f"of {summary.n_incidents:,} {kind['status']}",
            opens,
        ),
        Headline(
            glossary.CRASH_LOOPS,
            numbers.count(summary.n_crash_loops),
            f"of {numbers.counted(summary.n_incidents, 'incident')}",
            partial(incident_rows.dialog, scope, kind, total=summary.n_crash_loops, loops=True),
        ),
    ]


def lost(summary: IncidentSummary) -> str:
    """GPU-hours lost; a lower bound where some attempts were not measured."""
    least = "at least " if summary.n_unmeasured else ""
    return f"{least}{numbers.number(summary.lost_gpu_hours)}"


def second_order(summary: IncidentSummary) -> str:
    """The part of preempted attempts, and what was not measured."""
    text = f"{numbers.number(summary.second_order_gpu_hours)} of it second order"
    if summary.n_unmeasured:
        text += f"; {numbers.counted(summary.n_unmeasured, 'attempt')} not measured"
    return text
