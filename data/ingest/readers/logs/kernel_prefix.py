"""What stands before the kernel's message on a line: times, hosts, and who carried the line.

Each carrier puts its own form before the line: `dmesg`, the journal, syslog and its relays, a
container's runtime, a serial console, `grep`. The forms are taken off one by one, in whatever
order they come. What is left over is no prefix.
"""

from __future__ import annotations

import re
from calendar import isleap
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from analytics.patterns import lazily
from data.ingest.reader import RecordError
from data.ingest.readers.logs.loose_prefix import loose_prefix
from data.ingest.readers.logs.months import MONTH, month_of
from data.ingest.readers.logs.prefix import LEAP_YEAR, Prefix

_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_WEEKDAY = r"[^\W\d_]{1,5}\.?"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONES = r"UTC|GMT|CES?T|EE?S?T|WES?T|[ECMP][SD]T|BST|IST|JST|KST|MSK|HKT|SGT|AES?T|AED?T"
_BARE = (
    rf"{MONTH}\s+\d{{1,2}},?\s(?:\d{{4}}\s)?{_CLOCK}"
    rf"(?:\s(?:{_ZONES})(?=[\s\]]))?(?:\s\d{{4}}(?=[\s\]]))?"
)
_ISO = (
    rf"(?:\d{{8}}T\d{{6}}(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|\d{{4}}[-/]\d\d[-/]\d\d[T ]{_CLOCK}(?:\ ?(?:Z|UTC)|\ ?[+-]\d\d:?(?:\d\d)?)?)"
)
_FULL = rf"{_WEEKDAY}\s\d{{4}}-\d\d-\d\d\s{_CLOCK}\s(?:[A-Z]{{1,5}}|[+-]\d{{2,4}})"
_UNIX = r"\d{9,10}\.\d+"
_END = r"(?:\s*<\s*[\d.]+\s*>)?\s*\]:?"  # dmesg -d puts the seconds since the line before here
_PRIORITY = r"(?:<\d{1,3}>(?:1\s)?\s*)?"
_ZONED = rf"\d{{4}}-\d\d-\d\dT{_CLOCK}(?:Z|[+-]\d\d:?\d\d)"
_MACHINE = rf"[\[<\d]|kern\b|{MONTH}\s+\d|{_WEEKDAY}\s\d{{4}}-"
_DATA = r'\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]'
"""Structured data of RFC 5424, whose values may hold brackets."""
_FACILITIES = r"kern|user|mail|daemon|auth|authpriv|syslog|lpr|news|uucp|cron|ftp|local\d"
_CARRIER = r"kernel|netconsole|klogd|vmunix"
_CONSOLE = r"(?i:tty\w*\d|hvc\d|com\d|uart\d*|(?:serial|ipmi|netconsole|sol|bmc|console)[\w.-]*)"
_FORM = lazily(
    rf"""(?:
    (?P<blank>[\s\0\ufeff]+)
  | (?P<cri>(?P<written>{_ZONED})\ std(?:out|err)\ [FP](?:\s|$))               # Kubernetes
  | (?P<uptime>\[\s*(?P<seconds>\d+\.\d+){_END})                               # dmesg
  | (?P<priority>(?:\d{{1,4}}\s(?=<\d{{1,3}}>1\s))?<(?P<level>\d{{1,3}})>(?:1\s(?:-\s)?)?)
  | (?P<dated>(?P<wall>\[(?:{_WEEKDAY}\s+)?{_BARE}{_END}                       # dmesg -T
      |\[{MONTH}\s?\d{{1,2}}\s\d\d:\d\d{_END}                            # dmesg -e
      |(?=(?:[^\s\d\[<:]{{1,9}}|\d{{1,2}}[月월])\s+[\w.])(?:{_WEEKDAY},?\s+)?{_BARE}(?=[\s:]):?)
    | (?P<iso>\[{_ISO}\]:?|{_ISO}(?=[\s:\[]|$):?) | (?P<full>{_FULL})(?=\s)
    | (?P<unix>{_UNIX})(?=\s))
  | (?P<tag>(?:{_CARRIER})(?:\[[\w/]+\])?:|(?:kern\t\w+\t)?kernel\t(?:\w+\t)?
      |\[kernel\](?=\s))
  | (?P<kmsg>(?:\d+\.\d+[^\s,;]*,)?(?P<rank>\d{{1,3}}),\d+,(?P<micros>\d+),[^;]*;)
  | (?P<delta>\[\s*(?:\+\s*\d+\.\d+|<\s*\d+\.\d+\s*>)\s*\]|\[\.\.\.\])        # dmesg -e, -td
  | (?P<caller>\[\s*[TC]\d+\]|\[\d\d:\d\d(?::\d\d(?:\.\d+)?)?\](?=\s)|\[kern[./]\w+\]
      |\{{\w+\.py:\d+\}}\s(?:INFO|WARNING|ERROR)\s-(?=\s\[))                    # Airflow
  | (?:host|hostname|node)=(?P<stated>[\w.:-]*\w)(?=\s)
  | (?P<repeated>message\srepeated\s\d+\stimes:\s\[)
  | (?P<facility>(?P<by>{_FACILITIES})\s*:\s*[a-z]+\s*:(?=\s)
      |[a-z]+\d?\.[a-z]+:?\s+(?=kernel\b))                                     # dmesg -x, Talos
  | (?P<app>(?:kernel|-)\s(?:-|\d+)\s(?:-|[\w.-]+)\s(?:-|(?:{_DATA})+)(?:\s|$))  # RFC 5424
  | (?P<gathered>\[\d+,\d+\]<std(?:out|err)>:|\[(?:pod|container)/\S+\]        # mpirun, kubectl
      |\A[\w.-]*\w\s{{2,}}\|\s|\A[\w.-]+_\d+\s\|\s)                            # compose
  | (?P<console>(?:[\[(]{_CONSOLE}[\])]|{_CONSOLE}(?:\[[\d.:]+\])?\s?[:>|])(?=\s)|\[SOL[^\]]*\])
  | (?P<file>\A(?!kernel\b)[^\s:\[<"'`(]+[:](?:\d+:)?
      (?={_PRIORITY}(?:\[|\d{{4}}-|(?:{_MONTH})\s|NVRM|nvid)))                 # grep
  | (?P<named>(?!kernel\b)(?P<who>[\w.-]*\w)(?::|\s?\|)\s+(?={_MACHINE}))       # pdsh, clush
  | (?P<peer>\A(?:from\s)?(?P<ip>\d+\.\d+\.\d+\.\d+)(?::\d+)?:?\s+(?={_MACHINE}))  # netconsole
  | (?P<boxed_host>\[(?P<boxed>(?!{_CONSOLE})[a-z][\w.-]*\d[\w.-]*)\](?:\s(?:out|err):)?(?=\s))
  | (?P<detector>[IWEF]\d{{4}}\s[\d:.]+\s+\d+\s\S+:\d+\]\sNew\sstatus\sgenerated:\s
      &\{{Source:kernel-monitor\s.*?Timestamp:(?P<status>\S+\s\S+\s\S+)\s.*?Message:\Z)
  | (?P<nil>-(?=\s))
  | (?P<word>(?!kernel[\[:\s])[\w.:@/-]*\w)(?=\s)
    )[\s\0\ufeff]*""",
    re.VERBOSE,
)
_USUAL = lazily(
    rf"(?:(?P<iso>{_ZONED})|(?P<wall>(?:{_MONTH})\s+\d+\s\d\d:\d\d:\d\d))\ (?P<host>[\w.-]*\w)\ "
    r"kernel:\s+(?:\[\s*\d+\.\d+\]\s+)?"
)
"""The forms of the journal and of syslog in one look, for most lines have them."""
_TWO_LETTERS = lazily(r"[^\W\d_]{2}")
_NUMBERED = lazily(r"[a-zA-Z].*\d|\d\.\d")
"""What looks like a host's name or address wherever it stands."""
_PROSE = frozenset({
    "example", "e.g", "note", "output", "log", "see", "error", "warning", "sample", "line", "fix",
    "message", "symptom", "dmesg", "from", "comment", "reported", "description", "subject", "re",
    "quote", "bug", "expected", "found", "saw", "got", "info", "debug", "trace", "fatal", "err",
    "critical", "warn", "notice", "login", "password", "grep", "echo",
})  # fmt: skip
"""Words before a colon that are no host's name."""
_WRAPPED = lazily(
    rf"\s*(?:{_ZONED}\ std(?:out|err)\ [FP]\ ?|[\w.-]*\w\s{{2,}}\|\s+|[\w.-]+_\d+\s\|\s+"
    r"|\[\d+,\d+\]<std(?:out|err)>:\s?)"
)
"""What runtimes of containers put before any line."""
_OTHER_PROGRAM = lazily(
    rf"\s*{_PRIORITY}(?:{_BARE}|{_ISO}|{_FULL}|{_UNIX}|\[\s*\d+\.\d+{_END})\s*"
    r"(?:(?:\S+\s+)?(?!kernel\b)[^\s:\[]+(?:\[\d+\])?:\s|\S+\s(?!kernel\b)\S+\s\S+\s\S+\s)"
    r"|\s*[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S+:\d+\] "  # klog
)
_PASSED_ON = lazily(rf"(?:[:\]-]|\bfrom=\S+)\s+(?=(?:<\d{{1,3}}>(?:1\s)?)?(?:{_BARE}|{_ISO})\s)")
_KERNELS = lazily(r"\skernel(?:\[\d+\])?:|\skernel\s-\s-\s")
_ZONED_AT = lazily(_ZONED)
_PROGRAM = lazily(r"(?:\S+\s+)?(?!kernel\b)[^\s:\[]+(?:\[\d+\])?:\s")
_AGAIN = lazily(
    rf"(?:<[0-7]>)?\[\s*\d+\.\d{{3,9}}\]|<\d{{1,3}}>(?={_BARE}|{_ISO}|1\s)"
    r"|(?<!\d)[0-7],\d{1,20},\d{1,20},[^;]{0,80};"
    rf"|(?:{_MONTH})\s+\d{{1,2}}\s(?:\d{{4}}\s)?{_CLOCK}|(?:19|20)\d\d-\d\d-\d\d[T ]{_CLOCK}"
    rf"|\[[A-Z][a-z]{{2}}\s+{_BARE}\]"
)
"""Where another line may begin within a line, its line end lost."""
_LEADING = lazily(r".{0,200}?\bkernel(?:\[\d+\])?:\s*|(?:<\d+>)?\[\s*\d+\.\d+\]\s*")
_PROMPT = lazily(
    r"(?:(?:(?P<prompting>[\w.-]+)\s)?(?:login|[Pp]assword):"
    r"|(?:^|[\s\[])[\w.-]+@(?P<host>[\w.-]+)[^\s'\"]*(?:\s[^\s'\"]*\])?[#$%>])\s*$"
)
_LOGGED = lazily(
    rf"""\s*
    (?: <\d{{1,3}}>                                                  # dmesg -r, syslog's priority
      | kern\s*:[a-z]+\s*:                                          # dmesg -x
      | (?:[\w.-]+:\s+)?\[\s*(?:\+\s*\d+\.\d+|<\s*\d+\.\d+\s*>)\s*\]  # dmesg -d
      | (?:{_MONTH})\s+\d{{1,2}}\s(?:\d{{4}}\s)?{_CLOCK}\s+\S        # syslog
      | {_FULL}\s+\S+\s+\S+:\s                                      # journalctl
      | {_ZONED}\s+(?!(?i:trace|debug|info|notice|warn|warning|error|err|fatal|critical)\b)
        [\w.:-]+\s+[^\s:\[\]]+(?:\[\d+\])?:\s                       # rsyslog, short-iso
      | \d{{1,3}},\d+,\d+,[-c+]                                      # /dev/kmsg
      | \{{.*"(?:MESSAGE|__REALTIME_TIMESTAMP)"\s?:                  # journalctl -o json
      | \s*"?(?:MESSAGE|__REALTIME_TIMESTAMP)(?:=|"\s:\s)            # its export, json-pretty
      | --\s(?:Logs?\sbegin|Journal\sbegins|Boot\s[0-9a-f]|No\sentries)
      | [\w-]+\s[0-9a-f]{{4}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]:\s    # dmesg -t: of a PCI device
      | Linux\sversion\s\d
      | (?:[\w.-]+:\s+)?(?:\[\s*\d+\.\d+\s*(?:<[^>]*>)?\s*\]         # dmesg
        |\[(?:[A-Z][a-z]{{2}}\s+)?{_BARE}\]|\[{MONTH}\s?\d{{1,2}}\s\d\d:\d\d\])
      | (?:\S+\s+){{0,6}}kernel(?:\[\d+\])?:
    )""",
    re.VERBOSE,
)
_WALL = lazily(
    rf"(?:{_WEEKDAY},?\s+)?(?P<month>{MONTH})\s*(?P<day>\d+),?\s(?:(?P<year>\d{{4}})\s)?"
    rf"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    rf"(?:\s(?P<zone>{_ZONES}))?(?:\s(?P<last_year>\d{{4}}))?"
)
_SHOWN = 400  # characters of a line that tell its form
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUARTER_S = 900
_DELAY_S = 120
"""Seconds within which a relay passes a line on, where its clock tells the zone of the line's."""
_MOST_WORDS = 2
"""Hosts between a time and `kernel:`; more words are a sentence."""
_USER = 8
"""Least priority of what programs write into the kernel's log."""


@lru_cache(maxsize=4096)
def prefix_of(text: str) -> Prefix | None:
    """Host and time before a message; None where another program quotes the kernel.

    Of several times the innermost counts, for the machine itself wrote it; of hosts as well. Where
    the text is none of the forms, a line may have lost its end: the next begins within the text.

    Raises
    ------
    RecordError
        Where the text is none of the known forms.

    Examples
    --------
    >>> prefix_of("<6>Mar  4 05:06:09 relay Mar  4 05:06:07 n1 kernel: [  9.1] ").host
    'n1'
    >>> prefix_of("[  7.0] usb 1-1: new device[  9.500000] ").uptime_s
    9.5
    >>> prefix_of("Mar  4 05:06:07 n1 gpud[7]: saw ") is None
    True
    """
    try:
        found = _stripped(text)
    except RecordError:
        begun = begun_again(text)
        if begun is not None:
            return begun[1]
        loose = loose_prefix(text)
        if loose is None:
            raise
        return loose
    if found is None:
        begun = begun_again(text)
        if begun is not None:
            return begun[1]
        return loose_prefix(text) or _passed_on(text)
    return found


def _passed_on(text: str) -> Prefix | None:
    """Host and time in a whole line of syslog that another host's relay wrote as its message."""
    begins = [found.end() for found in _PASSED_ON.finditer(text)]
    if not begins:
        return None
    outer, inner = text[: begins[-1]], text[begins[-1] :]
    if not _KERNELS.search(inner):
        return None
    try:
        found = _stripped(inner)
    except RecordError:
        return None
    if found is None or found.host is None:
        return None
    if _short_name(found.host) in map(_short_name, outer.split()):
        return None  # a program on the host itself quotes it
    received = _ZONED_AT.search(outer)
    with suppress(ValueError):  # a day that does not exist
        return zoned(found, datetime.fromisoformat(received[0]) if received else None)
    return found


def _short_name(host: str) -> str:
    """A host's name without its domain, an address whole."""
    return host if host[:1].isdigit() else host.partition(".")[0].lower()


def leading(text: str) -> Prefix | None:
    """Host and time with which a line begins whose message is not looked at; as `prefix_of`."""
    found = _LEADING.match(text)
    if found is None:
        return None if _OTHER_PROGRAM.match(text) else Prefix()
    try:
        return prefix_of(found[0])
    except RecordError:
        return Prefix()


def begun_again(text: str, *, behind_kernel: bool = False) -> tuple[int, Prefix | None] | None:
    """Where a line that begins within the text does so, and its prefix; None where none does.

    It begins where its form follows a letter or the prompt of a console, for words that quote a
    line leave a blank before it. Where the text is the kernel's own message (`behind_kernel`), a
    blank says nothing.
    """
    for found in _AGAIN.finditer(text):
        at = found.start()
        before = text[:at]
        if not (behind_kernel or _TWO_LETTERS.search(before)):
            continue
        glued = before[-1:].strip() and before[-1] not in "\"'`(=:>|,[{"
        prompt = _PROMPT.search(before)
        if not (glued or behind_kernel or prompt):
            continue
        try:
            begun = _stripped(text[at:])
        except RecordError:
            continue
        if begun is not None and begun.host is None and prompt is not None:
            begun = replace(begun, host=prompt["prompting"] or prompt["host"])
        return at, begun
    return None


def _first_of_chain(host: str) -> str:
    """The host that wrote a line, of what syslog-ng puts there: source@host/relay.

    >>> _first_of_chain("s_remote@n7/relay1"), _first_of_chain("n7")
    ('n7', 'n7')
    """
    return host.rpartition("@")[2].partition("/")[0] or host


class _Seen:
    """What the forms of a line have told so far."""

    __slots__ = (
        "_dated", "_host", "_n_words", "_needs_tag", "_outer", "_uptime_s", "of_user", "tagged",
    )  # fmt: skip

    def __init__(self) -> None:
        self._host: str | None = None
        self._outer: str | None = None
        self._dated: Prefix | None = None
        self._uptime_s: float | None = None
        self._n_words = 0
        self._needs_tag = self.tagged = self.of_user = False

    @property
    def timed(self) -> bool:
        """Whether a time has been seen."""
        return self._dated is not None or self._uptime_s is not None

    def date(self, dated: Prefix) -> None:
        """A date: it replaces one that stood before, which tells its zone and year."""
        if self._n_words and not self.timed and not _NUMBERED.search(self._host or ""):
            raise RecordError("unknown text before the kernel's message")
        if self._dated is None:
            self._dated = dated
        elif dated.time is not None:
            self._dated = zoned(dated, self._dated.time)
        self._uptime_s = None
        self.tagged = self._needs_tag = False
        self._n_words = 0

    def since_boot(self, seconds: float) -> None:
        """Seconds since boot: they matter where the line tells no date."""
        if self._n_words == 1 and not self.timed and _NUMBERED.search(self._host or ""):
            self._needs_tag = False
        self._uptime_s = seconds

    def take_word(self, word: str) -> bool:
        """A word by itself: a host, where few enough stand between the time and `kernel:`."""
        self._host, self._n_words = word, self._n_words + 1
        self._needs_tag |= self._dated is None or self._uptime_s is not None or self._n_words > 1
        return not (self.tagged or word.isdigit() or self._n_words > _MOST_WORDS)

    def take_named(self, name: str) -> bool:
        """A word before a colon or bar: a host, unless it is a word of prose or a program."""
        if name.isdigit():  # the number of a task
            return True
        if name.lower() in _PROSE or (name.istitle() and name.isalpha()):
            return False
        if self.timed and not any(map(str.isdigit, name)):
            return False
        self._outer = name
        return True

    def result(self) -> Prefix | None:
        """All of it; None where a program wrote into the kernel's log."""
        if self._needs_tag and not self.tagged:
            raise RecordError("unknown text before the kernel's message")
        if self.of_user and not self.tagged:
            return None
        host, dated = self._host or self._outer, self._dated
        host = host and _first_of_chain(host)
        if dated is None:
            return Prefix(host, uptime_s=self._uptime_s)
        return Prefix(host, dated.time, dated.has_year, dated.zone)


def _stripped(text: str) -> Prefix | None:
    """Host and time of a text that consists of forms alone; see `prefix_of`."""
    try:
        if usual := _USUAL.fullmatch(text):
            try:
                if usual["iso"]:
                    return Prefix(usual["host"], datetime.fromisoformat(usual["iso"]))
                wall = _wall_clock(usual["wall"])
            except ValueError:  # a day or an hour that does not exist
                return Prefix(usual["host"])
            return Prefix(usual["host"], wall.time, has_year=False)
        seen, at = _Seen(), 0
        while at < len(text):
            form = _FORM.match(text, at)
            kind = form.lastgroup if form is not None else None
            if form is None or kind is None or not _take(kind, form, seen):
                _refuse(text, at, seen)
                return None
            at = form.end()
    except RecordError:
        raise
    except (ValueError, OverflowError):
        raise RecordError("impossible date") from None
    return seen.result()


def _refuse(text: str, at: int, seen: _Seen) -> None:
    """RecordError where what is no form is not the mark of another program either."""
    known = seen.timed and at > 0 and _PROGRAM.match(text, at)
    if known or _OTHER_PROGRAM.match(text):
        return
    raise RecordError("unknown text before the kernel's message")


def _take(kind: str, form: re.Match[str], seen: _Seen) -> bool:
    """Whether a form belongs to a prefix; what it tells is kept."""
    if kind in ("dated", "cri", "detector"):
        try:
            seen.date(_timed(form))
        except (ValueError, OverflowError):  # a day or an hour that does not exist
            seen.date(Prefix())
        seen.tagged |= kind == "detector"
    elif kind == "uptime":
        seen.since_boot(float(form["seconds"]))
    elif kind == "kmsg":
        seen.since_boot(int(form["micros"]) / 1e6)
        seen.of_user |= int(form["rank"]) >= _USER
    elif kind in ("tag", "app"):
        seen.tagged = True
    elif kind == "facility":
        seen.of_user |= form["by"] in ("user", "daemon")
    elif kind == "word":
        return seen.take_word(form["word"])
    elif kind == "stated":
        seen.take_named(form["stated"])
    elif kind in ("named", "boxed_host", "peer"):
        return seen.take_named(form["who"] or form["boxed"] or form["ip"])
    return True


def _timed(form: re.Match[str]) -> Prefix:
    """The date of a form; ValueError for an impossible one."""
    if form["written"]:
        return Prefix(time=datetime.fromisoformat(form["written"]))
    if form["status"]:
        return Prefix(time=datetime.fromisoformat("".join(form["status"].rsplit(" ", 1))))
    if wall := form["wall"]:
        return _wall_clock(wall.lstrip("["))
    if form["iso"]:
        iso = form["iso"].strip("[]:")
        if "/" in iso or " " in iso:
            day, clock = iso[:10].replace("/", "-"), iso[11:].replace("UTC", "Z")
            iso = f"{day}T{clock.replace(' ', '')}"
        return Prefix(time=datetime.fromisoformat(iso))
    if form["full"]:
        _, _, rest = form["full"].partition(" ")
        stamp, _, zone = rest.rpartition(" ")
        if zone[0] in "+-":
            return Prefix(time=datetime.fromisoformat(stamp + zone))
        return Prefix(time=datetime.fromisoformat(stamp), zone=zone)
    return Prefix(time=_EPOCH + timedelta(seconds=float(form["unix"])))


def _wall_clock(text: str) -> Prefix:
    """A time such as `Feb 23 16:24:18 2025`, with or without year and seconds."""
    match = _WALL.match(text)
    month = month_of(match["month"]) if match else None
    if match is None or month is None:
        raise ValueError(text)
    year = match["year"] or match["last_year"]
    time = datetime(  # noqa: DTZ001 - local: LocalClock adds the zone
        int(year or LEAP_YEAR),
        month,
        int(match["day"]),
        int(match["hour"]),
        int(match["minute"]),
        int(match["second"] or 0),
        int((match["fraction"] or "0").ljust(6, "0")[:6]),
    )
    return Prefix(time=time, has_year=year is not None, zone=match["zone"])


def zoned(inner: Prefix, outer: datetime | None) -> Prefix:
    """A time with the year and zone of the one before it, where they are the same but for delay.

    With outer time o (UTC) and inner wall-clock time i the offset is i - o to a quarter of an hour,
    if the rest is less than two minutes.
    """
    time = inner.time
    if (
        outer is None
        or outer.tzinfo is None
        or time is None
        or time.tzinfo is not None
        or inner.zone is not None
    ):
        return inner
    try:
        return _in_zone(inner, time, outer.astimezone(UTC).replace(tzinfo=None))
    except (ValueError, OverflowError):  # at the first or last year that a date may have
        return inner


def _in_zone(inner: Prefix, time: datetime, received: datetime) -> Prefix:
    """A wall-clock time in the zone that the time of its receipt (UTC) tells."""
    if not inner.has_year:
        years = [y for y in (received.year - 1, received.year, received.year + 1) if _has(time, y)]
        if not years:
            return inner
        time = min((time.replace(year=year) for year in years), key=lambda at: abs(at - received))
    ahead_s = (time - received).total_seconds()
    offset_s = round(ahead_s / _QUARTER_S) * _QUARTER_S
    if abs(ahead_s - offset_s) >= _DELAY_S or abs(offset_s) > 14 * 3600:
        return inner
    return Prefix(inner.host, (time - timedelta(seconds=offset_s)).replace(tzinfo=UTC))


def _has(time: datetime, year: int) -> bool:
    """Whether the day exists in that year."""
    return (time.month, time.day) != (2, 29) or isleap(year)


def is_logged(line: str) -> bool:
    """Whether a line has a form of the kernel's log, of syslog or the journal, faulty or not."""
    text = line[:_SHOWN].lstrip("\ufeff\x1e\0")
    wrapped = _WRAPPED.match(text)
    text = text[wrapped.end() :] if wrapped else text
    return bool(_LOGGED.match(text)) or "NVRM:" in line or "nvidia-nvswitch" in line
