"""Pseudonyms for users, accounts and names of jobs, also where an id is made of them.

A pseudonym is a keyed hash: the same name has the same one in every report of a store, and without
the store's key nobody can test a guess.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from data.alerts import Alert, Delivery
from data.queries import targets as stored
from data.state import Annotation, State
from data.tables import people

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pandas as pd

    from app.ask import Ask
    from data.store import Store
    from data.tables import People

LETTERS = 10
"""Of a pseudonym: 50 bits, so that a million names hardly ever share one."""
SHORTEST = {"user": 2, "account": 2, "job": 3}
"""Letters from which on a name is looked for in texts."""
_HOME = re.compile(
    r"(?:/(?:home\d*|homes|users?|Users|u|people|scratch)/|(?<![\w/.])~)([^\W_][\w.-]*)"
)
"""Owners of home folders, known or not."""
_MAILBOX = re.compile(r"([^\s<>@,;:\"'()\[\]]+)@(?=[\w\[])")
"""Whose an address of mail is."""
_PIECE = re.compile(r"[^\W_]+")
_IDS = ("job_id", "run_id")
"""Fields of results that hold an id."""
_STATE_COLUMNS: dict[str, People] = {
    "undone_by": "user", "note": "text", "remedy": "text", "owner": "text", "assignee": "user",
    "acknowledged_by": "user", "resolved_by": "user",
}  # fmt: skip
"""What columns that state.sqlite adds to the store's frames hold that names people."""


@dataclass(frozen=True)
class Hidden:
    """Names, and the key by which they are replaced."""

    people: stored.People
    key: bytes


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

    def id(self, text: str) -> str:
        """Which job or run it is."""
        return text

    def text(self, text: str) -> str:
        """What a record says."""
        return text

    def target(self, text: str) -> str:
        """What an alert is about."""
        return text

    def named(self, named: Mapping[str, str]) -> dict[str, str]:
        """What an address names."""
        writers = self._of_addresses()
        return {key: writers.get(key, str)(name) for key, name in named.items()}

    def sentence(self, text: str, owner: str | None, named: Mapping[str, str]) -> str:  # noqa: ARG002
        """What is said of a thing, whose owner and address are known."""
        return text

    def frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of the store."""
        return rows.assign(**{c: rows[c].map(write) for c, write in self._writers(rows)})

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the store by column."""
        return {**row, **{column: write(row[column]) for column, write in self._writers(row)}}

    def result(self, value: Any) -> Any:
        """What a question returned: frames, rows (they name their cluster) and annotations in it.

        Other texts are the words of analytics, such as titles of causes: they name nobody.
        """
        if hasattr(value, "assign"):
            return self.frame(value)
        if isinstance(value, Annotation):
            return self.annotation(value)
        if isinstance(value, Alert):
            return self.alert(value)
        if isinstance(value, Delivery):
            return self.delivery(value)
        if hasattr(value, "redacted"):  # of a layer above, it knows what in it names people
            return value.redacted(self)
        if isinstance(value, dict):
            known = self.row(value) if "cluster" in value else value
            return {key: self.result(each) for key, each in known.items()}
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(self.result(each) for each in value)
        if is_dataclass(value) and not isinstance(value, type):
            before = {field.name: getattr(value, field.name) for field in fields(value)}
            after = {name: self.result(each) for name, each in before.items()}
            after |= {
                name: self.id(before[name]) for name in _IDS if isinstance(before.get(name), str)
            }
            return replace(value, **{n: v for n, v in after.items() if v is not before[n]})
        return value

    def annotation(self, one: Annotation) -> Annotation:
        """What a person said."""
        return replace(
            one,
            author=self.user(one.author),
            undone_by=one.undone_by and self.user(one.undone_by),
            value=(self.user if one.field == "assignee" else self.text)(one.value),
        )

    def alert(self, one: Alert) -> Alert:
        """What a rule told; what people call it by (its target) stays."""
        return replace(
            one,
            owner=one.owner and self.user(one.owner),
            sentence=self.sentence(one.sentence, one.owner, one.named),
            named=self.named(one.named),
            resolved_by=one.resolved_by and self.user(one.resolved_by),
        )

    def delivery(self, one: Delivery) -> Delivery:
        """What a receiver said of a message: mail servers repeat the address."""
        owner = one.message.get("to", "").partition("@")[0]
        return replace(one, said=one.said and self.sentence(one.said, owner or None, {}))

    def nested(self, value: Any) -> Any:
        """Texts anywhere inside evidence."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.nested(each) for each in value]
        if isinstance(value, dict):
            return {key: self.nested(each) for key, each in value.items()}
        return value

    def _of_addresses(self) -> dict[str, Callable[[str], str]]:
        """What writes that of an address which names people."""
        return {"user": self.user, "run": self.id, "job": self.id, "account": self.account}

    def _writers(self, columns: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """The columns there are that name people, and what writes their values."""
        writers: dict[str, Callable[[Any], Any]] = {
            "user": self.user, "account": self.account, "job": self.job, "id": self.id,
            "text": self.text, "nested": self.nested,
        }  # fmt: skip
        for column, kind in (people() | _STATE_COLUMNS).items():
            if column in columns:
                yield column, _of_text(writers[kind], nested=kind == "nested")


class Pseudonyms(Names):
    """Keyed hashes in place of names."""

    def __init__(self, hidden: Hidden) -> None:
        self._key = hidden.key
        self._known: dict[str, tuple[str, str]] = {}
        known = hidden.people
        for kind, names in (
            ("job", known.jobs),
            ("account", known.accounts),
            ("user", known.users),
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

    def id(self, text: str) -> str:
        """Namespace and name of a job of Kubernetes, each as elsewhere; other ids as they are."""
        namespace, slash, name = text.partition("/")
        if not slash:
            return self.text(text)
        name, *again = name.rsplit("#", 1)  # of a run whose id came again
        return "#".join([f"{self.account(namespace)}/{self.job(name)}", *again])

    def target(self, text: str) -> str:
        """Keyed anew where it is a hash of names: without a key a guess could be tested."""
        kind, dash, digest = text.rpartition("-")
        if not (dash and text.startswith("action:")):
            return text
        keyed = hmac.digest(self._key, digest.encode(), "sha256").hex()
        return f"{kind}-{keyed[: len(digest)]}"

    def sentence(self, text: str, owner: str | None, named: Mapping[str, str]) -> str:
        """A text without the names of the store, without the owner and what the address names even
        where that is a number, and without whose mail it is.
        """
        writers = self._of_addresses()
        stated = {name: writers[key](name) for key, name in named.items() if key in writers}
        stated |= {owner: self.user(owner)} if owner else {}
        exact = {
            name: written
            for name, written in stated.items()
            if name and written != name and self.text(name) == name
        }
        exact |= {
            box[1]: self.user(box[1])
            for box in _MAILBOX.finditer(text)
            if self.text(box[1]) == box[1]
        }
        if not exact:
            return self.text(text)
        names = "|".join(re.escape(name) for name in sorted(exact, key=len, reverse=True))
        whole = re.compile(rf"(?<![^\W_])(?<!\d[.,])({names})(?![^\W_])(?![.,]\d)")
        parts = whole.split(text)  # what lies between, and each name
        written = [exact[part] if n % 2 else self.text(part) for n, part in enumerate(parts)]
        return "".join(written)

    def text(self, text: str) -> str:
        """A record without the names of the store, and without the owners of home folders."""
        parts, done = [], 0
        for home in _HOME.finditer(text):
            kind, name = self._known.get(home[1], ("user", home[1]))
            parts += [self._without_names(text[done : home.start(1)]), self._of(kind, name)]
            done = home.end(1)
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


def hidden(store: Store) -> Hidden:
    """Names of users, accounts and jobs, with the store's key; made where there is none yet."""
    state, known = State(store.root), stored.people(store)
    history = state.history()
    authors = {name for one in history for name in (one.author, one.undone_by) if name}
    authors |= {one.value for one in history if one.field == "assignee"}
    return Hidden(replace(known, users=known.users | authors), state.redaction_key())


def names(store: Store, *, redact: bool) -> Names:
    """Names as they are, or their pseudonyms."""
    return Pseudonyms(hidden(store)) if redact else Names()


def redacting(ask: Ask, names: Names) -> Ask:
    """Asks likewise, and writes the names in what a question returns as `names` says."""
    if not isinstance(names, Pseudonyms):
        return ask

    def written(question: Any, *args: Any, **kwargs: Any) -> Any:
        return names.result(ask(question, *args, **kwargs))

    return cast("Ask", written)


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
