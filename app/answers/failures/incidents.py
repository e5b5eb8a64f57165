"""What happened, and what needs me?"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin

from analytics.estimate import Estimate
from analytics.failures.incident_rate import IncidentSummary, incident_summary
from analytics.frames import DEFINITION
from app.answers.columns import columns
from app.answers.content import (
    Answer,
    Block,
    Chart,
    Missing,
    Number,
    Part,
    Table,
    composed,
    estimated,
)
from app.answers.described import Rows, field, sheet_of
from app.answers.efficiency import ledger, ledger_parts
from app.answers.failures.taxonomy import named, taxonomy
from app.answers.reliability import detection, mttf, sight
from app.ask import EVERYTHING, FEW
from app.words import domains, numbers, terms
from app.words.cells import Column
from app.words.glossary import of_failures
from data.queries import detection as detection_queries
from data.queries import incidents as incident_queries
from data.queries import reliability as reliability_queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analytics.efficiency.goodput import GoodputLedger
    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store


OF_LEDGER = ("lost_gpu_hours", "second_order_gpu_hours", "n_unmeasured")
"""Columns that the ledger says."""
OF_JOBS = ("n_with_jobs", "n_crash_loops")
"""Keys of the JSON that are unknown where no job was recorded."""
WHAT = "Whether there was an incident"
SHOWN = (
    terms.INCIDENTS_WITH_JOBS, terms.LOST_TO_FAILURES, terms.OPEN_INCIDENTS, terms.CRASH_LOOPS,
)  # fmt: skip
"""Headline numbers."""
NO_COST = "the ledger does not say: build it by `faultline ledger`, choose no status and nobody"
CARRIERS = ("health_events.", "node_events")
"""Sources without which an incident is a failure alone."""
_SUMMARY, _LOST = columns("summary", "lost_gpu_hours")
COLUMNS = (
    *columns("incident_id"),
    Column("start_at", "Began", "time", "UTC"),
    replace(_SUMMARY, link="incident"),
    replace(_LOST, help=terms.LOST_IN_INCIDENT.definition),
    Column("n_jobs", "Jobs hit", "count"),
    *columns("domain", "cause", "status"),
    Column("owner", "Owner", none="none", wide=True),
    Column("assignee", "Assignee", none="unassigned", wide=True),
    Column("n_failed_jobs", "Failed jobs", "count", wide=True),
    Column("n_preempted_jobs", "Preempted jobs", "count", wide=True),
    *columns("n_gpus", "n_nodes", wide=("n_gpus", "n_nodes")),
    Column("nodes", "Nodes with evidence", none="none with evidence", wide=True),
    Column("n_events", "Events", "count", wide=True),
    Column("loop_failures", "Failures in a row", "count", none="no crash loop", wide=True),
    Column("loop_requeues", "Requeues between", "count", none="no crash loop", wide=True),
    Column("second_order_gpu_hours", "Lost by preempted jobs", "number", "GPU-h", wide=True),
    Column("n_unmeasured", "Attempts of unknown loss", "count", wide=True),
    Column("end_at", "Ended", "time", "UTC", wide=True),
    Column("note", "Note", none="none", wide=True),
    Column("remedy", "What we do about it", none="not said yet", wide=True),
    *(
        column
        for what, name in (("acknowledge", "Acknowledged"), ("resolve", "Resolved"))
        for column in (
            Column(f"{what}d_at", name, "time", "UTC", none="not yet", wide=True),
            Column(f"{what}d_by", f"{name} by", none="not yet", wide=True),
            Column(f"hours_to_{what}", f"{name} after", "hours", none="not known", wide=True),
        )
    ),
    *columns("cluster", wide=("cluster",)),
)


NOT_DERIVED = Missing(
    "incidents",
    "Incidents are not derived from failure logs.",
    "They join failures of jobs with events of nodes. The failures of nodes themselves stand on "
    "the pages MTTF and Failures; the scheduler's records bring incidents:",
    ("faultline ingest sacct sacct.txt",),
)


@dataclass(frozen=True)
class Kind:
    """Which incidents: of a domain, cause, status, owner and assignee; None is all."""

    domain: str | None = None
    cause: str | None = None
    status: str | None = None
    owner: str | None = None
    assignee: str | None = None

    @property
    def words(self) -> str:
        """What was chosen."""
        cause = self.cause and self.cause.replace("_", " ")
        domain = self.domain and domains.title(self.domain)
        chosen = (domain, cause, self.status, self.owner, self.assignee)
        return " · ".join(part for part in chosen if part)


@dataclass(frozen=True)
class Choice:
    """Which incidents a table lists, in which order."""

    selection: Selection
    kind: Kind
    loops: bool = False
    """Only the crash loops."""
    first: str = "latest"
    """latest or largest."""
    address: str = ""
    """Of the page: downloads name the address of each incident."""


def summarised(
    store: Store, selection: Selection, kind: Kind, *, conf_level: float = 0.90
) -> IncidentSummary:
    """Number, rate and cost of incidents; the ledger does not know what people said of them."""
    counts = reliability_queries.failure_counts(store, selection)
    exposure = float(counts.by_day["exposure_node_days"].sum()) if counts.exposure_known else None
    causes = taxonomy(store).causes
    frame = rows(store, selection, kind, limit=EVERYTHING)
    if frame.empty and sight.sight(store, selection).none:
        exposure = None  # nobody could have seen one
    cost, losses = ledger.if_built(store, selection), None
    if cost is not None and not any((kind.status, kind.owner, kind.assignee)):
        losses = {
            cause: hours.value or 0.0
            for cause, hours in cost.failure_losses.items()
            if kind.cause in (None, cause)
            and kind.domain in (None, causes[cause].domain if cause in causes else "unknown")
        }
    return incident_summary(frame, exposure, causes=causes, losses=losses, conf_level=conf_level)


def assignees(store: Store) -> list[str]:
    """Who is said to work on an incident."""
    return sorted({name for _, name in store.said.pairs("incident", "assignee")})


def rows(
    store: Store, selection: Selection, kind: Kind, *, first: str = "latest", limit: int
) -> pd.DataFrame:
    """Incidents, the latest or the largest first; nodes as lists."""
    which = vars(kind) | {"first": first, "limit": limit}
    return listed(incident_queries.incident_rows(store, selection, **which))


def listed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table `incidents` with their nodes as lists."""
    return frame.assign(
        nodes=frame["nodes"].map(lambda nodes: json.loads(nodes) if isinstance(nodes, str) else [])
    )


def answer(
    ask: Ask, selection: Selection, kind: Kind, *, conf_level: float = 0.90, address: str = ""
) -> Answer:
    """How many incidents, how often, at what cost, and which need somebody?

    `address` is that of the page, of which the downloads name the one of each incident.
    """
    summary = ask(summarised, selection, kind, conf_level=conf_level)
    seen, notes = ask(sight.sight, selection), _notes(ask, selection)
    logged = not_derived(ask, selection)
    if not summary.n_incidents and (seen.none or (seen.jobs_unknown and not logged)):
        unknown = tuple(Number(term, numbers.UNKNOWN, sight.basis(seen)) for term in SHOWN)
        missing = sight.missing("incidents", WHAT, seen)
        refused = Answer(sight.refused(WHAT, seen), unknown, (missing,), notes)
        return _unknown(refused, summary, seen)
    if logged and not summary.n_incidents:
        return _unknown(Answer(logged, (), (NOT_DERIVED,)), summary, seen)
    choice = Choice(selection, kind, address=address)
    cost = ask(ledger.if_built, selection, conf_level=conf_level)
    headline = headlines(summary, choice, cost)
    lost = next(number for number in headline if number.term is terms.LOST_TO_FAILURES)
    said = in_words(summary, seen, lost)
    unhit = seen.jobs_unknown and not summary.n_with_jobs
    if not summary.n_incidents:
        none = _none(ask, selection, kind)
        blocks: tuple[Block, ...] = (none,)
        said = none.finding if none.commands else said  # none could be seen
    else:
        drawn = ask(rows, selection, kind, limit=FEW)
        blocks = (
            chart(drawn, summary, kind),
            table(ask, choice, limit=FEW),
            by_cause(summary),
        )
        if unhit:
            headline = tuple(
                number
                if number.term is terms.OPEN_INCIDENTS
                else Number(number.term, numbers.UNKNOWN, sight.basis(seen), opens=number.opens)
                for number in headline
            )
    record = {
        "definition": DEFINITION,
        **_named(summary),
        "costliest_cause": summary.costliest and summary.costliest.cause,
        **sight.record(seen),
        **(dict.fromkeys(OF_JOBS) if unhit else {}),
    }
    sheet = sheet_of([record])
    return Answer(said, headline, blocks, notes, record=record | {"notes": notes}, sheet=sheet)


def _unknown(said: Answer, summary: IncidentSummary, seen: Sight) -> Answer:
    """The answer with its usual record and sheet, every number unknown."""
    record = {"definition": DEFINITION, **dict.fromkeys(_named(summary)), "costliest_cause": None}
    return replace(
        said,
        record=record | sight.record(seen) | {"notes": said.notes},
        sheet=sheet_of([record]),
    )


def _named(summary: IncidentSummary) -> dict[str, Any]:
    """The summary under the names of JSON, where the rate is that of incidents."""
    of_incidents = {"rate_per_1000_node_days": "incidents_with_jobs_per_1000_node_days"}
    return {of_incidents.get(name, name): value for name, value in vars(summary).items()}


def _notes(ask: Ask, selection: Selection) -> tuple[str, ...]:
    """What is no incident here: failures known without jobs, and what was not collected."""
    logged = not_derived(ask, selection)
    missing = detection.not_collected(ask(mttf.measured, selection))
    return (logged, *missing) if logged else missing


def not_derived(ask: Ask, selection: Selection) -> str:
    """That failures are known of which no incident is derived; empty where none are."""
    n_logged = ask(detection_queries.logged_without_jobs, selection)
    if not n_logged:
        return ""
    known = "failure is" if n_logged == 1 else "failures are"
    return (
        f"Incidents are not derived from failure logs: {n_logged:,} {known} known without jobs; "
        "the rate of incidents counts those of one node, or of one thing that nodes share, within "
        "an hour once."
    )


def in_words(summary: IncidentSummary, seen: Sight, lost: Number) -> str:
    """What happened, as far as sources could show it."""
    if not summary.n_incidents and seen.none:
        return sight.refused(WHAT, seen)
    if summary.n_incidents and not summary.n_with_jobs and seen.jobs_unknown:
        n = numbers.counted(summary.n_incidents, "incident")
        return f"{n}; {_open(summary)}; {sight.refused('whether they hit jobs', seen)}"
    return sentence(summary, lost)


def sentence(summary: IncidentSummary, lost: Number) -> str:
    """What happened, and how many incidents are open."""
    if not summary.n_incidents:
        return "No incident in this selection."
    n = summary.n_with_jobs
    if not n:
        return (
            f"{numbers.counted(summary.n_incidents, 'incident')}, none of which hit a job; "
            f"{_open(summary)}."
        )
    return f"{numbers.counted(n, 'incident')} hit jobs{_cost(summary, lost)}; {_open(summary)}."


def _cost(summary: IncidentSummary, lost: Number) -> str:
    """What failures lost, as the headline says; the first cause where that is more than a bound."""
    total, first = summary.ledger_gpu_hours, summary.costliest
    if not total or first is None:
        return ""
    said = f", failures lost {lost.value} GPU-hours"
    bounded = isinstance(lost.exact, Estimate) and lost.exact.value is None
    if bounded or len(summary.by_cause) == 1:
        return said
    title, share = first.title.partition(" (")[0], (first.ledger_gpu_hours or 0.0) / total
    return f"{said}, {numbers.percent(share)} of them by {_lowered(title)}"


def _lowered(title: str) -> str:
    """A title inside a sentence; a word that has other capitals keeps them.

    >>> [_lowered(f"{word} error") for word in ("Mount", "GPU", "InfiniBand", "I/O")]
    ['mount error', 'GPU error', 'InfiniBand error', 'I/O error']
    """
    return title[:1].lower() + title[1:] if title.partition(" ")[0][1:].islower() else title


def _open(summary: IncidentSummary) -> str:
    every = summary.n_open == summary.n_incidents
    if every and summary.n_incidents > 1:
        return f"all {summary.n_incidents:,} are open"
    verb = "is" if summary.n_open == 1 else "are"
    return f"{summary.n_open:,} of {summary.n_incidents:,} {verb} open"


def headlines(
    summary: IncidentSummary, choice: Choice, cost: GoodputLedger | None
) -> tuple[Number, ...]:
    """How often, at what cost, how many need somebody, how many are loops."""
    n, status, lost = summary.n_incidents, choice.kind.status, summary.ledger_gpu_hours
    waits = status in (None, "open")
    opens = Part("Incidents", _behind, (choice,), total=n)

    def tally(term: Term, n_of: int, basis: str, which: Choice) -> Number:
        total = n if which is choice else n_of
        part = Part("Incidents", _behind, (which,), total=total)
        return composed(term, numbers.count(n_of), basis, exact=n_of, unit="incidents", opens=part)

    of = f"of {numbers.counted(n, 'incident')}"
    waiting = replace(choice, kind=replace(choice.kind, status="open")) if waits else choice
    return (
        estimated(terms.INCIDENTS_WITH_JOBS, "rate", summary.rate_per_1000_node_days, opens=opens),
        *(
            ledger_parts.lost_to_failures(cost, choice.selection)
            if choice.kind == Kind()
            else (
                composed(
                    terms.LOST_TO_FAILURES,
                    numbers.number(lost),
                    NO_COST if lost is None else "of the causes chosen",
                    exact=lost,
                    unit="GPU-hours",
                ),
            )
        ),
        tally(terms.OPEN_INCIDENTS, summary.n_open, of if waits else f"of {n:,} {status}", waiting),
        tally(terms.CRASH_LOOPS, summary.n_crash_loops, of, replace(choice, loops=True)),
    )


def chart(drawn: pd.DataFrame, summary: IncidentSummary, kind: Kind) -> Chart:
    """One mark an incident; picking one opens it."""
    return Chart(
        "failures.incidents_by_cause",
        "When was there which incident, and which causes cost most?",
        "Incidents of each cause along time, larger where more GPU-hours were lost, and the "
        "GPU-hours that each cause lost. The tables have the values.",
        (drawn, summary.by_cause),
        options={"total": summary.n_incidents, "chosen": kind.words},
        zoned=True,
        opens="incident",
        rows=_in_one_text(drawn),
    )


def table(ask: Ask, choice: Choice, *, limit: int = EVERYTHING) -> Table:
    """The incidents chosen; the download holds all, each with its address."""
    n = None if choice.loops else ask(summarised, choice.selection, choice.kind).n_incidents
    everything = Part("Incidents", _addressed, (choice,), total=n)
    return replace(_table(ask, _rows(ask, choice, limit)), everything=everything)


def _behind(ask: Ask, choice: Choice, *, limit: int = EVERYTHING) -> Table:
    """The same behind a number of a page that lists them too."""
    return replace(table(ask, choice, limit=limit), key="incidents_behind")


def _addressed(ask: Ask, choice: Choice, *, limit: int = EVERYTHING) -> Table:
    """The same with an address each, for those who read them elsewhere."""
    frame = _rows(ask, choice, limit)
    queries = (urlencode({"incident": incident_id}) for incident_id in frame["incident_id"])
    links = [urljoin(choice.address, f"incident?{query}") for query in queries]
    return _table(ask, frame.assign(link=links))


def _rows(ask: Ask, choice: Choice, limit: int) -> pd.DataFrame:
    """Rows of the choice; loops are looked for in all incidents."""
    read = EVERYTHING if choice.loops else limit
    frame = ask(rows, choice.selection, choice.kind, first=choice.first, limit=read)
    return frame[frame["loop_failures"] > 0].head(limit) if choice.loops else frame


def _table(ask: Ask, frame: pd.DataFrame, empty: str = "No incident in this selection.") -> Table:
    shown = _in_one_text(named(ask, frame))
    return Table("incidents", "Incidents", _columns(frame), shown, empty)


def _columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    """The columns; until the ledger is built costs are not computed yet."""
    if frame["n_unmeasured"].notna().any():
        return COLUMNS
    return tuple(
        replace(column, none=ledger_parts.NOT_COMPUTED) if column.key in OF_LEDGER else column
        for column in COLUMNS
    )


def _in_one_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(nodes=frame["nodes"].map(", ".join))


def brief(frame: pd.DataFrame, title: str, empty: str) -> Table:
    """Incidents in few columns, for documents."""
    keys = ("incident_id", "start_at", "summary", "n_failed_jobs", "lost_gpu_hours", "status")
    by_key = {column.key: replace(column, wide=False) for column in _columns(frame)}
    return Table("incidents", title, tuple(by_key[key] for key in keys), frame, empty)


def by_cause(summary: IncidentSummary) -> Table:
    """Number and loss of incidents of each cause."""
    described = (
        field("title", "Cause"),
        field("domain", "Domain", of=lambda cause: domains.title(cause.domain)),
        field("incidents", "Incidents", "count", "n_incidents"),
        field("jobs", "Jobs hit", "count", "n_jobs"),
        field("ledger_gpu_hours", "Lost, by the ledger (GPU-h)", "number", none=NO_COST),
        field("cause", "Name", wide=True, term=of_failures.CAUSE_NAME),
    )
    empty = "No incident touches the period."
    return Rows(described, summary.by_cause).table(
        "incident_causes", "Incidents by cause", empty=empty
    )


def listing(ask: Ask, selection: Selection, kind: Kind, *, first: str, limit: int) -> Answer:
    """The incidents, each with everything it consists of."""
    frame = ask(rows, selection, kind, first=first, limit=limit)
    members: dict[str, list[dict[Any, Any]]] = {}
    evidence = ask(incident_queries.evidence_rows, frame["incident_id"].tolist())
    for row in evidence.to_dict("records"):
        members.setdefault(row.pop("incident_id"), []).append(row)
    seen = ask(sight.sight, selection)
    return Answer(
        "",
        blocks=(
            _table(ask, frame, sight.refused(WHAT, seen)) if seen.none else _table(ask, frame),
        ),
        notes=_notes(ask, selection),
        record=[
            record(row) | {"evidence": members.get(row["incident_id"], [])}
            for row in frame.to_dict("records")
        ],
        sheet=frame,
    )


def of_attempt(ask: Ask, cluster: str, attempt_key: str) -> list[tuple[str, str]]:
    """Id and summary of the incidents that an attempt is part of."""
    frame = ask(incident_queries.of_attempt, cluster, attempt_key)
    return list(zip(frame["incident_id"], frame["summary"], strict=True))


def record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """An incident as the JSON keys of the commands."""
    kept = {key: value for key, value in row.items() if key != "retired"}
    return kept | {"definition": DEFINITION}


def _none(ask: Ask, selection: Selection, kind: Kind) -> Missing:
    """No incident: because of what was chosen, the period, or because nothing was collected."""
    if kind.words and ask(summarised, selection, Kind()).n_incidents:
        return Missing(
            "incidents",
            f"No incident of this kind ({kind.words}).",
            "There are others in this selection: choose all above.",
        )
    held = [source for of in ask(sight.sight, selection).clusters for source in of.showing]
    if not any(source.startswith(CARRIERS) for source in held):
        return Missing(
            "incidents",
            "No health event and no outage of a node is known in this selection.",
            "Without them only failures with a cause, lost nodes and crash loops become "
            "incidents. These sources bring them:",
            (
                "faultline ingest kernel-log kernel-*.log",
                "faultline ingest gcm-health health.jsonl",
                "faultline ingest sacctmgr-events events.txt",
            ),
        )
    return Missing(
        "incidents",
        "No job failed by hardware or system software, and no node reported a critical event.",
        "Choose a longer period or reset the filters.",
    )
