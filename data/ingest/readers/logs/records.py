"""Records of which each stands on a line: JSON, hashes of Fluent Bit, pairs of logfmt, CSV."""

from __future__ import annotations

import csv
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.formats.json_text import depth, without_lone_surrogates
from data.ingest.reader import RecordError
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_STRING = r'"(?:[^"\\]|\\.)*"'
_ARROW = re.compile(rf"({_STRING})\s*=>\s*")
_BARE_TIME = re.compile(r"(:\s*)(\d{4}-\d\d-\d\dT[^\s,}\]]+)")
"""A time as Ruby shows it, without quotation marks."""
_FLUENT = re.compile(r"\s*(?:[\w./-]+\s+){0,3}\[\d+\] \S+: (?=\[|\Z)")
"""What Fluent Bit writes before a record: its number in the batch, and the tag."""
_OBJECT = re.compile(r'\{\s*(?:\\?"|\Z|\})')
_WORDS = re.compile(
    rf"(?P<name>[A-Za-z@_][\w.@/-]*)=(?:(?P<text>{_STRING})|(?P<bare>[^\s\"]*))(?=\s|\Z)|\S+"
)
"""A pair of logfmt, or another word."""
_TOKENS = re.compile(rf'{_STRING}|"(?P<open>(?:[^"\\]|\\.)*)\\?\Z|[\[\]{{}},]', re.DOTALL)
_CELL = re.compile(r"[\w@. -]{1,40}(?: \[utc\])?")
_NAMED = re.compile(rf"(?P<name>[\w.]+)=(?P<text>{_STRING})")
_OF_CEF = re.compile(r"(?:\A|\s)(?P<name>\w+)=")
_BARS_OF_CEF, _BARS_OF_LEEF = 7, 5


def begins_json(text: str) -> int | None:
    """Where JSON begins on a line that consists of a prefix and JSON; None where none does.

    Examples
    --------
    >>> begins_json('data: {"MESSAGE": 1}'), begins_json("SXid (0): 1, Data {0x1}")
    (6, None)
    >>> begins_json('[0] kmsg.0: [[1772600767.1, {}], {"msg"=>"x"}]')
    12
    """
    if fluent := _FLUENT.match(text):
        return fluent.end()
    at = text.find("{")
    if at < 0 or not _OBJECT.match(text, at):
        return 0 if text.startswith(("[{", "{")) else None
    return at


def of_fluent_bit(before: str) -> bool:
    """Whether a text is what Fluent Bit writes before a record."""
    return _FLUENT.fullmatch(before) is not None


def values_in(text: str, kept: Collection[str], limits: Limits = DEFAULTS) -> Iterator[Any]:
    """The values of JSON; where it is cut off, what stands before the cut.

    `kept` are names of members whose text is kept where the cut goes through it: of others it
    would be taken for another value.

    Raises
    ------
    RecordError
        Where more brackets stand around a value than the limit allows.

    Examples
    --------
    >>> list(values_in('{"MESSAGE": "lost", "_HOSTNAME": "n1', {"message"}))
    [{'MESSAGE': 'lost'}]
    """
    if depth(text, limits.json_depth) > limits.json_depth:
        raise RecordError(limits.depth_reason)
    decoder, at = json.JSONDecoder(strict=False), 0
    text = without_lone_surrogates(text).strip()
    text, n_arrows = _ARROW.subn(r"\1: ", text) if "=>" in text else (text, 0)
    if n_arrows:
        text = _BARE_TIME.sub(r'\1"\2"', text)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if at and text[at] not in "{[":
                return
            for closed in _closed(text[at:], kept):
                with suppress(ValueError, RecursionError):
                    yield decoder.raw_decode(closed)[0]
                    return
            return
        yield value
        while at < len(text) and text[at] in ", \t\r\n\x1e":
            at += 1


def _closed(text: str, kept: Collection[str]) -> Iterator[str]:
    """JSON that was cut off, closed: whole, else without the member in which the cut lies.

    That is kept where its name is, or where its text or brackets end before the cut.
    """
    closing: list[str] = []
    without_last, name, name_end, ends_whole = "", "", 0, False
    for token in _TOKENS.finditer(text):
        mark, end = token[0], token.end()
        ends_whole = mark != ","
        if token["open"] is not None:
            is_value = text[name_end : token.start()].strip() == ":"
            if is_value and name.lower() in kept:
                yield text.removesuffix("\\") + '"' + "".join(reversed(closing))
            ends_whole = False
            break
        if mark[0] == '"':
            name, name_end = mark[1:-1], end
            continue
        if mark in "{[":
            closing.append("}" if mark == "{" else "]")
        elif mark == ",":
            end = token.start()
        elif closing:
            closing.pop()
        without_last = text[:end] + "".join(reversed(closing))
    if ends_whole and text.rstrip()[-1:] in '"]}':
        yield text + "".join(reversed(closing))
    yield without_last


def pairs_in(text: str, needed: Collection[str] = ()) -> tuple[int, dict[str, str]] | None:
    """Where pairs of logfmt begin that go on to the end of a line, and what they say.

    Of the names in `needed` one must be among them: else they are a part of a message.

    Examples
    --------
    >>> pairs_in('n1: host=n1 transport=kernel msg="a, b"')
    (4, {'host': 'n1', 'transport': 'kernel', 'msg': 'a, b'})
    >>> pairs_in("NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x, gone") is None
    True
    """
    if "CEF:" in text and (found := _pairs_of_cef(text)):
        return found
    if "LEEF:" in text and (found := _pairs_of_leef(text)):
        return found
    if '="' not in text:
        return None
    begin, pairs = len(text), dict[str, str]()
    for word in _WORDS.finditer(text):
        if word["name"] is None:
            begin, pairs = len(text), {}
            continue
        begin = min(begin, word.start())
        pairs[word["name"]] = word["bare"] if word["text"] is None else _unescaped(word["text"])
    is_record = len(pairs) > 1 and (not needed or any(name.lower() in needed for name in pairs))
    return (begin, pairs) if is_record else None


def _pairs_of_cef(text: str) -> tuple[int, dict[str, str]] | None:
    """The pairs of an event of ArcSight: behind seven bars, with values that may hold blanks."""
    at = text.index("CEF:")
    _, *fields = text[at:].split("|", _BARS_OF_CEF)
    if len(fields) < _BARS_OF_CEF:
        return None
    begins = [*_OF_CEF.finditer(pairs := fields[-1])]
    ends = [*(name.start() for name in begins[1:]), len(pairs)]
    return at, _product(fields) | {
        name["name"]: pairs[name.end() : end].replace("\\=", "=")
        for name, end in zip(begins, ends, strict=True)
    }


def _pairs_of_leef(text: str) -> tuple[int, dict[str, str]] | None:
    """The pairs of an event of QRadar: behind five bars, or six of which the last names a mark."""
    at = text.index("LEEF:")
    _, *fields = text[at:].split("|")
    if len(fields) < _BARS_OF_LEEF:
        return None
    begin, mark = _BARS_OF_LEEF - 1, "\t"
    if text.startswith("LEEF:2", at) and len(fields) > _BARS_OF_LEEF:
        mark, begin = _mark_of(fields[begin]), _BARS_OF_LEEF
    pairs = [pair.partition("=") for pair in "|".join(fields[begin:]).split(mark)]
    return at, _product(fields) | {name: said for name, sign, said in pairs if sign}


def _mark_of(written: str) -> str:
    """What stands between pairs: itself, or its number as x09 or 0x09.

    >>> _mark_of("^"), _mark_of("x5E"), _mark_of("")
    ('^', '^', '\\t')
    """
    number = re.fullmatch(r"0?x([0-9a-fA-F]{1,4})", written)
    return chr(int(number[1], 16)) if number else written or "\t"


def _product(fields: list[str]) -> dict[str, str]:
    """The program that the head of an event names, where it is the kernel."""
    return {"program": "kernel"} if fields[1].lower() == "kernel" else {}


def named_texts(text: str) -> dict[str, str]:
    """The pairs of a name and a quoted text, whatever stands between them.

    Examples
    --------
    >>> named_texts('host="n1", transport="kernel"')
    {'host': 'n1', 'transport': 'kernel'}
    """
    return {pair["name"]: _unescaped(pair["text"]) for pair in _NAMED.finditer(text)}


def _unescaped(quoted: str) -> str:
    """A text in quotation marks as it was before it was quoted."""
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:
        return quoted[1:-1]


class Table(NamedTuple):
    """A table in CSV whose rows hold lines of a log."""

    columns: list[str]
    """By its first line, in lower case."""
    delimiter: str

    def row(self, text: str) -> dict[str, str] | None:
        """The cells of a row by their columns; None where it is none, or the first line."""
        cells = _cells(text, self.delimiter)
        is_row = len(cells) >= len(self.columns) and [c.lower() for c in cells] != self.columns
        return dict(zip(self.columns, cells, strict=False)) if is_row else None


def table_of(text: str, messages: Collection[str]) -> Table | None:
    """The table that begins with this line; None where it names no column of messages.

    Examples
    --------
    >>> table_of('"@timestamp","@message"', {"@message"})
    Table(columns=['@timestamp', '@message'], delimiter=',')
    >>> table_of("a, message b", {"message"}) is None
    True
    """
    for delimiter in ",;":
        cells = [cell.strip().lower() for cell in _cells(text, delimiter)]
        if len(cells) > 1 and all(map(_CELL.fullmatch, cells)) and set(cells) & set(messages):
            return Table(cells, delimiter)
    return None


def _cells(text: str, delimiter: str) -> list[str]:
    """The cells of a line of CSV; none where it is no such line."""
    with suppress(csv.Error):
        return next(csv.reader([text], delimiter=delimiter), [])
    return []
