"""Lines of a log that stand in records: of the journal, of containers' runtimes, of relays, stores.

A text may hold several records, a record several lines, and a line JSON again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import RecordError
from data.ingest.readers.logs.kernel_prefix import prefix_of
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
from data.ingest.readers.logs.loose_prefix import loose_prefix
from data.ingest.readers.logs.prefix import Prefix
from data.ingest.readers.logs.records import (
    Table,
    named_texts,
    of_fluent_bit,
    pairs_in,
    table_of,
    values_in,
)
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TEXTS = frozenset({
    *MESSAGES, "_msg", "line", "text", "raw", "_raw", "original", "body", "stringvalue", "content",
    "short_message", "full_message", "@message", "textpayload", "payload", "logline", "data",
    "event", "syslogmessage", "renderedmessage", "value", "output",
})  # fmt: skip
"""Names under which a record keeps the line itself."""
_HOSTS = (
    *HOSTS, "kubernetes_host", "syslog_hostname", "source_host", "_host", "syslog_host",
    "compute_googleapis_com/resource_name", "resource_name", "vm_name", "dvchost", "logsource",
)  # fmt: skip
_TIMES = (
    *TIMES, "_time", "ts", "date", "timeunixnano", "observedtimeunixnano", "eventtime",
    "timegenerated", "timegenerated [utc]", "zeit", "isodate", "rt", "devtime",
)  # fmt: skip
_WRITERS = (
    *TRANSPORTS, *PROGRAMS, "ident", "process_name", "app_name", "app", "programname", "process",
    "logger", "caller", "syslog_appname", "syslog_program", "unit", "_comm", "_application",
    "application", "application_name", "processname", "_app_name", "programm",
    "deviceprocessname",
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
_FACILITY = re.compile(r"(?:\w+\.)?\bkern\.\w+:?\s*\Z")
_OF_GRAFANA = re.compile(r"(?:[^\t]*\t)?(?P<time>\d{4}-\S+)\t(?P<labels>\{[^\t]*\})\t(?P<line>.*)")
_LAST_TIME = re.compile(r"\s\d{4}-\d\d-\d\d[T ][\d:.]+(?: ?[+-]\d\d:?\d\d|Z)\s*\Z")
_LABELLED = re.compile(
    r'(?P<time>\d{4}-\S+)\s+\{(?P<labels>(?:[\w.]+="(?:[^"\\]|\\.)*",?\s*)+)\}\s*(?P<line>.*)'
)
_OF_FABRIC = OF_KERNEL - {"kernel", "kern"}
_FACILITIES = ("syslog_facility", "facility", "syslog_facility_code", "syslog_facility_label")
_OF_PROGRAMS = frozenset({"syslog", "stdout", "journal"})
"""How the journal received what it did not read from the kernel."""
_TAGGED = re.compile(r".{0,120}\bkernel(?:\[\d+\])?: ")
_HOST = re.compile(r"(?=[A-Za-z._]*[\d-])[A-Za-z][\w.-]*|\d+(?:\.\d+){3}")
"""What a record may call its source, as Graylog does, where that is no file or stream."""
_OF_AMERICA = re.compile(
    r"(?P<day>\d{1,2}/\d{1,2}/\d{4}),? (?P<clock>\d{1,2}:\d\d:\d\d)(?:\.\d+)? (?P<half>[AP]M)"
)
_NAMES_HOST = re.compile(
    r"(?:\A|resource_?attributes_|attributes_|tag__:_*)(?:host_?name|nodename|host|guest)_*\Z"
)
_NAMES_TIME = re.compile(r"\A_*(?:timestamp|time|ts|t)_*\Z")
"""Names that no list knows: a resource's host, a tag's, a time of the record itself."""
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
        said += _lines(value, around, limits)
    if not said:
        raise RecordError("broken JSON line of the journal")
    return said


def _once(lines: Iterable[Said]) -> list[Said]:
    """The lines of a record, without one that it keeps a second time with or without its prefix."""
    kept: list[Said] = []
    for line in lines:
        text = line.text.strip()
        again = next((n for n, one in enumerate(kept) if _are_one(one.text.strip(), text)), None)
        if again is None:
            kept.append(line)
            continue
        longer, other = sorted((kept[again], line), key=lambda one: -len(one.text))
        kept[again] = longer if longer.beside is not None else longer._replace(beside=other.beside)
    return kept


def _are_one(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one)


def said_by_entry(fields: Mapping[str, Any], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines of an entry of the journal of which each field stood on a line of its own."""
    return list(_lines(dict(fields), {}, limits))


def said_in_pairs(before: str, pairs: Mapping[str, str], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines in pairs of logfmt, which any program writes: the kernel's where it is named."""
    around = _around(before)
    named = _of({name.lower(): said for name, said in pairs.items()}, (*_WRITERS, "facility"))
    lines = list(_lines(dict(pairs), around or {}, limits))
    if around is not None and (named & OF_KERNEL or _FACILITY.search(before)):
        return lines
    return [line if _TAGGED.match(line.text) else Said(line.text, None) for line in lines]


def said_of_labels(text: str, limits: Limits = DEFAULTS) -> list[Said] | None:
    """The line behind a time and labels, as clients of Loki print it; None where none is.

    Examples
    --------
    >>> said_of_labels('2026-03-04T05:06:07Z {host="n1", transport="kernel"} lost')[0].beside.host
    'n1'
    """
    if "\t{" in text and (table := _OF_GRAFANA.fullmatch(text)):
        inner: Any = next(values_in(table["labels"], ()), None)
        labels = labels_of(inner if isinstance(inner, dict) else {}) | {"time": table["time"]}
        return list(_line(table["line"], labels, limits, 0))
    found = _LABELLED.fullmatch(text) if '="' in text else None
    if found is None:
        return None
    labels = labels_of({**named_texts(found["labels"]), "time": found["time"]})
    return list(_line(found["line"], labels, limits, 0))


def said_in_cells(cells: Mapping[str, str], limits: Limits = DEFAULTS) -> list[Said]:
    """The lines in a row of a table."""
    return list(_lines(dict(cells), {}, limits))


def table_in(text: str) -> Table | None:
    """The table whose columns a line names, where its rows hold lines of a log."""
    return table_of(text, _TEXTS)


def pairs_with_a_line(text: str) -> tuple[int, dict[str, str]] | None:
    """Where pairs begin of which one holds a line of a log; see `pairs_in`."""
    return pairs_in(text, _TEXTS)


def _around(before: str) -> dict[str, str] | None:
    """Labels that the text before JSON gives; None where a program writes JSON of its own."""
    before, n_kernel = _FACILITY.subn("", before)
    if before.strip() in ("", "data:", "[", "@cee:") or of_fluent_bit(before):
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
    if prefix is None and n_kernel and (last := _LAST_TIME.search(before)):
        prefix = prefix_of(f"{last[0].strip()} ")
    prefix = prefix or loose_prefix(before, marked=True)
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
    if isinstance(value, dict):
        yield from _of_record(value, around, limits, depth_)


def _of_record(
    value: dict[str, Any], around: dict[str, str], limits: Limits, depth_: int
) -> Iterator[Said]:
    """The lines in an object, those of lists in it last."""
    labels = _within(around, _labels(value))
    own: list[Said] = []
    for name, inner in value.items():
        if name.lower() in _TEXTS and isinstance(inner, str):
            own += _line(inner, labels, limits, depth_)
        elif name == "MESSAGE" and isinstance(inner, list):
            own += _line(_bytes(inner), labels, limits, depth_)
        elif isinstance(inner, dict) and (name != "attributes" or "message" in inner):
            own += _lines(inner, labels, limits, depth_)
    yield from _once(own)
    for name, inner in value.items():
        if isinstance(inner, list) and name not in ("attributes", "MESSAGE"):
            yield from _listed(name, inner, labels, limits, depth_)


def _listed(
    name: str, values: list[Any], labels: dict[str, str], limits: Limits, depth_: int
) -> Iterator[Said]:
    """The lines in a list under a name; Ansible keeps a command's output as a list of lines."""
    if not name.endswith("_lines") or not all(isinstance(value, str) for value in values):
        yield from _lines(values, labels, limits, depth_)
        return
    for line in values:
        yield from _line(line, labels, limits, depth_)


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
    writers = _of(labels, _WRITERS)
    if (writers and not writers & OF_KERNEL) or _ASIDE & labels.keys():
        return None
    if _of(labels, TRANSPORTS) & _OF_PROGRAMS and not (
        writers & _OF_FABRIC or _of(labels, _FACILITIES) & {"0", "kern"}
    ):
        return None  # a program that called itself the kernel
    host = next((labels[name] for name in _HOSTS if labels.get(name)), None)
    told = {said for name, said in labels.items() if said and _NAMES_HOST.search(name)}
    host = host or (told.pop() if len(told) == 1 else None)
    if host is None and _HOST.fullmatch(labels.get("source", "")):
        host = labels["source"]
    said = next((labels[name] for name in _TIMES if labels.get(name)), None)
    said = said or next((at for name, at in labels.items() if _NAMES_TIME.search(name)), None)
    return replace(Prefix() if said is None else _when(said), host=host)


def _of(labels: Mapping[str, str], names: Iterable[str]) -> set[str]:
    return {labels[name].lower() for name in names if labels.get(name)}


def _when(text: str) -> Prefix:
    """The time that a text says; none where it says none that exists."""
    with suppress(RecordError, OverflowError):
        if _FRACTION.fullmatch(text):
            return Prefix(time=EPOCH + timedelta(seconds=float(text)))
        return Prefix(time=EPOCH + timedelta(microseconds=nanoseconds(text) // 1_000))
    with suppress(RecordError, ValueError):
        if by_clock_of_12 := _OF_AMERICA.fullmatch(text):
            day_and_clock = "{day} {clock} {half}".format_map(by_clock_of_12.groupdict())
            return Prefix(time=datetime.strptime(day_and_clock, "%m/%d/%Y %I:%M:%S %p"))  # noqa: DTZ007
        return prefix_of(f"{text.replace(' @ ', ' ')} ") or Prefix()
    return Prefix()
