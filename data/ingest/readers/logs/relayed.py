"""Lines of a log that stand in records: of the journal, of containers' runtimes, of relays, stores.

A text may hold several records, a record several lines, and a line JSON again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import RecordError
from data.ingest.readers.logs.kernel_prefix import Prefix, prefix_of
from data.ingest.readers.logs.labels import (
    EPOCH,
    HOSTS,
    MESSAGES,
    OF_KERNEL,
    PROGRAMS,
    TIMES,
    TRANSPORTS,
    labels_of,
    nanoseconds,
)
from data.ingest.readers.logs.records import columns_of, of_fluent_bit, values_in
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TEXTS = frozenset({
    *MESSAGES, "_msg", "line", "text", "raw", "_raw", "original", "body", "stringvalue", "content",
    "short_message", "full_message", "@message", "textpayload", "payload", "logline", "data",
    "event",
})  # fmt: skip
"""Names under which a record keeps the line itself."""
_HOSTS = (*HOSTS, "kubernetes_host", "syslog_hostname", "source_host", "_host", "nodename")
_TIMES = (*TIMES, "_time", "ts", "date", "timeunixnano", "observedtimeunixnano", "eventtime")
_WRITERS = (
    *TRANSPORTS, *PROGRAMS, "ident", "process_name", "app_name", "app", "programname", "process",
    "logger", "caller", "syslog_appname", "syslog_program", "unit", "_comm",
)  # fmt: skip
"""Names under which a record says which program wrote the line."""
_HOLDERS = frozenset({"stream", "labels", "fields", "_source", "attributes", "kubernetes"})
"""Names of objects whose labels belong to the lines beside them."""
_ASIDE = frozenset({
    "health_check", "checkname", "alertname", "rule", "alert", "test", "query", "command", "cmd",
    "involvedobject_kind", "regarding_kind", "channel", "title", "subject",
})  # fmt: skip
"""Names in what monitors, tests and people write about a line."""
_BEFORE = re.compile(r"(?:(?P<stamped>.*\S)\s+)?(?P<tag>[\w.*/-]+)(?:\[\d+\])?:\s*")
_RELAYS = re.compile(r"fluent|td-agent|vector|promtail|filebeat|otel|logstash|alloy|syslog", re.I)
_TAGGED = re.compile(r".{0,120}\bkernel(?:\[\d+\])?: ")
_FRACTION = re.compile(r"\d{9,10}\.\d+")
_DEEPEST = 4
"""JSON in JSON in JSON; the limit of depth holds in each."""


class Said(NamedTuple):
    """A line, and what the record around it says."""

    text: str
    beside: Prefix | None
    """Host and time; None where another program than the kernel wrote it."""


def said_in(text: str, at: int, limits: Limits = DEFAULTS) -> list[Said]:
    """The lines in the JSON that begins at a place.

    Raises
    ------
    RecordError
        Where it is broken, too deep, or holds no line.
    """
    around = _around(text[:at])
    if around is None:
        return [Said(text[at:], None)]
    said: list[Said] = []
    for value in values_in(text[at:], _TEXTS, limits):
        said += _once(_lines(value, around, limits))
    if not said:
        raise RecordError("broken JSON line of the journal")
    return said


def _once(lines: Iterable[Said]) -> list[Said]:
    """The lines of a record, without one that it keeps a second time with or without its prefix."""
    kept: list[Said] = []
    for line in lines:
        last = kept[-1] if kept else None
        if (
            last is None
            or last.beside != line.beside
            or not (last.text.endswith(line.text) or line.text.endswith(last.text))
        ):
            kept.append(line)
    return kept


def said_by_entry(fields: Mapping[str, Any], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines of an entry of the journal of which each field stood on a line of its own."""
    return list(_lines(dict(fields), {}, limits))


def said_in_pairs(before: str, pairs: Mapping[str, str], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines in pairs of logfmt, which any program writes: the kernel's where it is named."""
    around = _around(before)
    named = {pairs[name].lower() for name in (*_WRITERS, "facility") if name in pairs}
    lines = list(_lines(dict(pairs), around or {}, limits))
    if around is not None and named & OF_KERNEL:
        return lines
    return [line if _TAGGED.match(line.text) else Said(line.text, None) for line in lines]


def said_in_cells(cells: Mapping[str, str], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines in a row of a table."""
    return list(_lines(dict(cells), {}, limits))


def columns_in(text: str) -> list[str]:
    """The columns of a table whose rows hold lines of a log, where a line names them."""
    return columns_of(text, _TEXTS)


def _around(before: str) -> dict[str, str] | None:
    """Labels that the text before JSON gives; None where a program writes JSON of its own."""
    if before.strip() in ("", "data:", "[") or of_fluent_bit(before):
        return {}
    tagged = _BEFORE.fullmatch(before)
    try:
        prefix = prefix_of(before)
        if prefix is None and tagged and _RELAYS.search(tagged["tag"]):
            prefix = prefix_of(f"{tagged['stamped']} ")
    except RecordError:
        prefix = None
    if prefix is None and tagged and tagged["stamped"]:  # fluentd puts time and tag before
        with suppress(RecordError):
            stamped = prefix_of(tagged["stamped"] + " ")
            prefix = stamped if stamped and "." in tagged["tag"] and not stamped.host else None
    if prefix is None:
        return None
    labels = {"host": prefix.host} if prefix.host else {}
    if prefix.time is not None and prefix.time.tzinfo is not None:
        labels["time"] = prefix.time.isoformat()
    return labels


def _lines(value: Any, around: dict[str, str], limits: Limits, depth_: int = 0) -> Iterator[Said]:
    """The lines in a value, of which `around` says what the objects around it do."""
    if isinstance(value, list):
        timed = _timed(value)
        if timed is None:
            for one in value:
                yield from _lines(one, around, limits, depth_)
        elif isinstance(timed.said, str):
            yield from _line(timed.said, around | timed.labels, limits, depth_)
        else:
            yield from _lines(timed.said, around | timed.labels, limits, depth_)
    if not isinstance(value, dict):
        return
    labels = _within(around, _labels(value))
    for name, inner in value.items():
        if name.lower() in _TEXTS and isinstance(inner, str):
            yield from _line(inner, labels, limits, depth_)
        elif name == "MESSAGE" and isinstance(inner, list):
            yield from _line(_bytes(inner), labels, limits, depth_)
        elif isinstance(inner, dict | list) and name != "attributes":
            yield from _lines(inner, labels, limits, depth_)


class _Timed(NamedTuple):
    """What a relay writes as a pair of time and line, or time and record."""

    labels: dict[str, str]
    said: Any


def _timed(values: list[Any]) -> _Timed | None:
    """Such a pair: of Loki, or of Fluent Bit, which may write the time with labels in a list."""
    if len(values) < 2:
        return None
    if isinstance(values[0], str) and isinstance(values[1], str):
        return _Timed({"@timestamp": values[0]}, values[1])
    at = values[0][0] if isinstance(values[0], list) and values[0] else values[0]
    if isinstance(at, int | float) and isinstance(values[1], dict):
        return _Timed({"time": f"{at:.6f}"}, values[1])
    return None


def _within(around: Mapping[str, str], own: dict[str, str]) -> dict[str, str]:
    """Labels of a record and of those around it, whose host and time give way to its own."""
    told = [names for names in (_HOSTS, _TIMES) if any(own.get(name) for name in names)]
    return {k: v for k, v in around.items() if not any(k in names for names in told)} | own


def _line(text: str, labels: dict[str, str], limits: Limits, depth_: int) -> Iterator[Said]:
    """A line, or those of the JSON in it."""
    if text.lstrip().startswith("{") and depth_ < _DEEPEST:
        for value in values_in(text.lstrip(), _TEXTS, limits):
            yield from _lines(value, labels, limits, depth_ + 1)
    else:
        yield Said(text, _beside(labels))


def _bytes(value: list[Any]) -> str:
    """MESSAGE as text: the journal writes what is no plain text as an array of bytes."""
    if value and not isinstance(value[0], int):  # the field stands twice in the entry
        return _bytes(value[0]) if isinstance(value[0], list) else str(value[0])
    try:
        return bytes(value).decode("utf-8", errors="replace")
    except (ValueError, TypeError):
        raise RecordError("broken JSON line of the journal") from None


def _labels(record: dict[str, Any]) -> dict[str, str]:
    """What a record says of the lines in it, and of those in objects inside it."""
    labels = labels_of(record) | _attributes(record)
    for name in _HOLDERS & record.keys():
        if isinstance(record[name], dict):
            labels |= labels_of(record[name])
    return labels


def _attributes(record: Mapping[str, Any]) -> dict[str, str]:
    """Labels that OpenTelemetry writes as pairs of key and value, of a record or its resource."""
    found: dict[str, str] = {}
    resource = record.get("resource")
    for holder in (resource if isinstance(resource, dict) else {}, record):
        pairs = holder.get("attributes")
        for pair in pairs if isinstance(pairs, list) else ():
            if isinstance(pair, dict) and isinstance(pair.get("value"), dict):
                values = [str(one) for one in pair["value"].values()]
                found |= {str(pair.get("key")).lower().replace(".", "_"): one for one in values}
    return found


def _beside(labels: Mapping[str, str]) -> Prefix | None:
    """Host and time that the labels of a line say; None where another program wrote it."""
    writers = {labels[name].lower() for name in _WRITERS if labels.get(name)}
    if (writers and not writers & OF_KERNEL) or _ASIDE & labels.keys():
        return None
    host = next((labels[name] for name in _HOSTS if labels.get(name)), None)
    said = next((labels[name] for name in _TIMES if labels.get(name)), None)
    return Prefix(host, None if said is None else _instant(said))


def _instant(text: str) -> datetime:
    """A time; RecordError where it is none."""
    try:
        if _FRACTION.fullmatch(text):
            return EPOCH + timedelta(seconds=float(text))
        return EPOCH + timedelta(microseconds=nanoseconds(text) // 1_000)
    except (RecordError, OverflowError):
        raise RecordError("impossible date") from None
