"""The report of one incident, a postmortem: what happened, why, what it cost, and who does what."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.answers.failures import incident, job, said
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import coverage
from app.reports.report import Report, Section, defined, rests_on
from app.words import numbers
from app.words.addresses import Place
from app.words.periods import Period
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.answers.content import Answer, Excerpt
    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names

KIND = {
    "metavar": "ID",
    "help": "of this incident; `faultline incidents` shows the ids",
    "where": "`faultline incidents` shows the ids",
    "placeholder": "Incident id, latest or largest",
    "remedy": "Type its id, or `latest` or `largest`. The page Incidents and this command list "
    "them:",
    "commands": ("faultline incidents --first largest --limit 10 --format table",),
    "filtered": False,
}
BEFORE_AND_AFTER = timedelta(days=1)
"""Coverage is told from this long before the incident to this long after it."""
MOST_ROWS = 500
"""Rows of a table that are printed."""
ATTEMPTS = 3
"""Failed attempts whose logs are quoted."""
AROUND = 4
"""Lines quoted before and after a line that counts."""
LAST = 12
"""Lines quoted of the end of a log in which none does."""
MOST_LINES = 60
"""Lines quoted of a log."""


def report(ask: Ask, request: Request, names: Names) -> Report:  # noqa: ARG001 - of all kinds
    """What happened here, why, what did it hit, and what now?"""
    answer, one = incident.answer(ask, request.about), ask(incident.incident, request.about)
    row, held, titles = one.row, _coverage(ask, one.row), ask(cause_titles)
    name = str(row["incident_id"])
    told = said.table(ask(said.of_incident, name), f"incident:{name}")
    seen, verdicts = one.members["kind"] != "preemption", one.verdicts.to_dict("records")
    evidence = incident.evidence(one.dated_members[seen]).first(MOST_ROWS)
    failed, *preempted = incident.hit(one, titles)
    causes = (failed.first(MOST_ROWS), incident.alternatives(verdicts, titles).first(MOST_ROWS))
    cost = tuple(table.first(MOST_ROWS) for table in preempted)
    headlines = (*incident.facts(one), *incident.blast_radius(one), *said.who(row))
    page = Place("incident", {"incident": name})
    return Report(
        kind="incident",
        stem=f"incident-{name}",
        title=f"Incident {name}",
        during=Period(row["start_at"], row["end_at"]),
        clusters=(str(row["cluster"]),),
        filters=f"one incident of cluster {row['cluster']}, with all its attempts and events",
        answer=answer.sentence,
        summary=(incident.who_acts(one),),
        headlines=headlines,
        notes=answer.notes,
        sections=(
            Section(
                "What happened when",
                (incident.timeline(one), answer.table("incident_phases"), evidence),
                shown_on=page,
            ),
            Section("Cause", causes, (f"{one.cause.title}.",)),
            log_section(ask, verdicts),
            Section("Cost", cost, incident.cost(one)),
            Section("What people said", (told,), said.in_words(row)),
            Section("What we do about it", (), (said.remedy(row),)),
            Section("Similar incidents", (answer.table("similar_incidents"),)),
            rests_on(held),
        ),
        definitions=defined(headlines, ()),
        missing=held.record["missing"],
        conf_level=None,
    )


def _coverage(ask: Ask, row: Mapping[str, Any]) -> Answer:
    """What was collected around the incident."""
    around = Selection(
        cluster=str(row["cluster"]),
        from_at=row["start_at"].to_pydatetime() - BEFORE_AND_AFTER,
        to_at=row["end_at"].to_pydatetime() + BEFORE_AND_AFTER,
    )
    return coverage.answer(ask, around)


def log_section(ask: Ask, verdicts: Sequence[Mapping[Any, Any]]) -> Section:
    """Excerpts of logs: of attempts whose log told something first, each group by time."""
    told_first = sorted(verdicts, key=lambda verdict: not job.lines_named(verdict["evidence"]))
    quoted = tuple(each for row in told_first[:ATTEMPTS] for each in _excerpts(ask, row))
    if len(verdicts) <= ATTEMPTS:
        return Section("What its jobs logged", quoted)
    of = numbers.counted(len(verdicts), "failed attempt")
    rest = "." if quoted else "; none is in the store."
    sentence = f"Looked at: the logs of {ATTEMPTS} of {of}{rest}"
    return Section("What its jobs logged", quoted, (sentence,))


def _excerpts(ask: Ask, verdict: Mapping[Any, Any]) -> tuple[Excerpt, ...]:
    """Of the files of the log of one attempt."""
    log = job.log_lines(ask, verdict["cluster"], verdict["attempt_key"])
    title = f"Log of job {verdict['job_id']}: "
    return job.excerpts(
        log, verdict["evidence"], title=title, around=AROUND, last=LAST, most=MOST_LINES
    )
