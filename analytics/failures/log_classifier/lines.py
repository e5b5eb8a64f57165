"""Lines of a job's log without what launchers and loggers put before them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|SEVERE"
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LONGEST, _LONGEST_RECORD = 4_000, 200_000
"""Characters of a line, and of a JSON record, that are looked at: half of them at its end, where
an exception follows a bar of progress."""
_MESSAGE_KEYS = ("message", "msg", "log", "text", "event", "error", "exception", "exc_info",
                 "stack_trace", "stack", "traceback", "py_callstack", "exc", "err", "stderr",
                 "detail", "reason")  # fmt: skip
_LEVEL_KEYS = ("level", "levelname", "severity", "lvl")
_RANK = r"(?:rank|default|local_rank|worker|proc)[ =:_]?\d+"

_DATE = r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\ ?[+-]\d\d:?\d\d|\ UTC)?"
_PREFIX = re.compile(
    rf"""
    (?P<rank>\[{_RANK}\]:?\ ?|{_RANK}:\ ?                          # torchrun
      |\ {{0,5}}\d{{1,5}}:\ (?=\D|{_DATE}|{_CLOCK})|\ {{0,5}}\d{{1,5}}:(?=\s*$)      # srun --label
      |\[\d{{1,5}}(?:,(?:mpirank:)?\d+)?(?:,[\w-]+)?\](?:<std(?:err|out)>)?:?\ ?)  # mpirun
    |\((?:\w[\w.]*\ )?(?:pid|ip)=[^)]*\)\ ?                       # Ray
    |\[?{_DATE}[T ,]\ ?{_CLOCK}(?:(?:\ [A-Z]{{2}}\d+)+(?=\]))?\]?[:,]?\ {{0,2}}  # also SGLang
    |\[[A-Z][a-z]{{2}}\ \d\d,\ {_CLOCK}\]\ |\[NeMo\ (?P<nemo>[IWED])\ [^\]]*\]\ ?
    |\[?{_CLOCK}\]?[: ]\ ?
    |\[?(?:[A-Z][a-z]{{2}}\ )?[A-Z][a-z]{{2}}\ +\d{{1,2}}\           # syslog, dmesg -T
      \d\d:\d\d:\d\d(?:\.\d+)?(?:\ \d{{4}})?\]?:?\ ?
    |\[?1\d{{9}}(?:\.\d+)?\]?:?\ |\[\ *\d+\.\d{{3,6}}\]\ ?         # epoch, seconds since boot
    |\[?(?P<letter>[IWEFD])\d{{4,8}}\ [\d:.]+\ +(?:\d+\ )?[\w./-]+:\d+\]\ ?  # glog
    |(?P<absl>[IWEF])\ [\w./-]+:\d+\]\ ?
    |\[(?P<torch>[IWEF])(?:\d{{4}}\ [\d:.]+)?\ ?[\w./-]+\.(?:cpp|cc|cu|h|hpp|py):\d+\]\ ?
    |(?P<padded>DEBUG\ {{4}}|INFO\ {{5}}|WARNING\ {{2}}|ERROR\ {{4}}|CRITICAL\ )
    |(?P<level>\b(?:{LEVELS})\b)(?::[\w.]+:|\]:?|\s*[:|-])?\s?(?=\D|{_DATE}|{_CLOCK}|$)
    |\(\w+(?:[\ _]\w+)*\)\ (?=(?:{LEVELS})\b)                      # vLLM
    |\[(?P<boxed>{LEVELS}|[A-Z][a-z]+)\]:?\ ?
    |\|\ *(?P<barred>{LEVELS})\ *\|\ *|std(?:err|out)(?::\ ?|\ \|\ |\ [FP]\ )
    |[\w.<>]+:[\w<>]+:\d+\ +-\ |[\w.]+\ -\ (?=(?:{LEVELS})\b)       # loguru, logging
    |\[?[\w./-]+\.(?:py|cpp|cc|cu|c|h|hpp):\d+\]?:?(?:[\w<>]+\])?:?\ (?!in\ )
    |[a-z][a-z0-9.-]*\d[a-z0-9.-]*:\d+:\d+\ \[\d+\]\ ?          # NCCL: host:pid:tid [gpu]
    |\[?[a-z][a-z0-9.-]*\d[a-z0-9-]*\]?:\ ?(?=\D|{_DATE}|{_CLOCK})  # pdsh
    |\[[a-z][\w.-]*\d[\w.-]*\]\ |[a-z][\w.-]*/\d{{1,4}}\           # Flyte, TorchX
    |\[[a-z][\w.@-]{{0,30}}\]:?\ (?=\ *(?:Traceback|\ \ |\[rank|{_DATE}|{_CLOCK}|[IWEF]\d{{4}}[ ]
      |(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Exit)\b))                # a tag
    |[0-9a-f]{{6,}}\ \|\|\ ?                                        # Determined
    |[a-z][\w.-]*\d[\w.-]*\ +\|\ |[-|]\ (?=\S)|\ {{2,8}}\|\   # containers, groups
    |[\w.-]+\ (?:[\w./-]+\[\d+\]|kernel):\ ?
    |[a-z][a-z0-9-]*\d[a-z0-9-]*\ {{1,2}}                        # a pod, without a sign after it
      (?={_DATE}[T\ ]|[IWEF]\d{{4}}\ |Traceback|\ \ File|\ {{4}}|(?:\w+\.)*[A-Z]\w*Error\b)
    |[\w.-]+\[\d+\]:\ ?                                         # process[pid]:
    """,
    re.VERBOSE,
)
_SAYS_WARNING = re.compile(r"\S{0,40}\s?\bwarn(?:ing)?\b\s?[:>\]]", re.IGNORECASE)
_LEVEL_GROUPS = ("level", "letter", "torch", "absl", "boxed", "barred", "padded", "nemo")
_MOST_PREFIXES = 8


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or what stands between two carriage returns of it."""

    number: int
    """Line of the log, from 1."""
    text: str
    """Without colours, prefixes and trailing blanks; indentation is kept."""
    shown: str
    """Without colours only: evidence."""
    rank: str | None = None
    """Who wrote it, as the launcher says."""
    level: str | None = None
    """Level that the logger states: one letter, e.g. E."""

    @property
    def mild(self) -> bool:
        """Whether its writer calls it information or a warning."""
        return self.level in ("D", "I", "W")


def cleaned(number: int, raw: str) -> list[Line]:
    """The line as its parts: one, or several where carriage returns or JSON hold more.

    Examples
    --------
    >>> [line.text for line in cleaned(7, "[rank3]: 2026-01-05 10:00:00 ERROR: KeyError: 'a'")]
    ["KeyError: 'a'"]
    """
    if len(raw) > (_LONGEST_RECORD if raw.startswith("{") else _LONGEST):
        raw = f"{raw[: _LONGEST // 2]}\n{raw[-_LONGEST // 2 :]}"
    raw = without_colours(raw)
    parts = [part for part in re.split(r"[\r\n]", raw) if part.strip("\0 \t")] or [""]
    return [line for part in parts for line in _unwrapped(number, part.replace("\0", "").rstrip())]


def without_colours(text: str) -> str:
    """Text without the escape sequences of a terminal."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _unwrapped(number: int, shown: str) -> list[Line]:
    """A part without its prefixes; the message of a JSON record line by line."""
    text, rank, level = _without_prefixes(shown)
    if text.startswith("{") and text.endswith("}"):
        told = _json_message(text)
        if told is not None:
            message, level = told
            parts = [line[:_LONGEST] for line in message.split("\n") if line.strip()] or [""]
            if len(parts) == 1 and parts[0].startswith("{"):  # a container's record holds it
                return [replace(line, shown=shown) for line in _unwrapped(number, parts[0])]
            inner = (_without_prefixes(line) for line in parts)
            return [
                Line(number, line, shown, rank or its, own or level) for line, its, own in inner
            ]
    return [Line(number, text, shown, rank, level)]


def _without_prefixes(text: str) -> tuple[str, str | None, str | None]:
    """Text, rank and level of a line."""
    rank = level = None
    place, text = 0, text + " "  # an empty line of a program ends in the blank of its prefix
    for _ in range(_MOST_PREFIXES):
        found = _PREFIX.match(text, place)
        if found is None or found.end() == place:
            break
        groups = found.groupdict()
        rank = groups["rank"].strip(" :[]") if groups["rank"] and rank is None else rank
        said = next((groups[name] for name in _LEVEL_GROUPS if groups[name]), None)
        if said and said.strip().upper() in _LEVELS and level != "F":
            level = said[0].upper()
        place = found.end()
    text = text[place:].rstrip()
    if level is None and _SAYS_WARNING.match(text):
        level = "W"
    return text, rank, level


_LEVELS = frozenset(LEVELS.split("|")) | frozenset("IWEFD")


def _json_message(text: str) -> tuple[str, str | None] | None:
    """Message and level of a JSON record; None where it is no such record."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    inner = record.get("message")
    if isinstance(inner, dict):  # torchrun's file of an error
        extra = inner.get("extraInfo")
        record = record | inner | (extra if isinstance(extra, dict) else {})
    parts = [str(record[key]) for key in _MESSAGE_KEYS if isinstance(record.get(key), str)]
    if not parts:
        return None
    said = next((str(record[key]) for key in _LEVEL_KEYS if key in record), "").upper()
    return "\n".join(parts), said[0] if said in _LEVELS else None
