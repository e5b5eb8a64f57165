"""Host and time before a kernel's message in a form that nobody has described.

Where no known form fits, what stands before the message is still a prefix if it consists of times,
numbers, words that loggers use, the kernel's own mark and at most one host. Anything else is prose,
or another program that quotes the kernel.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from data.ingest.readers.logs.months import MONTH, month_of

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?(?:\d\d)?))?"
_TIME = re.compile(
    rf"""\b\d{{1,2}}[ /.-](?P<month>{MONTH})[ /.-]\d{{4}}[ :T]+{_CLOCK}
    | \d{{4}}[ ](?P<year_first>{MONTH})\s+\d{{1,2}}[ ]{_CLOCK}
    | (?P<month_first>{MONTH})\s+\d{{1,2}},?\s(?:\d{{4}}\s)?{_CLOCK}(?:\s\d{{4}}\b(?!-))?
    | \d{{4}}[-/]\d\d[-/]\d\d[T\ _]{_CLOCK}
    | @4(?P<tai>[0-9a-f]{{15}})[0-9a-f]{{8}}\b
    | \b(?P<millis>1\d{{12}})\b
    | \b(?P<unix>1\d{{9}}(?:\.\d+)?)\b""",
    re.VERBOSE,
)
_OF_THE_KERNEL = re.compile(
    r"(?<![\w.-])kern(?:el)?(?![\w-])"
    r"|\[\s*\d+\.\d{3,9}\]\s*$|^@4[0-9a-f]{23} $|(?<![\d,])\d,\d{1,20},\d{1,20},[-c+]?;\s*$",
    re.IGNORECASE,
)
"""Its name, or what only its own clock writes right before its message."""
_NAME = re.compile(r"(?<![\w.-])kernel(?![\w-])", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:table|tbody|tr|td|th|pre|code|br|span|p|li)\b[^<>]*>", re.IGNORECASE)
_HOST_KEY = re.compile(
    r"(?<![A-Za-z])(?:host|hostname|host_?name|dvchost|identhostname|guest|node|nodename|_hostname|computer|instance)"
    r"[\"']?\s*[:=]+\s*[\"']?(?P<host>[\w.-]*\w)",
    re.IGNORECASE,
)
_SAID = frozenset({
    "kernel", "kern", "dmesg", "kmsg", "printk", "console", "sol", "serial", "host-console",
    "target", "warning", "warn", "info", "notice", "err", "error", "crit", "debug", "emerg",
    "alert", "lvl", "level", "facility", "severity", "sev", "priority", "pri", "prio", "time",
    "devtime", "dt",
    "utc", "gmt", "t", "z", "message", "msg", "ident", "tag", "program", "log", "syslog", "rt",
    "systemd-journald", "createtime", "partition", "offset", "key",
})  # fmt: skip
"""Words that loggers write before a message."""
_PROGRAM = re.compile(r"(?<![\w.-])(?!kernel\b)[\w.-]+\[\d+\]:|[a-z] [a-z]+ [a-z]+ ")
"""Another program, or prose."""
_OF_USER = re.compile(r"<(?:[89]|\d{2,3})>|(?<!\d)(?:[89]|\d{2,3}),\d+,\d+,")
"""A priority or rank of what programs write."""
_SEPARATORS = re.compile(r"[\s|;,<>\[\](){}\"'=:#%+^*\\/]+")
_LETTER = re.compile("[a-zA-Z]")
_TAI_OF_UNIX = 10  # seconds that TAI64N is ahead
_LEAP_YEAR = 2000
_MOST_HOURS, _HOUR = 14, 60
_LONGEST = 400
"""Characters of a prefix."""
_THINGS = re.compile(
    r"(?:pid|tid|cpu|local|eth|en[ops]|nvme|sd|v|q|tty|rank|task|step|job|ticket|gpu\d?$|level)"
    r"[\d.]*(?:n\d+(?:p\d+)?|[a-z]\d*)?",
    re.IGNORECASE,
)
"""Words with a number that are no host's name."""


def loose_prefix(
    text: str, *, marked: bool = False
) -> tuple[str | None, datetime | None, bool, str | None] | None:
    """Host, time, whether the time has its year, and its zone; None where the text is no prefix.

    `marked` where something else than the text says that the kernel wrote what follows.

    Examples
    --------
    >>> loose_prefix("1 Jul 2026 13:14:15 +0000;n13;kern;warning;kernel;")[0]
    'n13'
    >>> loose_prefix("the kernel told us of ") is None
    True
    """
    if len(text) > _LONGEST:
        return None
    text = _TAGS.sub(" ", text)
    if not (marked or _OF_THE_KERNEL.search(text)) or _PROGRAM.search(text):
        return None
    if _OF_USER.search(text):
        return None
    times = list(_TIME.finditer(text))
    named = [one for one in _HOST_KEY.finditer(text) if one["host"].lower() not in _SAID]
    rest = _HOST_KEY.sub(" ", _TIME.sub(" ", text))
    words = [word for word in _SEPARATORS.split(rest) if _may_name(word)]
    hosts = {word for word in words if _looks_like_a_host(word)}
    if len(hosts) < len({*words}) or len(hosts - {one["host"] for one in named}) > 1:
        return None
    host = next((one["host"] for one in named if "guest" in one[0].lower()), None)
    host = host or (named[-1]["host"] if named else next(iter(hosts), None))
    mark = _last_mark(text)
    if host and not (times or text.rstrip().endswith(("]", ";"))):
        return None  # words about a kernel
    if host and not named and mark is not None and mark < text.rindex(host):
        return None  # what stands behind the kernel's name is no host
    if not times:
        return host, None, True, None
    try:
        return host, *_read(times[-1])
    except (ValueError, OverflowError, OSError):  # a day or an hour that does not exist
        return host, None, True, None


def _last_mark(text: str) -> int | None:
    """Where the kernel's name stands last; None where only its clock marks it."""
    found = [one.start() for one in _NAME.finditer(text)]
    return found[-1] if found else None


def _may_name(word: str) -> bool:
    """Whether a word is neither a number nor one that any logger writes."""
    word = word.strip(".-_@$!")
    return bool(_LETTER.search(word)) and not _SAID.issuperset(word.lower().split("."))


def _looks_like_a_host(word: str) -> bool:
    named = re.fullmatch(r"[A-Za-z][\w.-]*\d[\w.-]*", word) is not None
    return named and _THINGS.fullmatch(word) is None


def _read(found: re.Match[str]) -> tuple[datetime, bool, str | None]:
    """A time, whether it has its year, and its zone; ValueError where it does not exist."""
    if found["tai"]:
        return datetime.fromtimestamp(int(found["tai"], 16) - _TAI_OF_UNIX, UTC), True, None
    if found["millis"] or found["unix"]:
        seconds = int(found["millis"]) / 1000 if found["millis"] else float(found["unix"])
        return datetime.fromtimestamp(seconds, UTC), True, None
    text, month = (
        found[0],
        month_of(found["month"] or found["year_first"] or found["month_first"] or ""),
    )
    zone = re.search(r"(?<=[\d ])(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)(?:\s\d{4})?$", text)
    at_clock = re.search(r"(?<!\d)(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?", text)
    if at_clock is None:
        raise ValueError(text)
    hour, minute, second, fraction = at_clock.groups()
    if month is None:
        year, number, day = map(int, re.split(r"[-/]", text[:10]))
        has_year = True
    else:
        before = text[: at_clock.start()] + " " + text[at_clock.end() :]
        years = re.findall(r"(?<![\d+-])\d{4}\b", before)
        day = int(re.findall(r"(?<!\d)\d{1,2}(?!\d)", before)[0])
        year, number, has_year = int(years[0]) if years else _LEAP_YEAR, month, bool(years)
    time = datetime(  # noqa: DTZ001 - local where no zone is stated: the reader's clock adds it
        year, number, day, int(hour), int(minute), int(second),
        int((fraction or "0").ljust(6, "0")[:6]),
    )  # fmt: skip
    if zone is None:
        return time, has_year, None
    if zone[1][0] in "+-":
        digits = zone[1][1:].replace(":", "").ljust(4, "0")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > _MOST_HOURS or minutes >= _HOUR:
            raise ValueError(text)
        ahead = timedelta(hours=hours, minutes=minutes)
        time += -ahead if zone[1][0] == "+" else ahead
    return (time.replace(tzinfo=UTC), True, None) if has_year else (time, False, "UTC")
