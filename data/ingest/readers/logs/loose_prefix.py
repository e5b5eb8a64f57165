"""Host and time before a kernel's message in a form that nobody has described.

Where no known form fits, what stands before the message is still a prefix if it consists of times,
numbers, words that loggers use, the kernel's own mark and at most one host. Anything else is prose,
or another program that quotes the kernel.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from analytics.patterns import lazily
from data.ingest.readers.logs.months import MONTH, month_of
from data.ingest.readers.logs.prefix import LEAP_YEAR, Prefix

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?(?:\d\d)?))?"
_TIME = lazily(
    rf"""\b\d{{1,2}}[ /.-](?P<month>{MONTH})[ /.-]\d{{4}}[ :T]+{_CLOCK}
    | \d{{4}}[ ](?P<year_first>{MONTH})\s+\d{{1,2}}[ ]{_CLOCK}
    | (?P<month_first>{MONTH})\s+\d{{1,2}},?\s(?:\d{{4}}\s)?{_CLOCK}(?:\s\d{{4}}\b(?!-))?
    | \d{{4}}[-/]\d\d[-/]\d\d[T\ _]{_CLOCK}
    | @4(?P<tai>[0-9a-f]{{15}})[0-9a-f]{{8}}\b
    | \b(?P<millis>1\d{{12}})\b
    | \b(?P<unix>1\d{{9}}(?:\.\d+)?)\b""",
    re.VERBOSE,
)
_OF_THE_KERNEL = lazily(
    r"(?<![\w.-])kern(?:el)?(?![\w-])"
    r"|\[\s*\d+\.\d{3,9}\]\s*$|^@4[0-9a-f]{23} $|(?<![\d,])\d,\d{1,20},\d{1,20},[-c+]?;\s*$",
    re.IGNORECASE,
)
"""Its name, or what only its own clock writes right before its message."""
_NAME = lazily(r"(?<![\w.-])kernel(?![\w-])", re.IGNORECASE)
_TAGS = lazily(r"</?(?:table|tbody|tr|td|th|pre|code|br|span|p|li)\b[^<>]*>", re.IGNORECASE)
_HOST_KEY = lazily(
    r"(?<![A-Za-z])(?:host|host_?name|dvchost|identhostname|guest|node|nodename|computer|instance)"
    r"[\"']?\s*[:=]+\s*[\"']?(?P<host>[\w.-]*\w)",
    re.IGNORECASE,
)
_SAID = frozenset({
    "kernel", "kern", "dmesg", "kmsg", "printk", "console", "sol", "serial", "host-console",
    "target", "warning", "warn", "info", "notice", "err", "error", "crit", "debug", "emerg",
    "alert", "lvl", "level", "facility", "severity", "sev", "priority", "pri", "prio", "time",
    "devtime", "dt", "utc", "gmt", "t", "z", "message", "msg", "ident", "tag", "program",
    "log", "syslog", "rt",
    "systemd-journald", "createtime", "partition", "offset", "key",
})  # fmt: skip
"""Words that loggers write before a message."""
_OF_OTHERS = lazily(
    r"(?<![\w.-])(?!kernel\b)[\w.-]+\[\d+\]:|[a-z] [a-z]+ [a-z]+ "
    r"|<(?:[89]|\d{2,3})>|(?<!\d)(?:[89]|\d{2,3}),\d+,\d+,"
)
"""Another program, prose, or a priority or rank of what programs write."""
_SEPARATORS = lazily(r"[\s|;,<>\[\](){}\"'=:#%+^*\\/]+")
_LETTER = lazily("[a-zA-Z]")
_TAI_OF_UNIX = 10  # seconds that TAI64N is ahead
_MOST_HOURS, _HOUR, _LAST_DAY = 14, 60, 31
_AT_CLOCK = lazily(
    r"(?<!\d)(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?"
    r"(?:\s?(?P<zone>Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?))?"
)
_LONGEST = 400
"""Characters of a prefix."""
_THINGS = lazily(
    r"(?:pid|tid|cpu|local|eth|en[ops]|nvme|sd|v|q|tty|rank|task|step|job|ticket|level)"
    r"[\d.]*(?:n\d+(?:p\d+)?|[a-z]\d*)?",
    re.IGNORECASE,
)
"""Words with a number that are no host's name."""


def loose_prefix(text: str, *, marked: bool = False) -> Prefix | None:
    """Host and time of a text; None where it is no prefix.

    `marked` where something else than the text says that the kernel wrote what follows.

    Examples
    --------
    >>> loose_prefix("1 Jul 2026 13:14:15 +0000;n13;kern;warning;kernel;").host
    'n13'
    >>> loose_prefix("the kernel told us of ") is None
    True
    """
    if len(text) > _LONGEST:
        return None
    text = _TAGS.sub(" ", text)
    if not (marked or _OF_THE_KERNEL.search(text)) or _OF_OTHERS.search(text):
        return None
    times = list(_TIME.finditer(text))
    named = [one for one in _HOST_KEY.finditer(text) if one["host"].lower() not in _SAID]
    rest = _HOST_KEY.sub(" ", _TIME.sub(" ", text))
    words = {word for word in _SEPARATORS.split(rest) if _may_name(word)}
    if not all(map(_looks_like_a_host, words)) or len(words - {one["host"] for one in named}) > 1:
        return None
    host = next((one["host"] for one in named if "guest" in one[0].lower()), None)
    host = host or (named[-1]["host"] if named else next(iter(words), None))
    if host and not (times or text.rstrip().endswith(("]", ";"))):
        return None  # words about a kernel
    marks = [one.start() for one in _NAME.finditer(text)]
    if host and not named and marks and marks[-1] < text.rindex(host):
        return None  # what stands behind the kernel's name is no host
    try:
        return replace(_when(times[-1]), host=host) if times else Prefix(host)
    except (ValueError, OverflowError, OSError):  # a day or an hour that does not exist
        return Prefix(host)


def _may_name(word: str) -> bool:
    """Whether a word is neither a number nor one that any logger writes."""
    word = word.strip(".-_@$!")
    return bool(_LETTER.search(word)) and not _SAID.issuperset(word.lower().split("."))


def _looks_like_a_host(word: str) -> bool:
    named = re.fullmatch(r"[A-Za-z][\w.-]*\d[\w.-]*", word) is not None
    return named and _THINGS.fullmatch(word) is None


def _when(found: re.Match[str]) -> Prefix:
    """The time that was found; ValueError where it does not exist."""
    if found["tai"]:
        return Prefix(time=datetime.fromtimestamp(int(found["tai"], 16) - _TAI_OF_UNIX, UTC))
    if found["millis"] or found["unix"]:
        seconds = int(found["millis"]) / 1000 if found["millis"] else float(found["unix"])
        return Prefix(time=datetime.fromtimestamp(seconds, UTC))
    clock = _AT_CLOCK.search(found[0])
    if clock is None:
        raise ValueError(found[0])
    month = found["month"] or found["year_first"] or found["month_first"]
    rest = f"{found[0][: clock.start()]} {found[0][clock.end() :]}"
    numbers = list(map(int, re.findall(r"\d+", rest)))
    if month is None:
        has_year, (year, number, day) = True, numbers[:3]
    else:
        years = [number for number in numbers if number > _LAST_DAY]
        has_year, number = bool(years), month_of(month) or 0
        year, day = years[0] if years else LEAP_YEAR, min(numbers)
    hour, minute, second = (int(clock[part]) for part in ("hour", "minute", "second"))
    micros = int((clock["fraction"] or "0").ljust(6, "0")[:6])
    time = datetime(year, number, day, hour, minute, second, micros)  # noqa: DTZ001 - the reader's clock adds a zone
    if clock["zone"] is None:
        return Prefix(time=time, has_year=has_year)
    time -= _ahead(clock["zone"])
    if has_year:
        return Prefix(time=time.replace(tzinfo=UTC))
    return Prefix(time=time, has_year=False, zone="UTC")


def _ahead(zone: str) -> timedelta:
    """How far a zone is ahead of UTC; ValueError where none is as far.

    >>> _ahead("+05:30"), _ahead("UTC")
    (datetime.timedelta(seconds=19800), datetime.timedelta(0))
    """
    if zone[0] not in "+-":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > _MOST_HOURS or minutes >= _HOUR:
        raise ValueError(zone)
    ahead = timedelta(hours=hours, minutes=minutes)
    return ahead if zone[0] == "+" else -ahead
