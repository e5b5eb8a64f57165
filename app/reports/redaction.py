"""Pseudonyms for users, accounts and names of jobs.

A pseudonym is a keyed hash: the same name has the same one in every report of a store, and without
the store's key nobody can test a guess.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pandas as pd

    from app.questions import Hidden, Incident, Node
    from data.state import Annotation
    from data.store import Store

LETTERS = 10
"""Of a pseudonym: 50 bits, so that a million names hardly ever share one."""
SHORTEST = {"user": 2, "account": 2, "job": 3}
"""Letters from which on a name is looked for in texts."""
_HOME = re.compile(
    r"(?:/(?:home\d*|homes|users?|Users|u|people|scratch)/|(?<![\w/.])~)([^\W_][\w.-]*)"
)
"""Owners of home folders, known or not."""
_PIECE = re.compile(r"[^\W_]+")
_COLUMNS = {
    "user": "user", "author": "user", "reason_user": "user", "undone_by": "user",
    "account": "account", "name": "job",
    "text": "text", "reason": "text", "message": "text", "note": "text", "value": "text",
    "submit_line": "text", "raw": "text", "path": "text", "file": "text",
    "evidence": "nested", "alternatives": "nested",
}  # fmt: skip
"""What the columns of the store's frames hold that names people."""


class Names:
    """Names as they are."""

    def user(self, name: str) -> str:
        """Who did something."""
        return name

    def account(self, name: str) -> str:
        """Who pays."""
        return name

    def job(self, name: str) -> str:
        """What a job is called."""
        return name

    def text(self, text: str) -> str:
        """What a record says."""
        return text

    def frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of the store."""
        writers: dict[str, Callable[[Any], Any]] = {
            "user": self.user, "account": self.account, "job": self.job, "text": self.text,
            "nested": self.nested,
        }  # fmt: skip
        changed = {
            column: rows[column].map(_of_text(writers[kind], nested=kind == "nested"))
            for column, kind in _COLUMNS.items()
            if column in rows
        }
        return rows.assign(**changed)

    def incident(self, found: Incident) -> Incident:
        """An incident with its members and verdicts."""
        row = {
            key: self.text(value) if key == "note" and isinstance(value, str) else value
            for key, value in found.row.items()
        }
        return replace(
            found,
            row=row,
            members=self.frame(found.members),
            verdicts=self.frame(found.verdicts),
        )

    def node(self, found: Node) -> Node:
        """What was recorded of a node."""
        return replace(
            found,
            history=self.frame(found.history),
            attempts=self.frame(found.attempts),
            said=self.frame(found.said),
        )

    def annotation(self, said: Annotation) -> Annotation:
        """What a person said."""
        return replace(
            said,
            author=self.user(said.author),
            undone_by=said.undone_by and self.user(said.undone_by),
            value=self.text(said.value),
        )

    def nested(self, value: Any) -> Any:
        """Texts anywhere inside evidence."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.nested(each) for each in value]
        if isinstance(value, dict):
            return {key: self.nested(each) for key, each in value.items()}
        return value


class Pseudonyms(Names):
    """Keyed hashes in place of names."""

    def __init__(self, hidden: Hidden) -> None:
        self._key = hidden.key
        self._known: dict[str, tuple[str, str]] = {}
        found = hidden.people
        for kind, names in (
            ("job", found.jobs),
            ("account", found.accounts),
            ("user", found.users),
        ):
            self._known |= {part: (kind, name) for part, name in _findable(names, SHORTEST[kind])}
        self._lengths: dict[str, set[int]] = {}
        for part in self._known:
            pieces = _PIECE.findall(part)
            self._lengths.setdefault(pieces[0], set()).add(len(pieces))

    def user(self, name: str) -> str:
        """Who did something."""
        return self._of("user", name)

    def account(self, name: str) -> str:
        """Who pays."""
        return self._of("account", name)

    def job(self, name: str) -> str:
        """What a job is called."""
        return self._of("job", name)

    def text(self, text: str) -> str:
        """A record without the names of the store, and without the owners of home folders."""
        parts, done = [], 0
        for found in _HOME.finditer(text):
            kind, name = self._known.get(found[1], ("user", found[1]))
            parts += [self._without_names(text[done : found.start(1)]), self._of(kind, name)]
            done = found.end(1)
        return "".join([*parts, self._without_names(text[done:])])

    def _without_names(self, text: str) -> str:
        """Names of the store replaced, the longest first; a part of a word is no name."""
        pieces = list(_PIECE.finditer(text))
        parts, done, at = [], 0, 0
        while at < len(pieces):
            begin, length = pieces[at].start(), 1
            for n in sorted(self._lengths.get(pieces[at][0], ()), reverse=True):
                last = at + n - 1
                part = text[begin : pieces[last].end()] if last < len(pieces) else ""
                if part in self._known:
                    parts += [text[done:begin], self._of(*self._known[part])]
                    done, length = pieces[last].end(), n
                    break
            at += length
        return "".join([*parts, text[done:]])

    def _of(self, kind: str, name: str) -> str:
        """The pseudonym; a name has one hash, whatever it names."""
        if not name:
            return name
        digest = hmac.digest(self._key, name.encode("utf-8", "surrogatepass"), "sha256")
        return f"{kind}-{b32encode(digest)[:LETTERS].decode().lower()}"


def names(store: Store, *, redact: bool) -> Names:
    """Names as they are, or their pseudonyms."""
    return Pseudonyms(questions.hidden(store)) if redact else Names()


def _findable(names: Iterable[str], shortest: int) -> Iterator[tuple[str, str]]:
    """What texts are searched for, and the name it stands for: no single letters, no numbers."""
    for name in names:
        part = re.sub(r"^[\W_]+|[\W_]+$", "", name)
        if len(part) >= shortest and not part.isdigit():
            yield part, name


def _of_text(write: Callable[[Any], Any], *, nested: bool) -> Callable[[Any], Any]:
    """The same for what is text, or nested; what is null stays."""
    kinds = (str, list, tuple, dict) if nested else str
    return lambda value: write(value) if isinstance(value, kinds) else value
