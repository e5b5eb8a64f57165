"""Counters of InfiniBand ports: files of sysfs, output of perfquery and ibqueryerrors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.infiniband_names import of_file, of_tool
from data.ingest.readers.metrics.metric_samples import MetricSamples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    _Made = Callable[[str, str], tuple[str, float] | str]


_FILE = re.compile(
    r"(?:/sys/\S*?/)?(?P<device>[\w.-]+)/ports/(?P<port>\d+)/"
    r"(?P<path>(?:(?:hw_)?counters/)?\w+):\s*(?P<value>.*)"
)
_SECTION = re.compile(
    r"# Port (?P<extended>extended )?counters: (?:Lid )?(?P<lid>.{1,200}?) "
    r"(?:port (?P<port>\w+)|all ports)"
)
_VALUE = re.compile(r"(?P<name>[A-Za-z]\w*):\.+(?P<value>.*)")
_ERRORS_FOR = re.compile(r'Errors for (?P<guid>0x[0-9a-fA-F]+ )?"(?P<name>[^"]*)"')
_HOST = re.compile(r"(?P<node>[A-Za-z0-9][\w.-]*) (?P<device>HCA-\d+|[a-z][a-z0-9]*_?\d+)\Z")
_PORT = re.compile(r"\s*GUID 0x[0-9a-fA-F]+ port (?P<port>\w+): ?(?P<counts>.*)")
_COUNT = re.compile(r"\[(?P<name>\w+) == (?P<value>[^\[\]]*)\]")
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]*): (?=\S|\s+GUID )")
"""Host that pdsh and clush write before each line."""
_SELECTIONS = frozenset(("PortSelect", "CounterSelect", "CounterSelect2"))
_MARKS = ("/ports/", ":.", "# Port ", "Errors for ", "GUID ")
"""Of which one stands in every line that is not text."""
_ALL = ("255", "ALL", None)
_SNIFFED_LINES = 20
TEXT, OF_SWITCH = "text", "of a switch"
UNNAMED, SUM = "of a host without a name", "sum over ports"


class _Value(NamedTuple):
    """A counter, or why it is skipped or rejected."""

    labels: dict[str, str]
    found: tuple[str, float] | str | RecordError


def sniff(head: str) -> bool:
    """Whether one of its first lines is a counter in sysfs or begins what a tool prints."""
    for line in head.lstrip("\ufeff").splitlines()[:_SNIFFED_LINES]:
        text = _unprefixed(line)[1]
        if (file := _FILE.match(text)) and ("counters/" in file["path"] or "/infiniband/" in text):
            return True
        if _SECTION.match(text) or _ERRORS_FOR.match(text):
            return True
    return False


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Counters as rows of `node_metrics`, called as node_exporter calls them.

    They carry no time: all are of `--at`, else of the file's modification time. The node is the one
    that ibqueryerrors or pdsh writes, else `--node`. Counters of switches are skipped. Those of
    perfquery stand by LID and port; the extended ones, which hold more bits, stand apart.

    Raises
    ------
    SourceError
        Where no line is a counter.
    """
    log = MetricSamples(source, options, connection)
    taken_at = options.at or source.modified_at
    at_us = round(taken_at.timestamp() * 1e6)
    parser = _Parser()
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line_no, raw in enumerate(lines, 1):
            line = raw.rstrip()
            if line and not any(mark in line for mark in _MARKS):
                log.skipped[TEXT] += 1
                continue
            for one in parser.values(line) if line else ():
                try:
                    if isinstance(one.found, RecordError):
                        raise one.found
                    if isinstance(one.found, str):
                        log.skipped[one.found] += 1
                    else:
                        metric, value = one.found
                        log.take(metric, one.labels, [at_us], [value])
                except RecordError as error:
                    log.rejected.reject(line_no, str(error), raw.strip())
    batch = log.batch()
    if not batch.rejected and set(batch.skipped_by_reason) <= {TEXT} and not batch.rows_kept:
        raise SourceError(f"{source.name}: holds no counter: give what the command prints")
    if batch.rows_kept and options.at is None:
        batch.notices.append(
            f"{batch.rows_kept:,} counters without a time: taken as of the file's modification "
            f"time {taken_at:%Y-%m-%d %H:%M:%S} UTC (pass --at)"
        )
    return batch


class _Parser:
    """Lines in order; a line of perfquery or ibqueryerrors belongs to the heading before it.

    Under pdsh, which mixes the lines of hosts, to the heading of the same host.
    """

    def __init__(self) -> None:
        self._under: dict[str | None, dict[str, str] | str] = {}

    def values(self, line: str) -> Iterator[_Value]:
        """What a line holds: counters, or text."""
        host, text = _unprefixed(line)
        of_host = {"Hostname": host} if host else {}
        under = self._under.get(host)
        if file := _FILE.match(text):
            labels = of_host | {"device": file["device"], "port": file["port"]}
            yield _value(labels, of_file, file["path"], file["value"])
        elif section := _SECTION.match(text):
            labels = of_host | {"lid": section["lid"], "port": section["port"] or ""}
            labels |= {"counters": "extended"} if section["extended"] else {}
            self._under[host] = SUM if section["port"] in _ALL else labels
        elif heading := _ERRORS_FOR.match(text):
            named = _HOST.match(heading["name"])
            of_named = {"Hostname": named["node"], "device": named["device"]} if named else UNNAMED
            self._under[host] = OF_SWITCH if heading["guid"] else of_named
        elif value := _VALUE.match(text):
            if value["name"] not in _SELECTIONS:
                yield _value(under, of_tool, value["name"], value["value"])
        elif port := _PORT.match(text):
            labels_of_port = under | {"port": port["port"]} if isinstance(under, dict) else under
            counts = [*_COUNT.finditer(port["counts"])]
            for count in counts:
                yield _value(labels_of_port, of_tool, count["name"], count["value"])
            if not counts:
                yield _Value({}, TEXT)
        else:
            yield _Value({}, TEXT)


def _value(labels: dict[str, str] | str | None, made: _Made, name: str, text: str) -> _Value:
    """A counter of a port, under a heading that named it."""
    if labels is None:
        return _Value({}, RecordError("no heading says of which port"))
    if isinstance(labels, str):
        return _Value({}, labels)
    try:
        return _Value(labels, made(name, text))
    except RecordError as error:
        return _Value(labels, error)


def _unprefixed(line: str) -> tuple[str | None, str]:
    """Host before a line, None where there is none; and the line."""
    found = _PREFIX.match(line)
    return (found[1], line[found.end() :]) if found else (None, line)


READER = Reader(
    "infiniband",
    "counters of InfiniBand ports",
    export=(
        "grep . /sys/class/infiniband/*/ports/*/counters/* with --node, perfquery -x, ibqueryerrors"
    ),
    reads=(
        "counters of InfiniBand ports: `grep . "
        "/sys/class/infiniband/*/ports/*/counters/*` (`--node`, or under pdsh), "
        "`perfquery -x`, `ibqueryerrors`; `--at` when it was"
    ),
    fills=("node_metrics",),
    place=6.92,
    options=("node", "at"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
