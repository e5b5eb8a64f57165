"""Counters of InfiniBand ports: files of sysfs, output of perfquery and ibqueryerrors.

They are called as node_exporter calls them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.metric_samples import Line, MetricSamples, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import duckdb

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
SETTING, NO_VALUE = "no counter", "not counted by the port"
_BEGIN = "node_infiniband_"
_OF_FILES = {
    "port_rcv_errors": "port_errors_received", "port_xmit_discards": "port_discards_transmitted",
    "port_rcv_constraint_errors": "port_constraint_errors_received",
    "port_xmit_constraint_errors": "port_constraint_errors_transmitted",
    "port_rcv_remote_physical_errors": "port_receive_remote_physical_errors",
    "port_rcv_switch_relay_errors": "port_receive_switch_relay_errors",
    "port_xmit_wait": "port_transmit_wait",
    "port_rcv_data": "port_data_received_bytes", "port_xmit_data": "port_data_transmitted_bytes",
    "port_rcv_packets": "port_packets_received", "port_xmit_packets": "port_packets_transmitted",
    "unicast_rcv_packets": "unicast_packets_received",
    "unicast_xmit_packets": "unicast_packets_transmitted",
    "multicast_rcv_packets": "multicast_packets_received",
    "multicast_xmit_packets": "multicast_packets_transmitted",
}  # fmt: skip
"""File of sysfs -> node_exporter's metric; others are called as their file."""
_OF_TOOLS = {
    "symbolerrorcounter": "symbol_error", "symbolerrors": "symbol_error",
    "linkerrorrecoverycounter": "link_error_recovery", "linkrecovers": "link_error_recovery",
    "linkdownedcounter": "link_downed", "linkdowned": "link_downed",
    "rcverrors": "port_rcv_errors",
    "rcvremotephysicalerrors": "port_rcv_remote_physical_errors",
    "rcvremotephyserrors": "port_rcv_remote_physical_errors",
    "rcvswitchrelayerrors": "port_rcv_switch_relay_errors",
    "rcvswrelayerrors": "port_rcv_switch_relay_errors",
    "xmitdiscards": "port_xmit_discards", "xmtdiscards": "port_xmit_discards",
    "xmitconstrainterrors": "port_xmit_constraint_errors",
    "xmtconstrainterrors": "port_xmit_constraint_errors",
    "rcvconstrainterrors": "port_rcv_constraint_errors",
    "locallinkintegrityerrors": "local_link_integrity_errors",
    "linkintegrityerrors": "local_link_integrity_errors",
    "excessivebufferoverrunerrors": "excessive_buffer_overrun_errors",
    "excbufoverrunerrors": "excessive_buffer_overrun_errors",
    "xmitwait": "port_xmit_wait", "xmtwait": "port_xmit_wait",
    "xmitdata": "port_xmit_data", "xmtdata": "port_xmit_data", "rcvdata": "port_rcv_data",
    "xmitpkts": "port_xmit_packets", "xmtpkts": "port_xmit_packets",
    "rcvpkts": "port_rcv_packets",
    "unicastxmitpkts": "unicast_xmit_packets", "unicastrcvpkts": "unicast_rcv_packets",
    "multicastxmitpkts": "multicast_xmit_packets", "multicastrcvpkts": "multicast_rcv_packets",
}  # fmt: skip
"""Counter of perfquery in small letters, without its `Port` -> file of sysfs."""
_OCTETS = {"port_rcv_data": 4, "port_xmit_data": 4}
"""Data is counted in words of four octets."""
_NUMBER = re.compile(r"(\d{1,20})(?: \([^)]*\))?\s*\Z")
_SILENT = re.compile(r"N/A|No data|Invalid argument|\Z", re.IGNORECASE)


class _Setting(NamedTuple):
    """A file beside the counters that is a gauge of node_exporter."""

    metric: str
    mark: re.Pattern[str]
    factor: float


_SETTINGS = {
    "state": _Setting("state_id", re.compile(r"(\d{1,3}):"), 1),
    "phys_state": _Setting("physical_state_id", re.compile(r"(\d{1,3}):"), 1),
    "rate": _Setting("rate_bytes_per_second", re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec"), 1e9 / 8),
}
_Port = dict[str, str] | str
"""Labels of a port, or why its counters are skipped."""


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
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        log.take_lines(_counters(lines), "counters")
    batch = log.whole()
    if not batch.rejected and set(batch.skipped_by_reason) <= {TEXT} and not batch.rows_kept:
        raise SourceError(f"{source.name}: holds no counter: give what the command prints")
    return batch


def _counters(lines: Iterable[str]) -> Iterator[Line]:
    """What each line that is not blank holds: counters, or text.

    A line of perfquery or ibqueryerrors belongs to the heading before it; under pdsh, which mixes
    the lines of hosts, to the heading of the same host.
    """
    headings: dict[str | None, _Port | None] = {}
    for line_no, raw in enumerate(lines, 1):
        line = raw.rstrip()
        if line and not any(mark in line for mark in _MARKS):
            yield Line(line_no, raw.strip(), TEXT)
        elif line:
            for found in _of_line(line, headings):
                yield Line(line_no, raw.strip(), found)


def _of_line(
    line: str, headings: dict[str | None, _Port | None]
) -> Iterator[Sample | str | RecordError]:
    """The counters on a line; a heading is kept for the lines below it."""
    host, text = _unprefixed(line)
    of_host = {"Hostname": host} if host else {}
    under = headings.get(host)
    if file := _FILE.match(text):
        labels = of_host | {"device": file["device"], "port": file["port"]}
        yield _sample(labels, of_file, file["path"], file["value"])
    elif section := _SECTION.match(text):
        labels = of_host | {"lid": section["lid"], "port": section["port"] or ""}
        labels |= {"counters": "extended"} if section["extended"] else {}
        headings[host] = SUM if section["port"] in _ALL else labels
    elif heading := _ERRORS_FOR.match(text):
        named = _HOST.match(heading["name"])
        of_named = {"Hostname": named["node"], "device": named["device"]} if named else UNNAMED
        headings[host] = OF_SWITCH if heading["guid"] else of_named
    elif value := _VALUE.match(text):
        if value["name"] not in _SELECTIONS:
            yield _sample(under, of_tool, value["name"], value["value"])
    elif (port := _PORT.match(text)) and (counts := [*_COUNT.finditer(port["counts"])]):
        labels_of_port = under | {"port": port["port"]} if isinstance(under, dict) else under
        for count in counts:
            yield _sample(labels_of_port, of_tool, count["name"], count["value"])
    else:
        yield TEXT


def _sample(
    port: _Port | None,
    made: Callable[[str, str], tuple[str, float] | str],
    name: str,
    text: str,
) -> Sample | str | RecordError:
    """A counter of a port, under a heading that named it."""
    if port is None:
        return RecordError("no heading says of which port")
    if isinstance(port, str):
        return port
    try:
        counter = made(name, text)
    except RecordError as error:
        return error
    return counter if isinstance(counter, str) else Sample(counter[0], port, counter[1], None)


def _unprefixed(line: str) -> tuple[str | None, str]:
    """Host before a line, None where there is none; and the line."""
    found = _PREFIX.match(line)
    return (found[1], line[found.end() :]) if found else (None, line)


def of_file(path: str, text: str) -> tuple[str, float] | str:
    """Metric and value of a file below a port, or why it is skipped.

    Raises
    ------
    RecordError
        Where no number stands in it.

    Examples
    --------
    >>> of_file("counters/port_rcv_data", "10"), of_file("state", "4: ACTIVE")
    (('node_infiniband_port_data_received_bytes_total', 40.0), ('node_infiniband_state_id', 4.0))
    """
    folder, _, name = path.rpartition("/")
    if folder and name != "lifespan":
        return _counter(name.lower(), text)
    setting = _SETTINGS.get(name)
    if setting is None:
        return SETTING
    if (found := setting.mark.match(text)) is None:
        raise RecordError("no number as value")
    return _BEGIN + setting.metric, float(found[1]) * setting.factor


def of_tool(name: str, text: str) -> tuple[str, float] | str:
    """The same of a counter that perfquery or ibqueryerrors prints.

    Examples
    --------
    >>> of_tool("LinkDowned", "3"), of_tool("PortXmitWait", "4")[0]
    (('node_infiniband_link_downed_total', 3.0), 'node_infiniband_port_transmit_wait_total')
    """
    small = name.lower()
    return _counter(_OF_TOOLS.get(small.removeprefix("port"), small), text)


def _counter(name: str, text: str) -> tuple[str, float] | str:
    if _SILENT.match(text):
        return NO_VALUE
    if (found := _NUMBER.match(text)) is None:
        raise RecordError("no number as value")
    called = _OF_FILES.get(name, name.replace("vl15dropped", "vl15_dropped"))
    return f"{_BEGIN}{called}_total", float(found[1]) * _OCTETS.get(name, 1)


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
    script="grep . /sys/class/infiniband/*/ports/*/counters/* > infiniband-NODE.txt",
    example="infiniband-NODE.txt --node NODE",
    fills=("node_metrics",),
    place=6.92,
    options=("node", "at"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
