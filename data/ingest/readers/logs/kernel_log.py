"""Kernel logs: what the kernel and the fabric manager report in dmesg, kmsg, journal, syslog."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import EmptySourceError, SourceError
from data.ingest.health import HealthLog, HealthRow, health_frame
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.logs.gathered import HEADS, Gathered
from data.ingest.readers.logs.kernel_kinds import MARKERS, names_its_host, report_of
from data.ingest.readers.logs.kernel_line import (
    OTHER_SPELLINGS,
    Fault,
    announced_gpu,
    bare,
    cleaned,
    fault_of,
    parts_of,
    split_line,
    switch_error,
    whole_start,
)
from data.ingest.readers.logs.kernel_prefix import is_logged, leading, prefix_of, zoned
from data.ingest.readers.logs.kernel_times import KernelTimes
from data.ingest.readers.logs.months import MONTH
from data.ingest.readers.logs.prefix import Prefix
from data.ingest.readers.logs.records import Table, begins_json
from data.ingest.readers.logs.relayed import (
    Said,
    pairs_with_a_line,
    said_by_entry,
    said_in,
    said_in_cells,
    said_in_pairs,
    said_of_labels,
    table_in,
)
from data.ingest.readers.logs.whole_lines import FIELDS, Line, WholeLines

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb


KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "xid", "sxid", "message")
_PROGRESS_LINES = 500_000
_FORM_LINES = 1_000_000
"""Lines within which a form of such a log is looked for: a look costs as much as reading ten."""
_ANNOUNCED_WITHIN = 5  # lines between a GPU's address and the line that says it is lost
_PIECE = 1 << 20  # bytes of lines that are looked through at once
_DRIVERS_TEXTS = (
    "Xid",
    "fallen off the bus",
    *OTHER_SPELLINGS,
    "NVRM: The NVIDIA GPU",
    '"MESSAGE":[',  # bytes: the text shows only once they are decoded
    '"MESSAGE": [',
    '"MESSAGE" : [',
    "detected NVSwitch",
    "stdout P ",
    "stderr P ",
)
_MAY_BE_PART = re.compile(f"{FIELDS}|{HEADS}")
_MATTERS = "|".join((*map(re.escape, (*_DRIVERS_TEXTS, *MARKERS)), FIELDS, HEADS))
_BEGINS_WITH_DAY = re.compile(rf"\d{{1,2}} {MONTH} \d{{4}}\b")
_NOTHING = Prefix()
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
    return any(text in line for text in _DRIVERS_TEXTS) or _MAY_BE_PART.match(line) is not None


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
        self._lines = WholeLines(self.skipped)
        self._gathered = Gathered()
        self._has_begun = False
        self._table: Table | None = None

    @property
    def waits(self) -> bool:
        """Whether the next line is needed whatever it says."""
        return not self._has_begun or self._gathered.awaits_host or self._lines.wait

    def take_line(self, line_no: int, line: str, *, place: int | None = None) -> None:
        """Puts one line into its place: a row, a reason to skip it or a rejection.

        `place` is its number among the lines, where several stand on one line of the file.
        """
        # a crash pads with NUL; RFC 7464 marks by RS
        text = cleaned(line.strip().strip("\0").lstrip("\x1e")).strip()
        if not self._has_begun:
            self._has_begun = True
            text = whole_start(text)
            self._table = table_in(text)
        if not _BEGINS_WITH_DAY.match(text):
            text = text.removeprefix(f"{line_no} ")  # `less -N` puts its number before a line
        text = bare(text)
        self._gathered.take(line)
        for whole in self._lines.take(Line(line_no, place or line_no, line, text)):
            self._take(whole)

    def close(self) -> None:
        """Takes what waited for a line that did not come."""
        for whole in self._lines.close():
            self._take(whole)

    def _take(self, line: Line) -> None:
        """Puts one record into its place, and remembers the line of its rows."""
        self.take(line.line_no, line.text, line)
        self.line_of_row += [line.line_no] * (len(self.rows) - len(self.line_of_row))

    def counted(self) -> Batch:
        """What has been taken."""
        return self.batch("health_events", health_frame(self.rows, "kernel", KEY))

    def _event(self, line: Line, _: HealthLog) -> list[HealthRow] | str:
        """The rows of a line, or the reason to skip it; RecordError where it is unreadable."""
        if self.source.truncated and not line.whole.endswith("\n"):
            raise RecordError("line cut off at the end of the file")
        records = self._records(line)
        if records is not None:
            return self._of_all(line.place, records)
        parts = parts_of(line.text)
        if len(parts) == 1:
            return self._of_part(line.place, parts[0])
        return self._of_all(line.place, [Said(line.text, Prefix())])

    def _records(self, line: Line) -> list[Said] | None:
        """The lines in the record that a line is; None where it is none."""
        limits = self.options.limits
        if line.entry:
            return said_by_entry(line.entry, limits)
        if self._table and (cells := self._table.row(line.text)):
            return said_in_cells(cells, limits)
        if labelled := said_of_labels(line.text, limits):
            return labelled
        if (at := begins_json(line.text)) is not None:
            return said_in(line.text, at, limits)
        if found := pairs_with_a_line(line.text):
            begin, pairs = found
            return said_in_pairs(line.text[:begin], pairs, limits)
        return None

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
                        if n_part and before is not None:  # with the time of the one before
                            self.beside = _within(self.beside, before)
                        found = _before(part)
                        before = None if found is None else _within(self.beside, found)
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
        try:
            fault = fault_of(parts[1])
        except RecordError:
            if other := self._other(said):  # the words stand within another report
                return other
            raise
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
        stated = self.options.node
        node = prefix.host or stated or self._gathered.host or stated
        if node is None:
            raise RecordError("no host on the line: pass --node")
        if not (prefix.host or stated) and self._gathered.host:
            self.told[
                f"events of {node!r}, the name above their lines (pass --node where it is no host)"
            ] += 1
        observed_at = self.times.instant(prefix)
        self.saw(self.cluster, observed_at)
        return node, observed_at

    def _with_beside(self, prefix: Prefix) -> Prefix:
        """Host and time of a line: its own host, its own time where its zone is known."""
        if self.beside == _NOTHING:
            return prefix
        host, beside = prefix.host or self.beside.host, self.beside
        if beside.time is None and beside.uptime_s is None:
            return replace(prefix, host=host)
        own = zoned(prefix, beside.time)
        is_known = beside.time is not None and beside.time.tzinfo is not None
        is_certain = own.time is not None and (own.time.tzinfo is not None or not is_known)
        return replace(own if is_certain else beside, host=host)

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
    time = outer if inner.time is None and outer.time is not None else inner
    return replace(time, host=inner.host or outer.host)


def _before(text: str) -> Prefix | None:
    """Host and time with which a line begins; as `prefix_of`."""
    parts = split_line(text)
    return leading(text) if parts is None else prefix_of(parts[0])


def _has_no_prefix(text: str) -> bool:
    """Whether the driver's words stand at the beginning of a text."""
    parts = split_line(text)
    return parts is not None and not parts[0].strip()


def _is_later(first: Prefix, second: Prefix) -> bool:
    """Whether the first line was written after the second, as far as both say their zone."""
    times = first.time, second.time
    stated = [time for time in times if time is not None and time.tzinfo is not None]
    return len(stated) == len(times) and stated[0] > stated[1]


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
