"""Records of JSON: a list, one an object, or in a list that a larger object holds.

A file is read piece by piece, so that its size does not matter. One that is cut off gives all
records before the cut, and the cut one as broken.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.formats.json_text import depth, end_of_value, members, without_lone_surrogates
from data.ingest.reader import RAW_LIMIT, RecordError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from data.ingest.reader import Source
    from data.limits import Limits

_PIECE = 1 << 16
"""Characters that are read at once; as many again where a value is longer."""
_BEHIND = 1 << 12
"""Characters already read that are held at most: of each mistake the decoder counts their lines."""
_SPACE = re.compile(r"[\s,]*")
_DECODE = json.JSONDecoder(strict=False).raw_decode
NO_JSON, CUT_OFF = "no JSON", "cut off before its end"


class Found(NamedTuple):
    """A record where it stands."""

    line_no: int
    """Where it begins, from 1."""
    raw: str
    """Its text; of a broken one the beginning."""
    value: object
    """A RecordError where it cannot be read."""


class JsonRecords:
    """The records of a file, of which a piece is held at a time.

    Parameters
    ----------
    keys : collection of str
        Keys of the list of records in an object around them; the object of such a key is gone into.
    grouped : bool
        Whether the objects of a list may stand around records, too.
    """

    def __init__(
        self, source: Source, keys: Collection[str], limits: Limits, *, grouped: bool = False
    ) -> None:
        self._path, self._keys, self._limits, self._grouped = source.path, keys, limits, grouped
        self._n_around = 0
        self.around: dict[str, object] = {}
        """What else stands in the objects around the records, as far as it was read."""
        self.is_cut = False
        """Whether the file ends before its lists and objects do, or cannot be read further."""

    def __iter__(self) -> Iterator[Found]:
        """Every record; nothing behind one that has no end."""
        self._text, self._at, self._line_no = "", 0, 1
        self.is_cut, self._n_around = False, 0
        with self._path.open(encoding="utf-8-sig", errors="replace", newline="") as self._stream:
            while not self.is_cut and (sign := self._sign()):
                if sign == "[":
                    yield from self._list()
                elif sign == "{":
                    yield from self._object()
                else:
                    yield self._no_value()

    def notices(self) -> list[str]:
        """What the user should know, once all was read."""
        return ["the JSON ends early: what precedes that was read"] if self.is_cut else []

    def _list(self) -> Iterator[Found]:
        """The records of a list."""
        self._pass(1)
        around = self.around
        while not self.is_cut and (sign := self._sign()) != "]":
            if not sign:
                self.is_cut = True
                return
            if self._grouped and sign == "{":
                self.around = dict(around)
                yield from self._object()
            else:
                yield self._value()
        if not self.is_cut:
            self._pass(1)

    def _object(self) -> Iterator[Found]:
        """The records of an object, which is one itself where it has none of the keys."""
        if self._n_around >= self._limits.json_depth or not self._is_around():
            yield self._value()
            return
        self._n_around += 1
        self._pass(1)
        while (sign := self._sign()) != "}":
            key = self._value() if sign == '"' else None
            if key is None or isinstance(key.value, RecordError) or self._sign() != ":":
                self.is_cut = True
                if sign:
                    yield self._broken(NO_JSON if self._sign() else CUT_OFF)
                return
            self._pass(1)
            sign = self._sign()
            inside = sign if str(key.value) in self._keys else ""
            if inside == "[":
                yield from self._list()
            elif inside == "{":
                yield from self._object()
            else:
                beside = self._value()
                if isinstance(beside.value, RecordError):
                    yield beside
                else:
                    self.around[str(key.value)] = beside.value
            if self.is_cut:
                return
        self._pass(1)
        self._n_around -= 1

    def _is_around(self) -> bool:
        """Whether the object here holds a list of records, or is too long to be one of them."""
        while True:
            try:
                value, _ = _DECODE(self._text, self._at)
            except RecursionError:
                return False
            except ValueError:
                if self._has_key():
                    return True
                too_long = len(self._text) - self._at > self._limits.line_bytes
                if too_long or not self._read_on():
                    return False
                continue
            return any(isinstance(value.get(key), list | dict) for key in self._keys)

    def _has_key(self) -> bool:
        """Whether the object here, as far as it is held, has one of the keys itself.

        A record deep inside of which such a key stands is none around others.
        """
        return any(
            key in self._keys and self._text[at] in "[{"
            for key, at in members(self._text, self._at)
        )

    def _value(self) -> Found:
        """The value that begins here, which is passed."""
        while True:
            try:
                value, end = _DECODE(self._text, self._at)
            except (RecursionError, ValueError) as error:
                end_of_broken = end_of_value(self._text, self._at)
                too_deep = isinstance(error, RecursionError)
                if end_of_broken is not None:
                    reason = self._limits.depth_reason if too_deep else NO_JSON
                    return self._taken(end_of_broken, RecordError(reason))
                too_long = len(self._text) - self._at > self._limits.line_bytes
                if not too_long and self._read_on():
                    continue
                self.is_cut = True
                without_end = self._limits.line_reason if too_long else CUT_OFF
                return self._broken(self._limits.depth_reason if too_deep else without_end)
            if end == len(self._text) and self._read_on():
                continue  # a number may go on
            text = self._text[self._at : end]
            if depth(text, self._limits.json_depth) > self._limits.json_depth:
                value = RecordError(self._limits.depth_reason)
            elif (whole := without_lone_surrogates(text)) is not text:
                value, _ = _DECODE(whole)
            return self._taken(end, value)

    def _taken(self, end: int, value: object) -> Found:
        """What stands from here to a place, which is passed."""
        found = Found(self._line_no, self._text[self._at : end], value)
        self._pass(end - self._at)
        return found

    def _no_value(self) -> Found:
        """The rest of a line that is no JSON, which is passed."""
        while self._text.find("\n", self._at) < 0:
            if len(self._text) - self._at > self._limits.line_bytes or not self._read_on():
                break
        end = self._text.find("\n", self._at)
        return self._taken(len(self._text) if end < 0 else end, RecordError(NO_JSON))

    def _broken(self, reason: str) -> Found:
        """What stands here, which has no end."""
        return Found(
            self._line_no, self._text[self._at : self._at + RAW_LIMIT], RecordError(reason)
        )

    def _sign(self) -> str:
        """The next sign that is neither blank nor a comma; nothing at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._at)
            if found:
                self._pass(found.end() - self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def _pass(self, n: int) -> None:
        """Goes on behind so many characters."""
        self._line_no += self._text.count("\n", self._at, self._at + n)
        self._at += n
        if self._at > _BEHIND:
            self._text, self._at = self._text[self._at :], 0

    def _read_on(self) -> bool:
        """Holds more of the file, and no longer what is behind; whether there was more."""
        rest = self._text[self._at :]
        more = self._stream.read(max(_PIECE, len(rest)))
        self._text, self._at = rest + more, 0
        return bool(more)
