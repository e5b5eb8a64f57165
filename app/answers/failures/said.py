"""What did people say of an attempt, an incident or a node, and who has an incident?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.answers.columns import text
from app.answers.content import Number, composed
from app.answers.described import Rows, field
from app.words import numbers
from app.words.glossary.of_failures import (
    ACKNOWLEDGED,
    ASSIGNEE,
    OWNER,
    REMEDY,
    RESOLVED,
)  # fmt: skip
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.answers.content import Table
    from app.words.terms import Term
    from data.state import Annotation
    from data.store import Store
NOBODY = "nobody yet"
NO_REMEDY = "Nobody has said what is done about it."


def history(store: Store, target: str) -> list[Annotation]:
    """All that was said, the newest first."""
    return State(store.root).history(target)


def of_incident(store: Store, incident_id: str) -> list[Annotation]:
    """All that was said of an incident and of those merged into it, and which attempts moved."""
    here = store.arranged
    about = {f"incident:{incident_id}"}
    about |= {f"incident:{one}" for one, other in here.same.items() if other == incident_id}
    moved = {
        f"attempt:{each.cluster}/{each.attempt_key}"
        for each in here.moves
        if incident_id in (each.from_id, each.to_id)
    }
    return [
        each
        for each in State(store.root).history()
        if each.target in about or (each.target in moved and each.field == "incident")
    ]


def made_at(annotation: Annotation) -> datetime:
    """When something was said."""
    return datetime.fromisoformat(annotation.made_at)


def what(annotation: Annotation, target: str) -> str:
    """The field in words, after the target where that is not the one that is asked about."""
    of = "" if annotation.target == target else f"{annotation.target} "
    return of + annotation.field.replace("_", " ")


def table(annotations: Sequence[Annotation], target: str) -> Table:
    """What people said of a target, and of others that concern it; the newest first."""
    described = (
        field("made_at", "When", "time", made_at, unit="UTC"),
        field("author", "Who", of=lambda annotation: text(annotation.author)),
        field("field", "What", of=lambda annotation: what(annotation, target)),
        field("value", "Value", of=lambda annotation: text(annotation.value)),
        field("holds", "Holds", of=_until),
    )
    empty = "Nobody has said anything of it."
    return Rows(described, annotations).table("said", "What people said", empty=empty)


def _until(annotation: Annotation) -> str:
    undone = annotation.undone_at is not None
    return f"undone by {text(annotation.undone_by)}" if undone else "until undone"


def who(row: Mapping[str, Any]) -> tuple[Number, ...]:
    """Owner, assignee, and how long it took until somebody acknowledged and resolved it."""
    return (
        Number(OWNER, text(row["owner"]) or NOBODY),
        Number(ASSIGNEE, text(row["assignee"]) or NOBODY),
        _after(ACKNOWLEDGED, row, "acknowledged", "hours_to_acknowledge"),
        _after(RESOLVED, row, "resolved", "hours_to_resolve"),
    )


def _after(term: Term, row: Mapping[str, Any], what: str, hours: str) -> Number:
    by, took = text(row[f"{what}_by"]), row[hours]
    if by is None:
        return composed(term, numbers.UNKNOWN, NOBODY)
    known = None if took is None or took != took else float(took)  # NaN is not itself
    when = numbers.moment(row[f"{what}_at"], "UTC")
    return composed(term, numbers.duration(known), f"by {by}, {when}", exact=known, unit="hours")


def in_words(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The same, a sentence each."""
    said = ((number.term.label, number.value, number.basis) for number in who(row))
    return tuple(f"{what}: {value}{f' ({basis})' if basis else ''}." for what, value, basis in said)


def doing(row: Mapping[str, Any]) -> Number:
    """What people do about it."""
    return Number(REMEDY, text(row["remedy"]) or NOBODY)


def remedy(row: Mapping[str, Any]) -> str:
    """What people do about it, in their words."""
    return text(row["remedy"]) or NO_REMEDY


def arrangement(store: Store, incident_id: str) -> tuple[str, ...]:
    """Which incidents people merged into this one, and how many attempts they moved."""
    here, sentences = store.arranged, []
    merged = sorted(one for one, other in here.same.items() if other == incident_id)
    if merged:
        others = "incidents" if len(merged) > 1 else "incident"
        sentences.append(
            f"People say it is the same as {others} {', '.join(merged)}: all are counted."
        )
    into = sum(move.to_id == incident_id for move in here.moves)
    if into:
        sentences.append(f"People put {numbers.counted(into, 'attempt')} from elsewhere into it.")
    out = sum(move.from_id == incident_id for move in here.moves)
    if out:
        sentences.append(f"People took {numbers.counted(out, 'attempt')} out of it.")
    return tuple(sentences)
