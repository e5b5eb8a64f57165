"""Which names must a report to strangers not show, and what stands for them?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.queries import people as people_queries
from data.state import State

if TYPE_CHECKING:
    from data.queries.people import People
    from data.store import Store


@dataclass(frozen=True)
class Hidden:
    """Names, and the key by which they are replaced."""

    people: People
    key: bytes


def hidden(store: Store) -> Hidden:
    """Names of users, accounts and jobs, with the store's key; made where there is none yet."""
    state = State(store.root)
    found = people_queries.people(store)
    said = {name for one in state.history() for name in (one.author, one.undone_by) if name}
    return Hidden(replace(found, users=found.users | said), state.redaction_key())
