"""Kernel logs: what the kernel and the fabric manager report in dmesg, kmsg, journal, syslog."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import EmptySourceError, SourceError
from data.ingest.health import HealthLog, HealthRow, health_frame
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.logs.kernel_kinds import MARKERS, names_its_host, report_of
from data.ingest.readers.logs.kernel_line import (
    Fault,
    announced_gpu,
    cleaned,
    fault_of,
    goes_on,
    may_go_on,
    parts_of,
    split_line,
    switch_error,
    whole_start,
)
from data.ingest.readers.logs.kernel_prefix import Prefix, is_logged, leading, prefix_of
from data.ingest.readers.logs.relayed import Said, begins_json, said_by_entry, said_in
from data.ingest.rows import LocalClock

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb


_KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "xid", "sxid", "message")
_PROGRESS_LINES = 500_000
_FORM_LINES = 1_000_000
"""Lines within which a form of such a log is looked for: a look costs as much as reading ten."""
_ANNOUNCED_WITHIN = 5  # lines between a GPU's address and the line that says it is lost
_PIECE = 1 << 20  # bytes of lines that are looked through at once
_DRIVERS_TEXTS = (
    "Xid",
    "fallen off the bus",
    "NVRM: The NVIDIA GPU",
    '"MESSAGE":[',  # bytes: the text shows only once they are decoded
    '"MESSAGE": [',
    '"MESSAGE" : [',
    "detected NVSwitch",
    "stdout P ",
    "stderr P ",
)
_FIELD = re.compile(
    r'\s*(?P<quote>"?)(?P<name>__CURSOR|__REALTIME_TIMESTAMP|_HOSTNAME|_TRANSPORT|SYSLOG_IDENTIFIER|'
    r'MESSAGE)(?(quote)"?)(?:=|\s:\s)(?P<value>.*)$'
)
"""A field of an entry of the journal, on a line of its own: export, verbose, json-pretty."""
_ENTRY = re.compile(r"(?:[A-Z][a-z]{2} (?P<stamp>\d{4}-.*?)) \[s=[0-9a-f]+;")
"""How an entry begins in `journalctl -o verbose`."""
_FIELDS = (
    r'^\s*"?(?:__REALTIME_TIMESTAMP|_HOSTNAME|_TRANSPORT|SYSLOG_IDENTIFIER|MESSAGE)(?:=|" : )'
    r"|^[A-Z][a-z][a-z] \d\d\d\d-.* \[s=[0-9a-f]"
)
_MAY_BE_FIELD = re.compile(_FIELDS)
_MATTERS = "|".join((*map(re.escape, (*_DRIVERS_TEXTS, *MARKERS)), _FIELDS))
_PARTIAL = re.compile(r"(?P<head>\S+ std(?:out|err) )(?P<tag>[PF]) ?(?P<said>.*)", re.DOTALL)
"""A line as runtimes of containers keep it: P where the next one goes on."""
_LONGEST_JOINED = 1 << 16
_NOTHING = Prefix()
_DRIVERS = re.compile(r"NVRM:|nvidia-nvswitch")

_YEARS_BETWEEN_LEAPS = 8  # at most, around 1900 and 2100
_AHEAD = timedelta(hours=14)  # a log's clock may be that far east of the clock of the file
_KERNEL_TEXT = re.compile(
    r"(?:<\d+>)?(?:\[\s*\d+\.\d+\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2}\s+\d+ [\d:]{8} \d{4}\] )"
    r"|\[[A-Z][a-z]{2} \d+ \d{4} [\d:]{8}\] \[[A-Z]+\] \[tid \d+\]"
    r"|\d{1,3},\d+,\d+,[^;]*;|(?!\s*[\"{]).{15,80}\skernel: |kern\s+:[a-z]+\s*: "
    r"|\{(?!.*\"_source\").*\"__REALTIME_TIMESTAMP\""
)


def sniff(head: str) -> bool:
    """Whether a file's beginning holds a driver's fault, or mostly lines of the kernel."""
    lines = [line for line in head.splitlines()[:50] if line.strip()]
    n_kernel = sum(bool(_KERNEL_TEXT.match(line)) for line in lines)
    return 2 * n_kernel > len(lines) or any(_is_fault(line) for line in lines)


def _is_fault(line: str) -> bool:
    """Whether the kernel reports a fault on this line."""
    parts = None if begins_json(line) is not None else split_line(line)
    try:
        return (
            parts is not None
            and isinstance(fault_of(parts[1]), Fault)
            and bool(prefix_of(parts[0]))
        )
    except RecordError:
        return False


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What a kernel log reports as rows of `health_events`.

    One line is one record. Severity of XID and SXid stays NULL: every publish sets it from the
    catalog; that of other kinds stands in `kernel_kinds`. Switch errors in the log of a fabric
    manager are read, too.

    Raises
    ------
    SourceError
        Where no line of the file has a form of such a log, or `--timezone` is unknown.
    """
    log, is_log, n_other, line_no = KernelLog(source, options), False, 0, 0
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        while piece := lines.readlines(_PIECE):
            for line, matters in zip(piece, may_matter(piece), strict=True):
                line_no += 1
                if matters or log.waits:
                    log.take_line(line_no, line)
                else:
                    n_other += not line.isspace()
                if not is_log and n_other <= _FORM_LINES:
                    is_log = not line.isspace() and is_logged(line)
                if line_no % _PROGRESS_LINES == 0:
                    options.progress(f"{source.name}: {line_no:,} lines")
    log.close()
    log.skipped["no_fault"] += n_other
    batch = log.counted()
    if batch.rows_read == 0:
        raise EmptySourceError(f"{source.name}: holds no lines: give a kernel log")
    if not (is_log or batch.rows_kept or batch.rejected):
        raise SourceError(
            f"{source.name}: is no kernel log: none of its {batch.rows_read:,} lines has a form of "
            "dmesg, kmsg, the journal or syslog: name the SOURCE it is, or give another file"
        )
    return batch


def may_matter(lines: list[str]) -> list[bool]:
    """Of each line a cheap test that spares nearly all of a log the regular expressions.

    Arrow looks for all texts in one pass: a third of the time of as many searches in Python.
    """
    found: list[bool] = pc.match_substring_regex(pa.array(lines, pa.string()), _MATTERS).to_pylist()
    return found


def of_the_driver(line: str) -> bool:
    """Whether a line may hold a fault that the driver or the fabric manager reports."""
    return any(text in line for text in _DRIVERS_TEXTS) or _MAY_BE_FIELD.match(line) is not None


class _Line(NamedTuple):
    """One line of the file."""

    line_no: int
    place: int
    """Its number among the lines, where several stand on one line of the file."""
    whole: str
    text: str
    """Without what is the terminal's and the file's."""
    entry: dict[str, str] | None = None
    """The journal's entry of which it is the message."""


class _Announced(NamedTuple):
    """A GPU named on one line, of which a following line says that it is lost."""

    line_no: int
    prefix: Prefix
    address: str


class KernelLog(HealthLog):
    """What has been read of one log so far."""

    def __init__(self, source: Source, options: Options) -> None:
        self.cluster = options.cluster_of()
        self.times = KernelTimes(source, options, self.cluster)
        super().__init__(options, self.times, self._event, source)
        self.beside = Prefix()
        """Host and time of a line, where it stands in a store that says them beside it."""
        self._announced: _Announced | None = None
        self.line_of_row: list[int] = []
        """The line of each row."""
        self._held: _Line | None = None
        self._entry: dict[str, str] = {}
        self._entry_line: _Line | None = None

    @property
    def waits(self) -> bool:
        """Whether the next line may belong to the one before."""
        return self._held is not None or bool(self._entry)

    def take_line(self, line_no: int, line: str, *, place: int | None = None) -> None:
        """Puts one line into its place: a row, a reason to skip it or a rejection.

        `place` is its number among the lines, where several stand on one line of the file.
        """
        # a crash pads with NUL; RFC 7464 marks by RS
        text = cleaned(line.strip().strip("\0").lstrip("\x1e")).strip()
        if line_no == 1:
            text = whole_start(text)
        taken = _Line(line_no, place or line_no, line, text)
        held, self._held = self._held, None
        if held is not None and self._joins(held, taken):
            return
        if self._is_field(taken) or not text:
            return
        if self._goes_on(taken):
            self._held = taken
        else:
            self._take(taken)

    def close(self) -> None:
        """Takes what waited for a line that did not come."""
        held, self._held = self._held, None
        if held is not None:
            self._take(held)
        self._end_entry()

    def _take(self, line: _Line) -> None:
        """Puts one record into its place, and remembers the line of its rows."""
        self.take(line.line_no, line.text, line)
        self.line_of_row += [line.line_no] * (len(self.rows) - len(self.line_of_row))

    def _goes_on(self, line: _Line) -> bool:
        """Whether a line is cut where the next one may go on."""
        partial = _PARTIAL.match(line.text) if " P " in line.text else None
        return (partial is not None and partial["tag"] == "P") or may_go_on(line.text)

    def _joins(self, held: _Line, line: _Line) -> bool:
        """Whether a line was taken with the one that was held; else that one is taken alone."""
        first, second = _PARTIAL.match(held.text), _PARTIAL.match(line.text)
        if first is not None and second is not None and len(held.text) < _LONGEST_JOINED:
            text = f"{first['head']}{second['tag']} {first['said']}{second['said']}"
            joined = held._replace(text=text)
            if second["tag"] == "P":
                self._held = joined
            else:
                self._take(joined)
            self.skipped["continued"] += 1
            return True
        whole = goes_on(held.text, line.text)
        if whole is None:
            self._take(held)
            return False
        self._take(held._replace(text=whole))
        self.skipped["continued"] += 1
        return True

    def _is_field(self, line: _Line) -> bool:
        """Whether a line is a field of an entry of the journal, or ends one."""
        if line.text and not self._entry and not _MAY_BE_FIELD.match(line.text):
            return False
        begun, field = _ENTRY.match(line.text), _FIELD.match(line.text)
        if begun is not None:
            self._end_entry()
            self._entry = {"time": begun["stamp"]}
        elif field is not None:
            name, value = field["name"], field["value"].strip()
            if name in self._entry:
                self._end_entry()
            self._entry[name] = _unquoted(value) if field["quote"] else value
            if name == "MESSAGE":
                self._entry_line = line
                return True
        elif not line.text or line.text.startswith("}"):
            self._end_entry()
            self.skipped["no_fault"] += bool(line.text)
            return True
        elif not self._entry or line.text.startswith("{") or _DRIVERS.search(line.text):
            return False
        self.skipped["no_fault"] += 1
        return True

    def _end_entry(self) -> None:
        """Takes the message of the entry that ends here, with the fields around it."""
        line, entry = self._entry_line, self._entry
        self._entry_line, self._entry = None, {}
        if line is not None:
            self._take(line._replace(entry=entry))

    def counted(self) -> Batch:
        """What has been taken."""
        return self.batch("health_events", health_frame(self.rows, "kernel", _KEY))

    def _event(self, line: _Line, _: HealthLog) -> list[HealthRow] | str:
        """The rows of a line, or the reason to skip it; RecordError where it is unreadable."""
        if self.source.truncated and not line.whole.endswith("\n"):
            raise RecordError("line cut off at the end of the file")
        at = begins_json(line.text)
        if line.entry:
            return self._of_all(line.place, said_by_entry(line.entry, self.options.limits))
        if at is not None:
            return self._of_all(line.place, said_in(line.text, at, self.options.limits))
        parts = parts_of(line.text)
        if len(parts) == 1:
            return self._of_part(line.place, parts[0])
        return self._of_all(line.place, [Said(line.text, Prefix())])

    def _of_all(self, line_no: int, said: list[Said]) -> list[HealthRow] | str:
        """The rows of the lines that stand in one; what cannot be read is told unless it is all."""
        rows: list[HealthRow] = []
        reasons: list[str] = []
        unreadable: list[RecordError] = []
        beside = self.beside
        for one in said:
            before: Prefix | None = one.beside
            for n_part, part in enumerate(parts_of(cleaned(one.text).strip())):
                try:
                    if n_part and _has_no_prefix(part):
                        self.beside = _within(beside, before)
                        made = self._of_part(line_no, part) if before else "not_from_kernel"
                    elif one.beside is None:
                        made = "not_from_kernel" if self._of_kernel(part) else "no_fault"
                    else:
                        self.beside = _within(beside, one.beside)
                        before = None
                        found = _before(part)
                        before = None if found is None else _within(one.beside, found)
                        made = self._of_part(line_no, part)
                except RecordError as error:
                    unreadable.append(error)
                    continue
                finally:
                    self.beside = beside
                if isinstance(made, str):
                    reasons.append(made)
                else:
                    rows += made
        if rows or not unreadable:
            return rows or next((r for r in reasons if r != "no_fault"), "no_fault")
        raise unreadable[0]

    def _of_kernel(self, text: str) -> bool:
        """Whether a text says what the kernel would report."""
        parts = split_line(text)
        try:
            fault = fault_of(parts[1]) if parts else "no_fault"
        except RecordError:
            return True
        return isinstance(fault, Fault) or report_of(text) is not None

    def _of_part(self, line_no: int, said: str) -> list[HealthRow] | str:
        """The row of a text that holds one report at most."""
        parts = split_line(said)
        if parts is None:
            return self._other(said) or "no_fault"
        fault = fault_of(parts[1])
        if isinstance(fault, str):
            self._remember(line_no, *parts)
            return self._other(said) or fault
        prefix = prefix_of(parts[0])
        if prefix is None:
            return "not_from_kernel"
        prefix, address = self._completed(line_no, self._with_beside(prefix), fault)
        return [self._row(prefix, fault, address)]

    def _row(self, prefix: Prefix, fault: Fault, address: str | None) -> HealthRow:
        """The row of a fault with a code, or of a lost GPU."""
        node, observed_at = self._seen(prefix)
        return HealthRow(
            cluster=self.cluster,
            node=node,
            observed_at=observed_at,
            check_name=fault.check_name,
            message=fault.message,
            gpu=address,
            # The catalog knows codes, and this fault comes without one. XID 79, the same fault
            # with its code, is fatal by NVIDIA's action (restart the machine); without that
            # action the fault is no more than certain to have cost the GPU: critical.
            severity="critical" if fault.check_name == "gpu_lost" else None,
            xid=fault.code if fault.check_name == "xid" else None,
            sxid=fault.code if fault.check_name == "sxid" else None,
        )

    def _seen(self, prefix: Prefix) -> tuple[str, datetime | None]:
        """Node and time of a line; RecordError where it names no host and nobody else does."""
        prefix = self._with_beside(prefix)
        node = prefix.host or self.options.node
        if node is None:
            raise RecordError("no host on the line: pass --node")
        observed_at = self.times.instant(prefix)
        self.saw(self.cluster, observed_at)
        return node, observed_at

    def _with_beside(self, prefix: Prefix) -> Prefix:
        """Host and time of a line: its own host, its own time where that has an offset."""
        if self.beside == _NOTHING:
            return prefix
        host, beside = prefix.host or self.beside.host, self.beside
        if beside.time is None or (prefix.time is not None and prefix.time.tzinfo is not None):
            return replace(prefix, host=host)
        return replace(beside, host=host)

    def _other(self, said: str) -> list[HealthRow] | str | None:
        """What a line reports that is no fault of the GPU's driver; None for nothing."""
        if "detected NVSwitch" in said and (found := switch_error(said)):
            fault, prefix = found
            return [self._row(prefix, fault, fault.address)]
        report = report_of(said)
        if report is None:
            return None
        try:
            quoted = prefix_of(report.before)
        except RecordError:  # words of somebody else, who speaks of such a fault
            return "not_from_kernel"
        if quoted is None or (quoted.host and not names_its_host(report.before)):
            return "not_from_kernel"
        kind = report.kind
        if kind.check_name is None:
            return kind.severity
        node, observed_at = self._seen(quoted)
        return [
            HealthRow(
                self.cluster,
                node,
                observed_at,
                kind.check_name,
                report.message,
                gpu=report.gpu,
                severity=kind.severity,
            )
        ]

    def _remember(self, line_no: int, before: str, message: str) -> None:
        """Keeps a GPU named without a fault: drivers break that report over three lines."""
        address = announced_gpu(message)
        if address is None:
            return
        try:
            prefix = prefix_of(before)
        except RecordError:
            return
        if prefix is not None:
            self._announced = _Announced(line_no, self._with_beside(prefix), address)

    def _completed(self, line_no: int, prefix: Prefix, fault: Fault) -> tuple[Prefix, str | None]:
        """Prefix and address of a fault, from the line that named the GPU where its own lack."""
        named = self._announced
        if (
            fault.address is not None
            or named is None
            or line_no - named.line_no > _ANNOUNCED_WITHIN
            or prefix.host not in (None, named.prefix.host)
            or _is_later(named.prefix, prefix)
        ):
            return prefix, fault.address
        return (named.prefix if prefix == Prefix() else prefix), named.address


def _within(outer: Prefix, inner: Prefix | None) -> Prefix:
    """Host and time of the inner, those of the outer where it has none."""
    if inner is None:
        return outer
    time = inner if inner.time is not None else outer
    return replace(time, host=inner.host or outer.host)


def _before(text: str) -> Prefix | None:
    """Host and time with which a line begins; as `prefix_of`."""
    parts = split_line(text)
    return leading(text) if parts is None else prefix_of(parts[0])


def _has_no_prefix(text: str) -> bool:
    """Whether the driver's words stand at the beginning of a text."""
    parts = split_line(text)
    return parts is not None and not parts[0].strip()


def _unquoted(value: str) -> str:
    """A text of JSON on a line of its own."""
    try:
        return str(json.loads(value.rstrip(",")))
    except ValueError:
        return value.strip('",')


def _is_later(first: Prefix, second: Prefix) -> bool:
    """Whether the first line was written after the second, as far as both say their zone."""
    times = first.time, second.time
    stated = [time for time in times if time is not None and time.tzinfo is not None]
    return len(stated) == len(times) and stated[0] > stated[1]


class KernelTimes(LocalClock):
    """Turns what a line says of its time into UTC and counts what it lacked."""

    def __init__(self, source: Source, options: Options, cluster: str) -> None:
        super().__init__(options)
        self._source, self._cluster = source, cluster
        self._n_yearless = self._n_uptime = self._n_timeless = 0
        self._years: set[int] = set()

    def instant(self, prefix: Prefix) -> datetime | None:
        """When the line was written; None where it does not say. RecordError: impossible."""
        try:
            if prefix.time is None:
                return self._since_boot(prefix.uptime_s)
            time = prefix.time if prefix.has_year else self._with_year(prefix.time)
        except (ValueError, OverflowError):  # 29 February of a common year, a boot too long ago
            raise RecordError("impossible date") from None
        if prefix.zone is None:
            return self.utc(time, self._cluster)
        try:
            return self.utc_of_named_zone(time, self._cluster, prefix.zone)
        except ValueError as error:
            raise RecordError(str(error)) from None

    def notices(self) -> list[str]:
        """What had to be assumed or stays unknown."""
        notices = super().notices()
        if self._n_yearless:
            years = " and ".join(map(str, sorted(self._years)))
            origin = (
                "as --year says"
                if self._options.year is not None
                else f"by the file's modification time {self._source.modified_at:%Y-%m-%d} (pass "
                "--year to say otherwise)"
            )
            notices.append(f"times without a year, read as {years} {origin}: {self._n_yearless:,}")
        if self._n_uptime:
            notices.append(
                "events with seconds since boot only, their time stays unknown (pass --boot-at "
                f"with the time of the boot): {self._n_uptime:,}"
            )
        if self._n_timeless:
            notices.append(f"events without any time: {self._n_timeless:,}")
        return notices

    def _since_boot(self, uptime_s: float | None) -> datetime | None:
        boot_at = self._options.boot_at
        if uptime_s is not None and boot_at is not None:
            return boot_at + timedelta(seconds=uptime_s)
        self._n_uptime += uptime_s is not None
        self._n_timeless += uptime_s is None
        return None

    def _with_year(self, time: datetime) -> datetime:
        """A time without a year, put in `--year` or the last year before the file's own time."""
        if self._options.year is not None:
            dated = time.replace(year=self._options.year)
        else:
            latest = self._source.modified_at.replace(tzinfo=None) + _AHEAD
            dated = _latest_before(time, latest)
        self._n_yearless += 1
        self._years.add(dated.year)
        return dated


def _latest_before(time: datetime, latest: datetime) -> datetime:
    """`time` in the latest year in which it is not after `latest`, for 29 February a leap year."""
    for year in range(latest.year, latest.year - _YEARS_BETWEEN_LEAPS - 1, -1):
        with suppress(ValueError):  # 29 February
            if (dated := time.replace(year=year)) <= latest:
                return dated
    raise ValueError(time)


READER = Reader(
    "kernel-log",
    "XIDs, SXids, memory kills, hung tasks, machine checks, links and disks in kernel text",
    export="journalctl -k -o short-iso, dmesg -T, kmsg, syslog, fabricmanager.log",
    reads=(
        "dmesg, the journal (text, JSON), syslog, /dev/kmsg, pstore, fabric manager's "
        "log: XIDs and SXids, processes killed for memory or hanging, lockups, panics, "
        "machine checks, EDAC, PCIe, links, disks, file systems"
    ),
    script=(
        "journalctl _TRANSPORT=kernel -o short-iso-precise --since {start} --until {end} \\\n"
        "  > kernel-$(hostname).log\n"
        "# or, on one node:\n"
        "dmesg -T > dmesg-$(hostname).log"
    ),
    example="kernel-*.log",
    advice=(
        "Journal output carries the host and the zone; `dmesg -T` carries no host: say it "
        "by `--node`."
    ),
    fills=("health_events",),
    place=3,
    options=("node", "boot_at", "year"),
    covers="health_events.kernel",
    lines_alone=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
