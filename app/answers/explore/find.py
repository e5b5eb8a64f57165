"""What is called so in the store and in the catalogs, and what does a pasted log say?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.answers.columns import KNOWN, columns
from app.answers.content import Answer, Table
from app.answers.described import sheet_of
from app.answers.explore import glossary
from app.answers.failures.taxonomy import taxonomy
from app.answers.training.fleet import labelled
from app.words import domains, numbers
from app.words.cells import Column
from app.words.plain import one_line, shortened
from data.queries import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from app.ask import Ask
    from app.words.cells import Link
    from data.saved_queries import SavedQuery

MOST = 5
"""Hits of one kind."""
LEAST_LETTERS = 2
"""Fewer of them name too much."""
LONGEST_NAME = 80
"""Letters of a name; what is longer is a text to judge."""
_CODE = re.compile(r"\b(s?)xid\s*(?:\([^)]*\))?\s*:?\s*(\d{1,5})\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}")
JOBS = columns("job_id", "state", "name", "user", "start_at", "cluster")
NODES = (*columns("node"), Column("rack", "Rack"), Column("gpus", "GPUs", "count"),
         *columns("cluster"))  # fmt: skip
USERS = (replace(KNOWN["user"], link="user"), Column("n_attempts", "Attempts", "count"),
         Column("last_at", "Latest end", "time", "UTC", none="none has ended"))  # fmt: skip
INCIDENTS = columns("incident_id", "start_at", "summary", "cluster")
RUNS = columns("run_id", "name", "user", "n_gpus", "cluster")
TRACES = (*columns("trace"), Column("name", "Name"), replace(KNOWN["job_id"], none="not stated"),
          Column("slowdown", "Slowdown", "number"), *columns("cluster"))  # fmt: skip
CAUSES = (Column("title", "Cause"), *columns("domain"), Column("action", "What to do"),
          Column("owner", "Who acts"), *columns("cause"))  # fmt: skip
CODES = (Column("code", "Code"), Column("title", "What happened"), *columns("domain", "severity"),
         Column("action", "What to do", none="the catalog says nothing"))  # fmt: skip
SEEN_ON = (*columns("node"), Column("n_times", "Times", "count"),
           Column("last_at", "Last seen", "time", "UTC"), *columns("cluster"))  # fmt: skip
QUERIES = (Column("sql", "Saved query", link="sql"), Column("title", "Name"),
           Column("author", "By"))  # fmt: skip
TERMS = (Column("label", "Term", link="term"), Column("definition", "What it means"),
         Column("key", "Key"))  # fmt: skip
VERDICT = (Column("title", "What the text says"), Column("domain", "Whose fault"),
           Column("confidence", "Confidence", "ratio"), Column("action", "What to do"),
           *columns("evidence"))  # fmt: skip
NOTHING = (
    "Nothing has this name. Ask for a job, node, user, incident, cause, XID, run, trace, saved "
    "query or term, or paste the end of a log or a line of the kernel."
)
_STORED: tuple[tuple[str, str, tuple[Column, ...], Callable[..., pd.DataFrame]], ...] = (
    ("jobs", "Jobs", JOBS, find.jobs),
    ("nodes", "Nodes", NODES, find.nodes),
    ("users", "Users", USERS, find.users),
    ("incidents", "Incidents", INCIDENTS, find.incidents),
    ("runs", "Runs", RUNS, find.runs),
    ("traces", "Straggler traces", TRACES, find.traces),
)


def answer(ask: Ask, text: str, saved: Iterable[SavedQuery] = ()) -> Answer:
    """What a text names, by kind, the kind with the best hit first; what it says as a log."""
    wanted = text.strip()
    tables = [table for _, table in sorted(_hits(ask, wanted, saved), key=lambda hit: hit[0])]
    hits = [table for table in tables if len(table)]
    near = [] if hits else _near(ask, wanted)
    several = [table.title[:1].lower() + table.title[1:] for table in hits]
    counts = [
        numbers.counted(
            len(table), "saved query" if table.key == "queries" else name.removesuffix("s"), name
        )
        for table, name in zip(hits, several, strict=True)
    ]
    return Answer(
        f"Found {', '.join(counts)}." if hits else _meant(near) or NOTHING,
        blocks=tuple(hits or near),
        record={
            table.key: [
                dict(zip((column.key for column in table.columns), row, strict=True))
                for row in table.values
            ]
            for table in tables
        },
        sheet=sheet_of(
            [{"kind": table.key, "name": row[0]} for table in hits for row in table.values],
            ("kind", "name"),
        ),
    )


def sole(found: Answer) -> tuple[Link, dict[str, Any]] | None:
    """The one thing that was found, with the page that it opens; None where there are several, or
    it was only meant."""
    tables = [block for block in found.blocks if isinstance(block, Table)]
    if not found.sentence.startswith("Found ") or len(tables) != 1 or len(tables[0]) != 1:
        return None
    (table,) = tables
    link = next((column.link for column in table.columns if column.link is not None), None)
    keys = [column.key for column in table.columns]
    return None if link is None else (link, dict(zip(keys, table.values[0], strict=True)))


def _hits(ask: Ask, wanted: str, saved: Iterable[SavedQuery]) -> Iterable[tuple[int, Table]]:
    """Tables of hits, each with the place of its best one: 0 the name itself, 2 a part of it."""
    yield -1, _verdict(ask, wanted)
    codes = _codes(wanted)
    yield 0, codes
    for code in [str(row[0]) for row in codes.values][:1]:
        seen = ask(find.nodes_with, code, limit=MOST)
        yield 0, Table("code_nodes", f"Nodes with {code}", SEEN_ON, seen)
        held = ask(find.incidents_with, code, limit=MOST)
        yield 0, Table("code_incidents", f"Incidents with {code}", INCIDENTS, held)
    if not LEAST_LETTERS <= len(wanted) <= LONGEST_NAME or "\n" in wanted:
        return
    for key, title, of, question in _STORED:
        hits = ask(question, wanted, limit=MOST)
        best = int(hits["place"].iloc[0]) if len(hits) else 3
        named = labelled(hits) if key == "traces" else hits
        yield best, Table(key, title, of, named[[column.key for column in of]])
    causes = [
        (cause.title, domains.title(cause.domain), cause.action, cause.owner, cause.name)
        for cause in ask(taxonomy).causes.values()
        if _holds(wanted, cause.name, cause.title)
    ]
    yield 2, Table("causes", "Causes", CAUSES, causes[:MOST])
    queries = [
        (query.sql, query.name, query.author) for query in saved if _holds(wanted, query.name)
    ]
    yield 2, Table("queries", "Saved queries", QUERIES, queries[:MOST])
    entries = [
        entry
        for entry in glossary.matching(glossary.entries(), wanted)
        if _holds(wanted, entry.key, entry.term.label)
    ]
    exact = any(wanted.casefold() in (of.key, of.term.label.casefold()) for of in entries)
    rows = [(of.term.label, shortened(of.term.definition, 160), of.key) for of in entries[:MOST]]
    yield (0 if exact else 2), Table("terms", "Terms", TERMS, rows)


def _near(ask: Ask, wanted: str) -> list[Table]:
    """Nodes and users that were probably meant."""
    if not LEAST_LETTERS <= len(wanted) <= LONGEST_NAME or re.search(r"\s", wanted):
        return []
    nodes = ask(find.near_nodes, wanted, limit=MOST)
    users = ask(find.near_users, wanted, limit=MOST)
    tables = (Table("nodes", "Nodes", NODES, nodes), Table("users", "Users", USERS, users))
    return [table for table in tables if len(table)]


def _meant(near: Sequence[Table]) -> str:
    """What was probably meant; empty where nothing is near."""
    return f"Did you mean {near[0].values[0][0]}?" if near else ""


def _verdict(ask: Ask, text: str) -> Table:
    """What the text says as a log; nothing where it is a name."""
    rows: list[tuple[Any, ...]] = []
    if re.search(r"\s", text):
        from analytics.failures.log_classifier import classify_log

        verdict, known = classify_log(text.splitlines()), ask(taxonomy)
        if verdict.method == "log_rule":
            cause = known.causes[verdict.cause]
            line = verdict.evidence[0].text if verdict.evidence else None
            rows = [(cause.title, domains.title(verdict.domain), verdict.confidence, cause.action,
                     line and shortened(one_line(line), 160))]  # fmt: skip
    return Table("verdict", "Verdicts", VERDICT, rows)


def _codes(text: str) -> Table:
    """XIDs and SXids that the text names; a number alone is an XID."""
    from analytics.failures.xid import sxid_entries, xid_entries

    rows: list[tuple[Any, ...]] = []
    named = [(bool(s), int(code)) for s, code in _CODE.findall(text)]
    if _NUMBER.fullmatch(text):
        named = [(False, int(text))]
    for of_switch, code in dict.fromkeys(named):
        if of_switch and (switch := sxid_entries().get(code)) is not None:
            title, domain = switch.title, domains.title(switch.domain)
            rows.append((f"SXid {code}", title, domain, switch.severity, None))
        elif not of_switch and (entry := xid_entries().get(code)) is not None:
            title, domain = entry.title, domains.title(entry.domain)
            action = entry.immediate_meaning or entry.immediate_action
            rows.append((f"XID {code}", title, domain, entry.severity, action))
    return Table("codes", "Codes", CODES, rows[:MOST])


def _holds(wanted: str, *names: str) -> bool:
    text = " ".join(names).casefold()
    return all(word in text for word in wanted.casefold().split())
