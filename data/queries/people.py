"""Names of people and of what they run: what a report to strangers must not show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.store import Store


@dataclass(frozen=True)
class People:
    """All names in a store."""

    users: frozenset[str]
    """Who submitted jobs, set the state of nodes or said something."""
    accounts: frozenset[str]
    jobs: frozenset[str]
    """Names of jobs."""


def people(store: Store) -> People:
    """All names of users, accounts and jobs."""
    return People(
        users=_names(
            store,
            """SELECT "user" FROM jobs UNION SELECT reason_user FROM node_events
               UNION SELECT author FROM annotations""",
        ),
        accounts=_names(store, "SELECT DISTINCT account FROM jobs"),
        jobs=_names(store, "SELECT DISTINCT name FROM jobs"),
    )


def _names(store: Store, sql: str) -> frozenset[str]:
    return frozenset(row[0] for row in store.rows(sql) if row[0])
