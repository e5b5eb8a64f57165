"""What the lines of a log say, one signal a line that says something."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.course import Course
from analytics.failures.log_classifier.days import Times
from analytics.failures.log_classifier.lines import (
    Line,
    cleaned,
    is_spoken_of,
    shown_texts,
    spoken,
    without_colours,
    without_own_prefixes,
)
from analytics.failures.log_classifier.rules import NO_DIGITS, VAGUE, Meaning, may_matter, rules
from analytics.failures.log_classifier.sieve import Repeats, beginning_of
from analytics.failures.log_classifier.tracebacks import (
    IGNORED,
    Raised,
    chains,
    exception_meaning,
    first_cause,
    mentioned,
)
from analytics.failures.taxonomy import taxonomy
from analytics.failures.xid import SxidEntry, XidEntry, sxid_entries, xid_entries
from analytics.patterns import lazily

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADER = "traceback (most recent call last)"
_CODE = lazily(
    r'^\s+(?:raise|except|return|assert|if|elif|def|class|with|for|while|await|self\.)\b|^\s*File "'
)
_SOON = 3
_AGAIN = lazily(
    r"\bretry(?:ing)?\b|\btry(?:ing)? again\b|\battempt \d+ ?(?:/|of) ?\d+|\bfalling back\b"
    r"|\b(?:training|run|job) goes on\b"
    r"|\b(?:(?:un|not )available|not installed|disabled|not found|missing), (?:using|skipping)\b",
    re.IGNORECASE,
)
_EXITED = lazily(r"\bexit(?:ed|s|ing)?\b|requeue|resubmit", re.IGNORECASE)
_XID = lazily(
    r"(?<![s-])xid(?:_errors?)?\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(?:errors?|codes?|events?|detected|number)?"
    r"\s*[:=#]?\s*(\d{1,3})\b",
    re.IGNORECASE,
)
_SXID = lazily(r"sxid\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(\d{5})\b", re.IGNORECASE)
_REPORTED = lazily(r"NVRM: Xid \(|nvidia-nvswitch\d*:? SXid \(")
_CLEANUP = frozenset({43, 45})  # the driver stops channels of a process that is gone
_GPU_ALSO = (("gpu_fault", 0.3, "this XID comes from a defective GPU as well"),)
_DENIED = lazily(
    r"[,;(] ?(?:and |but |with )?(?:no|without|zero) (?:\w+(?: or |[ /])){0,3}"
    r"(?:ecc|s?xids?|errors?|faults?|counts?|events?)(?: (?:reported|logged|seen|counted))?"
    r"(?=[,;:)]|$)",
    re.IGNORECASE,
)
"""A clause such as `, no ECC or Xid reported` beside what a line does report."""
_ADVISED = lazily(r"(?<=[.;]) (?:recommended )?action:\s.*", re.IGNORECASE)
"""What an event log tells to do."""
_GIVEN_UP = frozenset({"non_finite_loss"})
"""Causes for which a run gives up and yet ends with exit code 0."""
_LSF = lazily(r"TERM_[A-Z]+: |\s*Reason:\s+OOMKilled")
"""What LSF and Kubernetes say of the end of a job, above its output."""
_LEAST_MESSAGE = 12
_OF_THE_SYSTEM = lazily(
    r"\b(?:slurm\w*|srun|nodes?|nccl|rccl|ib|mlx\S*|gpus?|drivers?|pmix|mount\w*|daemon|cuda|device"
    r"|kernel|connect\w*|socket|server|service|timed? ?out|network|rank|worker|process|exit\w*)\b",
    re.IGNORECASE,
)
LEAST_SPECIFIC = 2
"""Specificity of a line that only its writer calls an error: it needs a death beside it."""
ENOUGH_PROGRESS = 6
"""Lines of progress after which what stands before them did not end the job."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A line that says something of a failure."""

    index: int
    """Index of the line in the log, from 0."""
    line: Line
    meaning: Meaning
    in_traceback: bool = False
    doubtful: bool = False
    """Its writer calls it no more than information or a warning, or goes on (a retry)."""
    n_progress_after: int = 0
    """Lines of progress after it in its file."""
    file_end: int = 0
    """Index after the last line of its file."""
    before_start: bool = False
    """Whether the program sets out, or sets out again, after it."""
    hours_before: bool = False
    """Whether its time lies an hour or more before the last one of the log."""

    @property
    def cause(self) -> str:
        """What the line points at."""
        return self.meaning.cause

    @property
    def role(self) -> str:
        """See rules.py."""
        return self.meaning.role

    @property
    def known_by(self) -> str:
        """Hash of its cause and first letters: the same line of another log has the same."""
        known_by = f"{self.cause} {beginning_of(self.line.text)}"
        return blake2s(known_by.encode(), digest_size=6).hexdigest()

    @property
    def passed(self) -> bool:
        """Whether the job made progress for long after it."""
        least = 1 if self.hours_before else ENOUGH_PROGRESS
        return self.n_progress_after >= least

    @property
    def live(self) -> bool:
        """Whether it may have ended the job."""
        return not (self.doubtful or self.passed)


def signals(lines: Sequence[str], starts: Sequence[int] = (0,)) -> list[Signal]:
    """All signals of a log in its order, without those of a file that ends with success.

    Parameters
    ----------
    lines : sequence of str
        Lines of all files of the log.
    starts : sequence of int
        Index of the first line of each file: what a file says later passes over its own lines.
    """
    lines = without_own_prefixes(lines)
    templates = _templates(lines)
    found = _found(lines, templates)
    if not found:
        return []
    kinds = {templates[one.index] for one in found if not one.doubtful}
    speaking = {one.index for one in found}
    speaking |= {index for index, template in enumerate(templates) if template in kinds}
    fatal = {
        one.index
        for one in found
        if (not one.doubtful and (one.in_traceback or one.role in ("root", "fault")))
    }
    course = Course(lines, templates, speaking, fatal, starts=starts)
    times = Times(lines)
    return [
        one
        if _LSF.match(one.line.text)
        else replace(
            one,
            n_progress_after=course.n_progress_after(one.index),
            file_end=course.end_of_file(one.index),
            before_start=course.starts_after(one.index),
            hours_before=times.is_hours_before_the_end(one.line.shown),
        )
        for one in found
        if not course.completed_after(one.index)
        and (one.cause in _GIVEN_UP or not course.declared_well(one.index))
    ]


def telling_lines(lines: Sequence[str]) -> frozenset[str]:
    """What the lines of a log are known by that say something, also those of a job that completed.

    Examples
    --------
    >>> lines = ["step 1", "RuntimeError: NCCL error: unhandled system error"]
    >>> telling_lines(lines) == telling_lines(lines[1:]) and len(telling_lines(lines))
    1
    """
    lines = without_own_prefixes(lines)
    return frozenset(one.known_by for one in _found(lines, _templates(lines)))


def _templates(lines: Sequence[str]) -> list[str]:
    """Lines in lower case without digits."""
    templates = without_colours("\n".join(lines)).lower().translate(NO_DIGITS).split("\n")
    if len(templates) != len(lines):  # a line break inside a line
        templates = [line.replace("\n", " ").lower().translate(NO_DIGITS) for line in lines]
    return templates


def _found(lines: Sequence[str], templates: Sequence[str]) -> list[Signal]:
    """What lines say by themselves, in their order."""
    shown = shown_texts(lines, templates)
    telling = {template for template in set(templates) if may_matter(template)}
    repeats = Repeats()
    indexes = [
        index
        for index, template in enumerate(templates)
        if template in telling and not repeats.is_enough(template) and index not in shown
    ]
    headers = [index for index in indexes if _HEADER in templates[index]]
    reading = _Reading(lines, chains(lines, headers))
    looked_at = sorted({*indexes, *reading.chosen})
    return [signal for index in looked_at for signal in reading.at(index)]


class _Reading:
    """A log whose tracebacks are known, read line by line."""

    def __init__(self, lines: Sequence[str], found: Sequence[Sequence[Raised]]) -> None:
        self._lines = lines
        self._times = Times(lines)
        self.chosen: dict[int, Raised] = {}
        """Exceptions that came first in their tracebacks, by index."""
        self._others: set[int] = set()
        self._frames: set[int] = set()
        for chain in found:
            chosen = first_cause(chain)
            if chosen is not None:
                self.chosen[chosen.index] = chosen
            for one in chain:
                self._frames.update(range(one.header, one.index))
                self._others.add(one.index)
        self._others -= self.chosen.keys()

    def at(self, index: int) -> Iterator[Signal]:
        """Signals of one line."""
        chosen = self.chosen.get(index)
        for line in cleaned(index + 1, self._lines[index]):
            if chosen is not None and line.text == chosen.line.text:
                again = chosen.meaning.role != "root" and self._tried_again(index)
                yield Signal(index, line, chosen.meaning, in_traceback=True, doubtful=again)
                continue
            if self._is_code(index, line.text) or self._is_ignored(index):
                continue
            meaning = _spoken_meaning(line) or _called_error(line)
            if meaning is None or (index in self._others and meaning.role != "root"):
                continue
            if self._times.is_past(line.shown):
                continue
            doubtful = _is_doubtful(line, meaning) or (
                meaning.role == "symptom" and self._tried_again(index, 1)
            )
            yield Signal(index, line, meaning, doubtful=doubtful)

    def _tried_again(self, index: int, soon: int = _SOON) -> bool:
        """Whether the lines that follow a failure say that the program does without it."""
        near = self._lines[index + 1 : index + 1 + soon]
        following = " ".join(line for line in near if not line.startswith("wandb"))
        ended = _EXITED.search(following)
        following = following[: ended.start()] if ended else following
        return bool(_AGAIN.search(following)) and not rules().given_up.search(following)

    def _is_ignored(self, index: int) -> bool:
        """Whether Python says on the line before that nothing ended of it."""
        before = self._lines[index - 1] if index else ""
        if "ignored" not in before and "atexit" not in before:
            return False
        return IGNORED.match(cleaned(index, before)[-1].text) is not None

    def _is_code(self, index: int, text: str) -> bool:
        """Whether a line shows source text of a traceback."""
        return bool(_CODE.match(text)) or (index in self._frames and text[:1] in " \t")


def _spoken_meaning(line: Line) -> Meaning | None:
    """What a line says itself; an exception may quote what it met."""
    meaning = _meaning(line.text)
    if meaning is None:
        return None
    told = _ADVISED.sub("", line.text)
    if taxonomy().domain_of(meaning.cause) == "hardware" and is_spoken_of(told):
        return None
    said = spoken(line)
    if said == line.text or (said and exception_meaning(line.text) is not None):
        return meaning
    return _meaning(said) if said else None


def _called_error(line: Line) -> Meaning | None:
    """What a line says that its writer calls an error, in words that no rule knows."""
    said = spoken(line)
    if line.level not in ("E", "F", "C") or len(said) < _LEAST_MESSAGE:
        return None
    if _OF_THE_SYSTEM.search(said) or rules().harmless.search(said):
        return None
    specificity = LEAST_SPECIFIC + (line.level == "F")  # a fatal error needs no death beside it
    return Meaning("runtime_error", "teardown", specificity, 0.45)


def _meaning(text: str) -> Meaning | None:
    """The most telling of what a line says, without the clauses that deny something."""
    text = _ADVISED.sub("", _DENIED.sub("", text))
    coded = xid_meaning(text)
    raised = exception_meaning(text)
    if raised is not None:
        told = replace(raised[1], confidence=round(raised[1].confidence * 0.9, 3))
        return coded if coded and coded.specificity > told.specificity else told
    meaning = coded
    by_rule = rules().best(text)
    if by_rule is not None and (coded is None or by_rule.specificity > coded.specificity):
        meaning = by_rule
    if meaning is None or meaning.specificity <= VAGUE:
        meaning = mentioned(text) or meaning
    if by_rule is not None and by_rule.counted:
        return meaning
    if coded is not None and _REPORTED.search(text):  # its details end in words such as `RST: No`
        return meaning
    return None if meaning is None or rules().harmless.search(text) else meaning


def xid_meaning(text: str) -> Meaning | None:
    """What the code on a line says; None where there is no known code.

    Examples
    --------
    >>> xid_meaning("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.").cause
    'gpu_unavailable'
    """
    if "xid" not in text.lower():
        return None
    switch = _SXID.search(text)
    if switch is not None:
        return _of_entry(sxid_entries().get(int(switch[1])))
    found = _XID.search(text)
    if found is None:
        return None
    code = int(found[1])
    if code in _CLEANUP:
        return Meaning("unknown", "teardown", 9, 0.1)
    return _of_entry(xid_entries().get(code))


def _of_entry(entry: XidEntry | SxidEntry | None) -> Meaning | None:
    """What a code says, with its role by domain and severity."""
    if entry is None or entry.cause == "unknown":
        return None
    cause, severity, domain = entry.cause, entry.severity, taxonomy().domain_of(entry.cause)
    if domain == "user":
        return Meaning(cause, "symptom", 7, 0.6, _GPU_ALSO)
    if domain == "hardware" and severity != "info":
        return Meaning(cause, "root", 9, 0.94 if severity in ("critical", "fatal") else 0.88)
    if severity in ("critical", "fatal"):
        return Meaning(cause, "root", 9, 0.88)
    return Meaning(cause, "sign", 8, 0.55)


def _is_doubtful(line: Line, meaning: Meaning) -> bool:
    """Whether the writer of a line goes on after it."""
    vague = meaning.role == "sign" and meaning.specificity == VAGUE
    if meaning.role in ("end", "teardown", "sign") and not vague:
        return False
    if meaning.role != "root" and line.mild:
        return True
    return bool(rules().retried.search(line.text)) and not rules().given_up.search(line.text)
