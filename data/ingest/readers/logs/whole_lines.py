"""Lines of a kernel log that belong together: halves of one, fields of an entry of the journal."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.readers.logs.kernel_line import goes_on, may_go_on

if TYPE_CHECKING:
    from collections import Counter

_NAMES = r"__CURSOR|__REALTIME_TIMESTAMP|_HOSTNAME|_TRANSPORT|SYSLOG_IDENTIFIER|MESSAGE"
_FIELD = re.compile(
    rf'\s*(?P<quote>"?)(?P<name>{_NAMES})(?(quote)"?)(?:=|\s:\s|(?P<binary>$))(?P<value>.*)$'
)
"""A field of an entry of the journal, on a line of its own: export, verbose, json-pretty."""
_ENTRY = re.compile(r"(?:[^\W\d_]{1,5}\.? (?P<stamp>\d{4}-.*?)) \[s=[0-9a-f]+;")
"""How an entry begins in `journalctl -o verbose`."""
FIELDS = (
    r'^\s*"?(?:__REALTIME_TIMESTAMP|_HOSTNAME|_TRANSPORT|SYSLOG_IDENTIFIER|MESSAGE)(?:=|" : |$)'
    r"|^\S{1,12} \d\d\d\d-.* \[s=[0-9a-f]|^\{\s*$|\] => \{\s*$|^LogRecord #\d"
)
"""What a line may be that says a part of such an entry, for a first look."""
_MAY_BE_FIELD = re.compile(FIELDS)
_OPENS = re.compile(r"(?:.*=> )?\{\s*\Z")
"""How a record begins that goes on over lines, up to one that begins with its closing brace."""
_MOST_OF_RECORD = 400  # lines
_OF_DUMP = re.compile(r"\s*->|(?:Attributes|Trace ID|Span ID|Flags|Severity\w+|EventName):")
"""Other lines of the same."""
_DUMPED = re.compile(
    r"\s*(?:-> )?(?P<name>[\w.]+): (?:(?:Str|Map)\((?P<text>.*)\)|(?P<bare>\S.*))\Z"
)
"""A field of a record as the collector of OpenTelemetry shows it: `Body: Str(...)`."""
_LENGTH = re.compile(r"[^\0]{1,3}?(?:\0{5,7}| )")
"""The length before what the journal exports as bytes: 64 bits, the least first. A file that holds
NULs is read with one blank for each run of them."""
_PARTIAL = re.compile(r"(?P<head>\S+ std(?:out|err) )(?P<tag>[PF]) ?(?P<said>.*)", re.DOTALL)
"""A line as runtimes of containers keep it: P where the next one goes on."""
_LONGEST_JOINED = 1 << 16
_DRIVERS = re.compile(r"NVRM:|nvidia-nvswitch")
_TELLING = re.compile(r'NVRM:|nvidia-nvswitch|"(?:MESSAGE|message)"')


class Line(NamedTuple):
    """One line of a file, or several that are one."""

    line_no: int
    place: int
    """Its number among the lines, where several stand on one line of the file."""
    whole: str
    text: str
    """Without what is the terminal's and the file's."""
    entry: dict[str, str] | None = None
    """The journal's entry of which it is the message."""


class WholeLines:
    """Holds a line until it is known whether the next one belongs to it."""

    def __init__(self, skipped: Counter[str]) -> None:
        self._skipped = skipped
        """Counts lines that are no record of their own."""
        self._held: Line | None = None
        self._entry: dict[str, str] = {}
        self._entry_line: Line | None = None
        self._record: list[Line] = []
        """Lines of a record of JSON so far."""
        self._dump: dict[str, str] = {}
        self._dump_line: Line | None = None
        self._binary: str | None = None
        """A field of which the next line holds length and value."""

    @property
    def wait(self) -> bool:
        """Whether the next line may belong to the one before."""
        held = self._held or self._binary or self._entry or self._record or self._dump
        return bool(held)

    def take(self, line: Line) -> list[Line]:
        """The lines that are whole now that this one has come."""
        if line.text.startswith("LogRecord #") or self._dump:
            return self._goes_into_dump(line)
        if self._record or _OPENS.match(line.text):
            return self._goes_into_record(line)
        return self._taken(line)

    def _goes_into_dump(self, line: Line) -> list[Line]:
        """The record of OpenTelemetry that ends with this line; nothing before that."""
        field = _DUMPED.match(line.text) if self._dump else None
        whole: list[Line] = []
        if line.text.startswith("LogRecord #"):
            whole = self._end_dump()
            self._dump = {"record": line.text}
        elif field is not None:
            self._dump[field["name"]] = field["text"] or field["bare"] or ""
            if field["name"] == "Body":
                self._dump_line = line
                return whole
        elif not _OF_DUMP.match(line.text):
            return self._end_dump() + self.take(line)
        self._skipped["no_fault"] += 1
        return whole

    def _end_dump(self) -> list[Line]:
        line, fields = self._dump_line, self._dump
        self._dump_line, self._dump = None, {}
        return [] if line is None else [line._replace(entry=fields)]

    def _goes_into_record(self, line: Line) -> list[Line]:
        """The record that ends with this line; its lines one by one where it is too long."""
        self._record.append(line)
        if line.whole.startswith("}"):
            return self._end_record()
        is_record = len(self._record) == 1 or self._record[1].text.startswith('"')
        if not is_record or len(self._record) > _MOST_OF_RECORD:
            lines, self._record = self._record, []
            return [whole for each in lines for whole in self._taken(each)]
        return []

    def _end_record(self) -> list[Line]:
        """The record of which the lines came, on the line that says what matters."""
        lines, self._record = self._record, []
        if len(lines) < 2:
            return lines
        telling = next((line for line in lines if _TELLING.search(line.text)), lines[0])
        self._skipped["no_fault"] += len(lines) - 1
        begin = lines[0].text.rindex("{")
        text = "\n".join((lines[0].text[begin:], *(line.text for line in lines[1:])))
        return [telling._replace(text=text, whole=lines[-1].whole)]

    def _taken(self, line: Line) -> list[Line]:
        """As `take`, of a line that stands in no record."""
        whole: list[Line] = []
        held, self._held = self._held, None
        if held is not None and self._joins(held, line, whole):
            return whole
        if self._is_field(line, whole) or not line.text:
            return whole
        partial = _PARTIAL.match(line.text) if " P " in line.text else None
        if (partial is not None and partial["tag"] == "P") or may_go_on(line.text):
            self._held = line
        else:
            whole.append(line)
        return whole

    def close(self) -> list[Line]:
        """What waited for a line that did not come."""
        whole = self._end_dump() + self._end_record() + ([] if self._held is None else [self._held])
        self._held = None
        self._end_entry(whole)
        return whole

    def _joins(self, held: Line, line: Line, whole: list[Line]) -> bool:
        """Whether a line belongs to the one that was held, which is whole now or goes on."""
        first, second = _PARTIAL.match(held.text), _PARTIAL.match(line.text)
        if first is not None and second is not None and len(held.text) < _LONGEST_JOINED:
            text = f"{first['head']}{second['tag']} {first['said']}{second['said']}"
            joined = held._replace(text=text)
            if second["tag"] == "P":
                self._held = joined
            else:
                whole.append(joined)
            self._skipped["continued"] += 1
            return True
        text_of_both = goes_on(held.text, line.text)
        if text_of_both is None:
            whole.append(held)
            return False
        whole.append(held._replace(text=text_of_both))
        self._skipped["continued"] += 1
        return True

    def _is_field(self, line: Line, whole: list[Line]) -> bool:
        """Whether a line says a part of an entry of the journal, or ends one."""
        if self._binary is not None:
            self._take_field(self._binary, _LENGTH.sub("", line.whole, count=1).strip(), line)
            self._binary = None
            return True
        if line.text and not self._entry and not _MAY_BE_FIELD.match(line.text):
            return False
        begun, field = _ENTRY.match(line.text), _FIELD.match(line.text)
        if begun is not None:
            self._end_entry(whole)
            self._entry = {"time": begun["stamp"]}
        elif field is not None:
            if field["name"] in self._entry:
                self._end_entry(whole)
            if field["binary"] is not None:
                self._binary = field["name"]
            else:
                value = field["value"].strip()
                self._take_field(field["name"], _unquoted(value) if field["quote"] else value, line)
                return True
        elif not line.text or line.text.startswith("}"):
            self._end_entry(whole)
            self._skipped["no_fault"] += bool(line.text)
            return True
        elif not self._entry or line.text.startswith("{") or _DRIVERS.search(line.text):
            return False
        self._skipped["no_fault"] += 1
        return True

    def _take_field(self, name: str, value: str, line: Line) -> None:
        """Keeps a field; the message's line is the line of the entry."""
        self._entry[name] = value
        if name == "MESSAGE":
            self._entry_line = line
        else:
            self._skipped["no_fault"] += 1

    def _end_entry(self, whole: list[Line]) -> None:
        """The message of the entry that ends here, with the fields around it."""
        line, entry = self._entry_line, self._entry
        self._entry_line, self._entry = None, {}
        if line is not None:
            whole.append(line._replace(entry=entry))


def _unquoted(value: str) -> str:
    """A text of JSON on a line of its own."""
    try:
        return str(json.loads(value.rstrip(",")))
    except ValueError:
        return value.strip('",')
