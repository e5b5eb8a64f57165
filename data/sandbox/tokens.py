"""The words of a query, as DuckDB's own tokenizer tells them apart."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import _duckdb as duckdb

_OPENING, _CLOSING = ("(", "[", "{", "CASE"), (")", "]", "}", "END")
_PIVOTS = ("PIVOT", "PIVOT_WIDER")
_AFTER_COLUMNS = ("USING", "GROUP", "ORDER", "LIMIT", "OFFSET")
_ENDING = ("UNION", "EXCEPT", "INTERSECT", ";")
_ANY_VALUES = b") IN any_values"
"""As the name of a type: it fits any number of columns."""


class Token(NamedTuple):
    """A word, sign, text or remark, with the offset in bytes of its begin and its end."""

    begin: int
    end: int
    text: str
    is_comment: bool
    is_text: bool


def of(sql: str) -> list[Token]:
    """The tokens of a query, without the blanks between them."""
    text = sql.encode()
    found = duckdb.tokenize(sql)
    tokens = []
    for (begin, kind), (end, _) in pairwise([*found, (len(text), None)]):
        word = text[begin:end].rstrip()
        is_text = kind == duckdb.token_type.string_const
        is_comment = kind == duckdb.token_type.comment
        tokens.append(
            Token(begin, begin + len(word), word.decode(errors="replace"), is_comment, is_text)
        )
    return tokens


def without_comments(sql: str) -> str:
    """The query with blanks in place of its remarks: whatever else is in it keeps its place.

    >>> without_comments("SELECT 1 -- one")
    'SELECT 1       '
    """
    blanks = (
        (token.begin, token.end, b" " * (token.end - token.begin))
        for token in of(sql)
        if token.is_comment
    )
    return _replaced(sql, blanks)


def with_variables(sql: str, names: Iterable[str]) -> str:
    """The query with variables in place of the parameters of these names.

    >>> with_variables("SELECT $a, '$a', $ab", ["a"])
    "SELECT getvariable('a'), '$a', $ab"
    """
    tokens, known = of(sql), set(names)
    called = (
        (sign.begin, name.end, f"getvariable('{name.text}')".encode())
        for sign, name in pairwise(tokens)
        if sign.text == "$" and sign.end == name.begin and name.text in known
    )
    return _replaced(sql, called)


def with_pivot_values(sql: str) -> str:
    """The query with a value for each column of a PIVOT that names none; to be read, never run.

    Where the values of a PIVOT are to be found, DuckDB makes several statements of it and tells
    nothing of what is in them. With values it is one, which can be judged.

    >>> with_pivot_values("PIVOT jobs ON year, state IN ('FAILED') USING count(*)")
    "PIVOT jobs ON (year) IN any_values, state IN ('FAILED') USING count(*)"
    """
    open_ones = [entry for entry in _pivoted(of(sql)) if not any(map(_is_in, entry))]
    added = [(entry[0].begin, b"(") for entry in open_ones]
    added += [(entry[-1].end, _ANY_VALUES) for entry in open_ones]
    return _replaced(sql, [(place, place, other) for place, other in sorted(added)])


def _is_in(token: Token) -> bool:
    return token.text.upper() == "IN" and not token.is_text


@dataclass
class _Level:
    """What stands between two brackets: the columns of the PIVOT that was begun last in it."""

    in_pivot: bool = False
    in_columns: bool = False
    entries: list[list[Token]] = field(default_factory=list)
    """Tokens of each column, of what stands in brackets only these."""

    def add(self, token: Token) -> None:
        """Adds a token to the column that is under way."""
        if self.in_columns:
            self.entries[-1].append(token)

    def ended(self) -> list[list[Token]]:
        """The columns, where the PIVOT ends."""
        found = [entry for entry in self.entries if entry]
        self.in_pivot, self.in_columns, self.entries = False, False, []
        return found


def _pivoted(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each column that a PIVOT names; the last ON counts, for those of joins come
    before it."""
    found: list[list[Token]] = []
    levels = [_Level()]
    for token in tokens:
        level, word = levels[-1], "" if token.is_text else token.text.upper()
        if word in _OPENING:
            level.add(token)
            levels.append(_Level())
        elif word in _CLOSING and len(levels) > 1:
            found += levels.pop().ended()
            levels[-1].add(token)
        elif word in _PIVOTS or word in _ENDING:
            found += level.ended()
            level.in_pivot = word in _PIVOTS
        elif word == "ON" and level.in_pivot:
            level.in_columns, level.entries = True, [[]]
        elif word in _AFTER_COLUMNS:
            level.in_columns = False
        elif word == "," and level.in_columns:
            level.entries.append([])
        elif not token.is_comment:
            level.add(token)
    return found + [entry for level in levels for entry in level.ended()]


def _replaced(sql: str, pieces: Iterable[tuple[int, int, bytes]]) -> str:
    """The query with other bytes from one offset to another, in their order."""
    text, begun, parts = sql.encode(), 0, []
    for begin, end, other in pieces:
        parts += [text[begun:begin], other]
        begun = end
    return b"".join([*parts, text[begun:]]).decode()
