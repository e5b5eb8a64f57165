"""Answers of the site's language model in state.sqlite, and what they cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from data.errors import DataError
from data.language_model import Reply
from data.state import State, audited, now

if TYPE_CHECKING:
    from data.site import LanguageModel

ACTION = "ask model"
"""What the audit calls it: a line for each time that something is sent."""
MOST_KEPT = 4_001
"""Characters of an answer: one more than may count, so that a longer one stays void."""
_PREFIX = "opinion:"
_SPENT = """
SELECT (SELECT count(*) FROM audit WHERE action = :action),
  coalesce(sum(tokens), 0), coalesce(sum(tokens IS NULL), 0)
FROM (SELECT json_extract(value, '$.tokens') AS tokens FROM facts WHERE name LIKE 'opinion:%')
"""


@dataclass(frozen=True)
class Spent:
    """What a store asked of language models in all."""

    calls: int = 0
    """Times that something was sent, those without an answer among them."""
    tokens: int = 0
    """Of question and answer, as far as servers counted them."""
    uncounted: int = 0
    """Answers whose tokens no server counted."""


class Opinions(State):
    """The answers that one store keeps."""

    def of(self, sha256: str) -> Reply | None:
        """The answer to a question by its hash; None where it was not answered yet."""
        sql = "SELECT value FROM facts WHERE name = :name"
        rows = self._read(sql, {"name": _PREFIX + sha256})
        return Reply(**json.loads(rows[0][0])) if rows else None

    def begin(self, model: LanguageModel, detail: dict[str, Any], *, author: str) -> None:
        """Takes down that a question is sent, before it is; without that line none is.

        Raises
        ------
        DataError
            Where as many were sent today as site.toml allows, or nothing can be written.
        """
        moment = now()
        with self._writing() as connection:
            (sent,) = connection.execute(
                "SELECT count(*) FROM audit WHERE action = ? AND made_at >= ?",
                (ACTION, moment[:10]),
            ).fetchone()
            if sent >= model.calls_a_day:
                raise DataError(
                    f"the language model was asked {sent:,} times today (UTC), which is all that "
                    "language_model.calls_a_day of site.toml allows: ask tomorrow, or raise it"
                )
            told = {"address": model.address, "model": model.model, **detail}
            audited(connection, author, ACTION, told)

    def keep(self, sha256: str, reply: Reply) -> None:
        """Keeps an answer under the hash of its question."""
        kept = Reply(reply.text[:MOST_KEPT], reply.tokens)
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO facts VALUES (?, ?)",
                (_PREFIX + sha256, json.dumps(asdict(kept))),
            )

    def spent(self) -> Spent:
        """Calls and tokens of all time."""
        rows = self._read(_SPENT, {"action": ACTION})
        return Spent(*rows[0]) if rows else Spent()
