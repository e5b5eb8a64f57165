"""What did people say of an attempt, an incident or a node?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from app.answers.columns import text
from app.answers.content import Table
from app.words.cells import Column
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.state import Annotation
    from data.store import Store


def history(store: Store, target: str) -> list[Annotation]:
    """All that was said, the newest first."""
    return State(store.root).history(target)


def of_incident(store: Store, incident_id: str) -> list[Annotation]:
    """All that was said of an incident and of those merged into it, and which attempts moved."""
    here, field = store.arranged, "incident"
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
        if each.target in about or (each.target in moved and each.field == field)
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
    return Table(
        "said",
        "What people said",
        (
            Column("made_at", "When", "time", "UTC"),
            Column("author", "Who"),
            Column("field", "What"),
            Column("value", "Value"),
            Column("holds", "Holds"),
        ),
        tuple(
            (
                made_at(each),
                text(each.author),
                what(each, target),
                text(each.value),
                "until undone" if each.undone_at is None else f"undone by {text(each.undone_by)}",
            )
            for each in annotations
        ),
        "Nobody has said anything of it.",
    )
