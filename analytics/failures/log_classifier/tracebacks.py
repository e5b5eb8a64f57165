"""Python exceptions in a log: what they mean, and which one of a chain came first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.lines import cleaned
from analytics.failures.log_classifier.rules import Meaning, rules
from analytics.failures.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.failures.log_classifier.lines import Line

_HEADER = "Traceback (most recent call last)"
_EXCEPTION = re.compile(
    r"^(?P<module>(?:[A-Za-z_<]\w*>?\.)*)(?P<type>[A-Za-z_]\w*)"
    r"(?:\((?P<inner>[A-Z]\w*)\))?(?::\s?(?P<message>.*)|\s*)$"
)
_TYPE = re.compile(
    r"(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Timeout|Fault|Invalid|Disconnected|"
    r"Refused|NotFound|Read)|error|timeout|gaierror|herror)$"
)
_CAMEL = re.compile(r"[A-Z]\w*[a-z]\w*$")
_MENTIONED = re.compile(r"\b((?:[A-Z][a-z]+){1,4}(?:Error|Exception))(?:\(|:\s)(?!\w+\))")
IGNORED = re.compile(r"^\s*(?:Exception ignored (?:in|on)|Error in atexit|--- Logging error ---)")
_THREAD = re.compile(r"^\s*Exception in thread .*(?:_pin_memory_loop|QueueFeederThread)")
_CHAINED = re.compile(r"^\s*(?:During handling of the above exception|The above exception was the)")
_FRAME_STARTS = ('File "', "^", "~", "[Previous line", "│", "╭", "╰", "❱", "|")
_OPEN_TYPES = frozenset(
    {"RuntimeError", "OSError", "EOFError", "BadZipFile", "UnpicklingError", "error"}
)
_OF_CONNECTIONS = re.compile(
    r"Connect(?:ion)?(?:Failed|Refused|Reset|Closed|Aborted|Timeout|Error)"
)
_ASKS_FOR_GPUS = re.compile(r"(?:assert|if) .{0,40}\bcuda\.(?:is_available|device_count)\(\)")
_LAST_CALL = 200
_FURTHEST = 250
"""Lines after a traceback's header within which its exception stands."""
_MOST = 80
"""Tracebacks of a log that are followed: the first three quarters and the last ones."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception at the end of a traceback."""

    line: Line
    header: int
    """Index of the traceback's header in the log."""
    index: int
    """Index of the exception's line in the log."""
    type: str
    meaning: Meaning
    link: str = ""
    """How it follows the one before: ``context``, ``cause``, ``original``, or not at all;
    ``ignored`` where Python itself says that it ended nothing, ``thread`` where it was raised in a
    thread that reads from other processes."""


def first_cause(chain: Sequence[Raised]) -> Raised | None:
    """The exception of a chain that says why; None where Python ignored it.

    The first one, except where it only re-tells another (a wrapper such as RuntimeError), or
    is the failed probe of a program that then tried something else (a KeyError during whose
    handling something more telling was raised).
    """
    if chain[0].link == "ignored":
        return None
    members = [one for one in chain if one.link == "original"] or chain
    telling = [one for one in members if not _only_wraps(one)] or members
    for place, one in enumerate(telling[:-1]):
        if one.type not in rules().python.probing or telling[place + 1].link != "context":
            return one
    return telling[-1]


def _only_wraps(raised: Raised) -> bool:
    """Whether a type says nothing by itself and its message nothing more."""
    wrapper = raised.type in rules().python.wrappers or raised.meaning.cause == "python_exception"
    return raised.meaning.role == "teardown" or (wrapper and raised.meaning.specificity <= 3)


def chains(lines: Sequence[str], headers: Sequence[int]) -> list[list[Raised]]:
    """Exceptions that led to one another, in the order of the log.

    Their tracebacks begin at `headers` (indexes of lines).
    """
    kept = (
        headers if len(headers) <= _MOST else [*headers[: _MOST * 3 // 4], *headers[-_MOST // 4 :]]
    )
    found: list[list[Raised]] = []
    last_of: dict[str | None, list[Raised]] = {}
    for header in kept:
        raised = _raised(lines, header)
        if raised is None:
            continue
        chain = last_of.get(raised.line.rank)
        if raised.link in ("", "ignored", "thread") or chain is None:
            chain = []
            found.append(chain)
        chain.append(raised)
        last_of[raised.line.rank] = chain
    return found


def _raised(lines: Sequence[str], header: int) -> Raised | None:
    """The exception that ends the traceback whose header stands at an index."""
    top = cleaned(header + 1, lines[header])[-1]
    frames: list[str] = []
    for index, line in _following(lines, header, top.rank):
        text = line.text
        if not text.strip():
            continue
        if text[0] in " \t" or text.startswith(_FRAME_STARTS):
            frames.append(text)
            continue
        if _HEADER in text:
            return None
        meant = exception_meaning(text, frames=" ".join(frames[-40:]), in_traceback=True)
        if meant is not None:
            name, meaning = meant
            link = _link(lines, header, top)
            if link == "thread" and meaning.cause == "connection_error":
                meaning = replace(meaning, role="cascade", specificity=3)
            return Raised(line, header, index, name, meaning, link)
    return None


def _following(lines: Sequence[str], header: int, rank: str | None) -> Iterator[tuple[int, Line]]:
    """Lines after a header that the same rank wrote."""
    for index in range(header + 1, min(header + 1 + _FURTHEST, len(lines))):
        for line in cleaned(index + 1, lines[index]):
            if rank is None or line.rank in (None, rank):
                yield index, line


def _link(lines: Sequence[str], header: int, top: Line) -> str:
    """How the traceback at `header` follows the one before."""
    if "Original Traceback" in top.text:
        return "original"
    for index in range(header - 1, max(header - 12, -1), -1):
        line = cleaned(index + 1, lines[index])[-1]
        if top.rank is not None and line.rank not in (None, top.rank):
            continue
        if _CHAINED.match(line.text):
            return "context" if "During" in line.text else "cause"
        if IGNORED.match(line.text):
            return "ignored"
        if _THREAD.match(line.text):
            return "thread"
        if line.text.strip():
            return ""
    return ""


def exception_meaning(
    text: str, *, frames: str = "", in_traceback: bool = False
) -> tuple[str, Meaning] | None:
    """Type and meaning of a line that names an exception; None where it names none.

    Examples
    --------
    >>> name, meaning = exception_meaning("botocore.exceptions.ClientError: An error occurred")
    >>> name, meaning.cause
    ('ClientError', 'object_storage')
    """
    found = _EXCEPTION.match(text)
    if found is None:
        return None
    name = found["inner"] or found["type"]
    if not (_TYPE.match(name) or (in_traceback and _CAMEL.match(name))) or name.endswith("Warning"):
        return None
    if not in_traceback and name in ("error", "timeout"):
        return None
    known = found["module"] or name in rules().python.roles
    if not (in_traceback or known or name.endswith(("Error", "Exception"))):
        return None
    return name, _meaning(name, text, frames)


def _meaning(name: str, text: str, frames: str) -> Meaning:
    """What type, message and frames say together."""
    python = rules().python
    kind, cause = python.roles.get(name, ("open", "python_exception"))
    if name not in python.roles and _OF_CONNECTIONS.search(name):
        cause = "connection_error"
    rule = rules().best(text)
    if kind == "fault":
        unread = cause == "import_error" and rule is not None and rule.cause == "filesystem_mount"
        return rule if rule is not None and unread else Meaning(cause, "fault", 6, 0.93)
    least = {"typical": 8, "open": 4, "cascade": 7}[kind]
    if kind == "typical" and rule is not None and _is_quoted(rule.cause):
        rule = None
    if kind == "typical" and rule is None and _ASKS_FOR_GPUS.search(frames[-_LAST_CALL:]):
        rule = rules().best("cuda is not available")
    if rule is not None and rule.specificity >= least:
        return rule
    if kind == "typical":
        return Meaning(cause, "fault", 6, 0.92)
    if kind == "cascade":
        return _by_frames(Meaning(cause, "cascade", 3, 0.6), name, frames)
    return _by_frames(Meaning(cause, "symptom", 3, 0.75), name, frames)


def _is_quoted(cause: str) -> bool:
    """Whether no program raises a typical exception of this cause: its words are data."""
    if cause in ("gpu_unavailable", "silent_corruption"):  # what a program asserts of its node
        return False
    return cause in rules().python.quoted or taxonomy().domain_of(cause) == "hardware"


def _by_frames(meaning: Meaning, name: str, frames: str) -> Meaning:
    """An exception of an open type, made finer by the functions that raised it."""
    if name not in _OPEN_TYPES or meaning.cause != "python_exception":
        return meaning
    if rules().python.loads_model.search(frames):
        cause = "model_loading"
    elif rules().python.loads_data.search(frames):
        cause = "dataset_loading"
    else:
        return meaning
    return replace(meaning, cause=cause, role="symptom", specificity=4, confidence=0.65)


def mentioned(text: str) -> Meaning | None:
    """An exception named in the middle of a line: a weak sign."""
    found = _MENTIONED.search(text)
    if found is None:
        return None
    _, cause = rules().python.roles.get(found[1], ("open", "python_exception"))
    return Meaning(cause, "sign", 1, 0.45)
