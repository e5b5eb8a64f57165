"""What the lines of a log say, one signal a line that says something.

How the job went on after a line counts, too: its progress, and whether it completed.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2s
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.lines import (
    Line,
    Times,
    cleaned,
    is_spoken_of,
    shown_texts,
    spoken,
    without_colours,
)
from analytics.failures.log_classifier.rules import NO_DIGITS, Meaning, may_matter, rules
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_PROGRESS_WORDS = re.compile(
    r"\b(?:step|steps|timestep|time step|iter|iters|iteration|iterations|epoch|batch|global_step)\b"
    r"|\b(?:loss|it/s|s/it)\b"
    r"|\b(?:tokens|samples|examples)/s"
    r"|\bsav(?:ed|ing) (?:a |the )?(?:\w+ )?(?:checkpoint|model|state)"
)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: exit)?|return)[ _]?(?:code|status)", re.IGNORECASE
)
_EXIT_0 = re.compile(_EXIT.pattern + r"\W{0,3}0\b(?!:[1-9])", re.IGNORECASE)
_FAILED_STATE = re.compile(r"\b(?:OUT_OF_MEMORY|NODE_FAIL|TIMEOUT|FAILED|CANCELLED|BOOT_FAIL)\b")
_MERELY_OVER = re.compile(
    r"\b(?:job|run|script|program|task|process|pipeline)\b.{0,30}\b(?:exited|ended|done)\.?\s*$"
)

_FINISHED = re.compile(
    r"\b(?:training|fine-?tuning|fit|evaluation|job|run|pod|workload|\w+job|main|script|program)\b.{0,40}"
    r"\b(?:complet(?:ed|e)|finished|succeeded|done)\b"
    r"|\b(?:завершён|завершена?|abgeschlossen|terminée?|completad[oa]|finalizad[oa])\b|完了|完成",
    re.IGNORECASE,
)
_DECLARED = re.compile(
    r"\b\w*job \S+ is successfully completed|\bpod phase succeeded"
    r"|\bexit(?: code)? 0, state completed",
    re.IGNORECASE,
)
"""What a launcher says of a job that ended well: it outweighs the noise of its end."""
_WELL = re.compile(
    r"\bexit(?:ing|ed)?(?: with)?(?: code| status)?:? 0\b|\b(?:state:? completed|phase succeeded)\b"
    r"|\b(?:successfully|succeeded|reason: completed)\b|\brc ?= ?0\b",
    re.IGNORECASE,
)
"""A job that says that it finished, and that all went well: what comes after is no failure."""

_START = re.compile(
    r"\b(?:nccl|rccl) version\b|running training"
    r"|\binitiali[sz]ing (?:torch\.)?distributed"
    r"|\b(?:start|begin)(?:ing|s|ed)? (?:the )?(?:\w+ )?(?:training|attempt|fit|finetuning|run)\b"
    r"|\b(?:resum|restor)(?:ing|ed|e)\b.{0,30}\b(?:from|step|checkpoint|iteration|epoch)"
    r"|\bloading (?:the )?checkpoint\b|\bprocess group (?:is )?initiali[sz]ed|\btokeni[sz]ing\b"
    r"|\bworld[_ ]?size\W{1,3}\d?|\*{3,} \w+ing \w+ \*{3,}"
)
"""What a program writes while it sets out: what stands before was no end of it."""
_OFTEN = 4
"""Lines that differ in digits alone from which on they show that a program goes on."""
_NO_PROGRESS = re.compile(
    r"^\s*(?:file \"|\[?<?frame|#)|nccl info|abort|destroy|terminat|kill|clos|exit"
    r"|wait|retr|attempt|backtrace|signal|gpu-|uuid|channel|\bmib\b|loading|queued|driver|version|kernel"
)


class Course:
    """How the job went on after a line: its progress, and where it says that it completed."""

    def __init__(
        self,
        lines: Sequence[str],
        templates: Sequence[str],
        speaking: Collection[int],
        fatal: Collection[int],
        *,
        starts: Sequence[int],
    ) -> None:
        """Indexes of lines that say something of a failure, and of those that end a program."""
        self._ends = [*sorted(starts)[1:], len(lines)]
        self._speaking = sorted(speaking)
        kinds = set(templates)
        silent = [index for index in range(len(lines)) if index not in speaking]
        often = Counter(templates[index] for index in silent)
        moving = {
            kind for kind in kinds
            if _shows_progress(kind) or (often[kind] >= _OFTEN and _may_repeat(kind))
        }  # fmt: skip
        ending = {kind for kind in kinds if _shows_end(kind)}
        self._progress = [
            index
            for index in silent
            if templates[index] in moving and len(lines[index]) > len(templates[index])
        ]
        starting = {kind for kind in kinds if _shows_start(kind)}
        self._starts = [index for index in silent if templates[index] in starting]
        failures = sorted(fatal)
        finishing = {kind for kind in kinds if _shows_finish(kind)}
        self._well = [
            index
            for index in silent
            if templates[index] in finishing and self._went_well(lines, index)
        ]
        declaring = {kind for kind in kinds if "succe" in kind or "state completed" in kind}
        self._declared = [
            index
            for index in silent
            if templates[index] in declaring and _DECLARED.search(lines[index])
        ]
        self._done = [
            index
            for index in silent
            if templates[index] in ending
            and _is_end(lines[index])
            and not (_MERELY_OVER.search(templates[index]) and self._is_last(failures, index))
        ]

    def _is_last(self, fatal: Sequence[int], end: int) -> bool:
        """Whether a failure stands before an index in its file, and no progress between."""
        place = bisect_left(fatal, end)
        if place == 0:
            return False
        last = fatal[place - 1]
        if self.end_of_file(last) != self.end_of_file(end):
            return False
        return bisect_left(self._progress, end) == bisect_left(self._progress, last)

    def _went_well(self, lines: Sequence[str], index: int) -> bool:
        """Whether a line that says that the job finished, or one right after it, says how well.

        Not where the job makes progress or sets out again later, nor where a line between them
        tells of a failure.
        """
        if self.n_progress_after(index) or self.starts_after(index):
            return False
        place = bisect_left(self._speaking, index)
        spoken = self._speaking[place] if place < len(self._speaking) else len(lines)
        end = min(index + 1 + _SOON, spoken, self.end_of_file(index))
        near = lines[index:end]
        return all(map(_is_end, near)) and any(map(_WELL.search, near))

    def n_progress_after(self, index: int) -> int:
        """Lines of progress after a line in its file."""
        end = self.end_of_file(index)
        return bisect_left(self._progress, end) - bisect_right(self._progress, index)

    def starts_after(self, index: int) -> bool:
        """Whether the program sets out after a line of its file."""
        place = bisect_right(self._starts, index)
        return place < len(self._starts) and self._starts[place] < self.end_of_file(index)

    def completed_after(self, index: int) -> bool:
        """Whether the job completed after a line and no failure came later, or had ended well."""
        end = self.end_of_file(index)
        place = bisect_left(self._well, index)
        if place and self.end_of_file(self._well[place - 1]) == end:
            return True
        place = bisect_left(self._done, end)
        if place == 0 or self._done[place - 1] < index:
            return False
        said = bisect_right(self._speaking, self._done[place - 1])
        return said == len(self._speaking) or self._speaking[said] >= end

    def declared_well(self, index: int) -> bool:
        """Whether a launcher says in the file that the job ended well."""
        return any(self.end_of_file(one) == self.end_of_file(index) for one in self._declared)

    def end_of_file(self, index: int) -> int:
        """Index after the last line of the file that holds a line."""
        return self._ends[min(bisect_right(self._ends, index), len(self._ends) - 1)]


@lru_cache(maxsize=100_000)
def _shows_progress(template: str) -> bool:
    return _PROGRESS_WORDS.search(template) is not None


@lru_cache(maxsize=100_000)
def _shows_finish(template: str) -> bool:
    return _FINISHED.search(template) is not None


@lru_cache(maxsize=100_000)
def _shows_start(template: str) -> bool:
    return _START.search(template) is not None


@lru_cache(maxsize=100_000)
def _may_repeat(template: str) -> bool:
    """Whether a line that a job writes again and again may show that it goes on."""
    return _NO_PROGRESS.search(template) is None


@lru_cache(maxsize=100_000)
def _shows_end(template: str) -> bool:
    """Whether a line without its digits may say that the job completed."""
    return rules().completed.search(template) is not None or _EXIT.search(template) is not None


def _is_end(line: str) -> bool:
    """Whether it says so with its digits: an exit code other than 0 is no success."""
    if _FAILED_STATE.search(line):
        return False
    return _EXIT.search(line) is None or _EXIT_0.search(line) is not None


_HEADER = "traceback (most recent call last)"
_NO_SIGNS = str.maketrans("", "", string.punctuation + string.whitespace)
_MOST_SAME, _MOST_ALIKE = 16, 64
"""Lines that differ in digits alone, or begin alike, of which the rest is not looked at."""
_ALIKE_SPAN, _ALIKE_LETTERS = 120, 48
_CODE = re.compile(
    r'^\s+(?:raise|except|return|assert|if|elif|def|class|with|for|while|await|self\.)\b|^\s*File "'
)
_SOON = 3
_AGAIN = re.compile(
    r"\bretry(?:ing)?\b|\btry(?:ing)? again\b|\battempt \d+ ?(?:/|of) ?\d+|\bfalling back\b"
    r"|\b(?:(?:un|not )available|not installed|disabled|not found|missing), (?:using|skipping)\b",
    re.IGNORECASE,
)
_EXITED = re.compile(r"\bexit(?:ed|s|ing)?\b|requeue|resubmit", re.IGNORECASE)
_XID = re.compile(
    r"(?<![s-])xid(?:_errors?)?\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(?:errors?|codes?|events?|detected|number)?"
    r"\s*[:=#]?\s*(\d{1,3})\b",
    re.IGNORECASE,
)
_SXID = re.compile(r"sxid\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(\d{5})\b", re.IGNORECASE)
_REPORTED = re.compile(r"NVRM: Xid \(|nvidia-nvswitch\d*:? SXid \(")
_CLEANUP = frozenset({43, 45})  # the driver stops channels of a process that is gone
_GPU_ALSO = (("gpu_fault", 0.3, "this XID comes from a defective GPU as well"),)
_DENIED = re.compile(
    r"[,;(] ?(?:and |but |with )?(?:no|without|zero) (?:\w+(?: or |[ /])){0,3}"
    r"(?:ecc|s?xids?|errors?|faults?|counts?|events?)(?: (?:reported|logged|seen|counted))?"
    r"(?=[,;:)]|$)",
    re.IGNORECASE,
)
"""A clause such as `, no ECC or Xid reported` beside what a line does report."""
_GIVEN_UP = frozenset({"non_finite_loss"})
"""Causes for which a run gives up and yet ends with exit code 0."""
_LSF = re.compile(r"TERM_[A-Z]+: ")
"""What LSF says of the end of a job, above its output."""
_LEAST_MESSAGE = 12
_OF_THE_SYSTEM = re.compile(
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
        beginning = self.line.text.lower().translate(NO_DIGITS)[:_ALIKE_SPAN]
        letters = beginning.translate(_NO_SIGNS)[:_ALIKE_LETTERS]
        return blake2s(f"{self.cause} {letters}".encode(), digest_size=6).hexdigest()

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
    templates = _templates(lines)
    found = _found(lines, templates)
    if not found:
        return []
    speaking = {one.index for one in found}
    fatal = {
        one.index
        for one in found
        if (not one.doubtful and (one.in_traceback or one.role == "root"))
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
    indexes = [index for index in _worth_a_look(templates) if index not in shown]
    headers = [index for index in indexes if _HEADER in templates[index]]
    reading = _Reading(lines, chains(lines, headers))
    looked_at = sorted({*indexes, *reading.chosen})
    return [signal for index in looked_at for signal in reading.at(index)]


def _worth_a_look(templates: Sequence[str]) -> list[int]:
    """Indexes of lines that hold a word of a rule, of many alike only the first ones."""
    same: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    telling = {template for template in set(templates) if may_matter(template)}
    indexes = []
    for index, template in enumerate(templates):
        if template not in telling:
            continue
        same[template] += 1
        if same[template] > _MOST_SAME:
            continue
        beginning = template[:_ALIKE_SPAN].translate(_NO_SIGNS)[:_ALIKE_LETTERS]
        alike[beginning] += 1
        if alike[beginning] <= _MOST_ALIKE:
            indexes.append(index)
    return indexes


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
    if taxonomy().domain_of(meaning.cause) == "hardware" and is_spoken_of(line.text):
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
    text = _DENIED.sub("", text)
    coded = xid_meaning(text)
    raised = exception_meaning(text)
    if raised is not None:
        told = replace(raised[1], confidence=round(raised[1].confidence * 0.9, 3))
        return coded if coded and coded.specificity > told.specificity else told
    meaning = coded
    by_rule = rules().best(text)
    if by_rule is not None and (coded is None or by_rule.specificity > coded.specificity):
        meaning = by_rule
    meaning = meaning or mentioned(text)
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
    if meaning.role in ("end", "teardown", "sign"):
        return False
    if meaning.role != "root" and line.mild:
        return True
    return bool(rules().retried.search(line.text)) and not rules().given_up.search(line.text)
