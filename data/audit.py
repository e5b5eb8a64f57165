"""Who did what to a store, and asked what of it: the audit, which is only ever added to."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from data.errors import StoreError
from data.state import State

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

SQL_KEPT = 200
"""Characters of a query that the audit holds."""
_TARGETS = ("target", "path", "file", "name", "sql", "annotation_id", "query_id", "address")
"""Keys of a detail that say what was acted on; the first that is there counts."""
_SAID = re.compile(
    r"""
    "(?:[^"]|"")*(?:"|$)              # a name, kept: an apostrophe in it begins no text
    | \b[eE]'(?:[^'\\]|\\.|'')*(?:'|$)  # a text with escapes
    | '(?:[^']|'')*(?:'|$)            # a text
    | \$(\w*)\$ .*? (?:\$\1\$|$)      # a text between dollars
    | /\* .*? (?:\*/|$) | --[^\n]*    # remarks
    """,
    re.VERBOSE | re.DOTALL,
)
_COLUMNS = "made_at, author, action, detail"
_FOUND = f"""
SELECT {_COLUMNS} FROM audit
WHERE (:from_at IS NULL OR made_at >= :from_at) AND (:to_at IS NULL OR made_at < :to_at)
  AND (:person IS NULL OR author = :person) AND (:action IS NULL OR action = :action)
ORDER BY audit_id DESC LIMIT :limit
"""


@dataclass(frozen=True)
class Entry:
    """One line of the audit."""

    made_at: str
    """ISO time in UTC."""
    person: str
    """Name of the token on the dashboard, login on the command line."""
    action: str
    target: str
    """What it was done to: a file, an attempt, a query's first characters; may be empty."""
    detail: dict[str, Any]


class Audit(State):
    """The audit of one store."""

    def entries(
        self,
        *,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        person: str | None = None,
        action: str | None = None,
        limit: int = -1,
    ) -> list[Entry]:
        """Lines from one moment on and before another, of a person, of an action; newest first.

        `limit` is how many at most; below 0 all.
        """
        asked = {"person": person, "action": action, "limit": limit}
        asked |= {"from_at": _stored(from_at), "to_at": _stored(to_at)}
        return [_entry(*row) for row in self._read(_FOUND, asked)]

    def people(self) -> list[str]:
        """Everybody who stands in it, by name."""
        return [row[0] for row in self._read("SELECT DISTINCT author FROM audit ORDER BY 1", {})]

    def actions(self) -> list[str]:
        """Every action that stands in it, by name."""
        return [row[0] for row in self._read("SELECT DISTINCT action FROM audit ORDER BY 1", {})]


def noted(
    root: Path, action: str, detail: dict[str, Any], *, person: str | None = None
) -> str | None:
    """Takes down what changed nothing, or what is done already; it goes on in any case.

    Why it could not be taken down is what comes back, for people. A store that nobody has put
    anything into, and one that this user may not write, keep no audit.
    """
    if not (root / "state.sqlite").exists() or not os.access(root, os.W_OK):
        return None
    try:
        Audit(root).record(person or login(), action, detail)
    except StoreError as error:
        return f"the audit does not say it: {error}"
    return None


def query(sql: str) -> dict[str, str]:
    """What the audit holds of a query: how it begins, and a hash that tells whether it is another.

    Texts in it are left out: they name users, accounts and jobs. So are remarks.

    >>> query("SELECT * FROM jobs WHERE user = 'ann' -- again")["sql"]
    "SELECT * FROM jobs WHERE user = '...'"
    """
    text = " ".join(_SAID.sub(_without_text, sql).split())
    kept = text if len(text) <= SQL_KEPT else f"{text[:SQL_KEPT]}..."
    return {"sql": kept, "sha256": hashlib.sha256(sql.encode()).hexdigest()[:12]}


def _without_text(found: re.Match[str]) -> str:
    if found[0].startswith('"'):
        return found[0]
    return " " if found[0].startswith(("/*", "--")) else "'...'"


def login() -> str:
    """The user who runs this process; by number where the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return f"uid {os.getuid()}"


def _entry(made_at: str, person: str, action: str, detail: str) -> Entry:
    told = json.loads(detail)
    target = next((str(told[key]) for key in _TARGETS if key in told), "")
    return Entry(made_at, person, action, target, told)


def _stored(moment: datetime | None) -> str | None:
    """A moment as it is stored, which is whole seconds."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
