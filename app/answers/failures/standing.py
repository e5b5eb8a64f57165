"""Who has an incident, since when, and what do people do about it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.columns import text
from app.answers.content import Number, composed
from app.words import numbers
from app.words.glossary.of_failures import (
    ACKNOWLEDGED,
    ASSIGNEE,
    OWNER,
    REMEDY,
    RESOLVED,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.words.terms import Term
    from data.store import Store

NOBODY = "nobody said"
NO_REMEDY = "Nobody has said what is done about it."


def who(row: Mapping[str, Any]) -> tuple[Number, ...]:
    """Owner, assignee, and how long it took until somebody acknowledged and resolved it."""
    return (
        Number(OWNER, text(row["owner"]) or NOBODY),
        Number(ASSIGNEE, text(row["assignee"]) or NOBODY),
        _after(ACKNOWLEDGED, row, "acknowledged", "hours_to_acknowledge"),
        _after(RESOLVED, row, "resolved", "hours_to_resolve"),
    )


def _after(term: Term, row: Mapping[str, Any], what: str, hours: str) -> Number:
    """How long after the start, by whom and when."""
    by, took = text(row[f"{what}_by"]), row[hours]
    if by is None:
        return composed(term, numbers.UNKNOWN, NOBODY)
    known = None if took is None or took != took else float(took)  # NaN is not itself
    when = numbers.moment(row[f"{what}_at"], "UTC")
    return composed(term, numbers.duration(known), f"by {by}, {when}", exact=known, unit="hours")


def in_words(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The same, a sentence each."""
    said = ((each.term.label, each.value, each.basis) for each in who(row))
    return tuple(f"{what}: {value}{f' ({basis})' if basis else ''}." for what, value, basis in said)


def doing(row: Mapping[str, Any]) -> Number:
    """What people do about it."""
    return Number(REMEDY, text(row["remedy"]) or NOBODY)


def remedy(row: Mapping[str, Any]) -> str:
    """What people do about it, in their words."""
    return text(row["remedy"]) or NO_REMEDY


def arrangement(store: Store, incident_id: str) -> tuple[str, ...]:
    """Which incidents people merged into this one, and how many attempts they moved."""
    here, told = store.arranged, []
    merged = sorted(one for one, other in here.same.items() if other == incident_id)
    if merged:
        others = "incidents" if len(merged) > 1 else "incident"
        told.append(f"People say it is the same as {others} {', '.join(merged)}: all are counted.")
    into = sum(each.to_id == incident_id for each in here.moves)
    if into:
        told.append(f"People put {numbers.counted(into, 'attempt')} from elsewhere into it.")
    out = sum(each.from_id == incident_id for each in here.moves)
    if out:
        told.append(f"People took {numbers.counted(out, 'attempt')} out of it.")
    return tuple(told)
