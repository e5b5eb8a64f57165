"""What did people say of an attempt, an incident or a node?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from app.answers.columns import text
from app.answers.described import Rows, field
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answers.content import Table
    from data.state import Annotation
    from data.store import Store


def history(store: Store, target: str) -> list[Annotation]:
    """All that was said, the newest first."""
    return State(store.root).history(target)


def of_incident(store: Store, incident_id: str) -> list[Annotation]:
    """All that was said of an incident and of those merged into it, and which attempts moved."""
    here, moved_by = store.arranged, "incident"
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
        if each.target in about or (each.target in moved and each.field == moved_by)
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
    """How long it holds."""
    undone = annotation.undone_at is not None
    return f"undone by {text(annotation.undone_by)}" if undone else "until undone"
