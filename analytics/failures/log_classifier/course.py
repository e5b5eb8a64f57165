"""How a job went on after a line of its log: progress, setting out again, completion."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.rules import rules

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_PROGRESS_WORDS = re.compile(
    r"\b(?:step|steps|timestep|time step|iter|iters|iteration|iterations|epoch|batch|global_step)\b"
    r"|\b(?:loss|it/s|s/it)\b"
    r"|\b(?:tokens|samples|examples)/s"
    r"|\bsav(?:ed|ing) (?:a |the )?(?:\w+ )?(?:checkpoint|model|state)"
)
_NEAR_END = 3
_EXIT = re.compile(
    r"\b(?:(?:exit(?:ed)?(?: with)?(?: exit)?|return)[ _]?(?:code|status)|exited(?=\W{1,3}\d))",
    re.IGNORECASE,
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
    r"|\bexit(?: code)? 0, state completed|\bstate completed,? exit 0\b",
    re.IGNORECASE,
)
"""What a launcher says of a job that ended well: it outweighs the noise of its end."""
_WELL = re.compile(
    r"\bexit(?:ing|ed)?(?: with)?(?: code| status)?:? 0\b|\b(?:state:? completed|phase succeeded)\b"
    r"|\b(?:successfully|succeeded|reason: completed)\b|\brc ?= ?0\b",
    re.IGNORECASE,
)
"""A job that says that it finished, and that all went well: what comes after is no failure."""

_PREPARES = re.compile(
    r"\b(?:creat|submit|launch|build|deploy|pull|set-?up|download|install|prepar|compil|provision"
    r"|schedul|stag)(?:e|ed|ing|t?ing)?\b",
    re.IGNORECASE,
)
"""Of a step that succeeded before the job itself began."""
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
"""Different lines that differ in digits alone from which on they show that a program goes on."""
TURNS = (
    "complet", "finish", "succe", "done", "exit", "return", "start", "begin", "resum", "restor",
    "initiali", "loading", "tokeni", "world", "version", "running", "*** ", "заверш",
    "abgeschlossen", "terminé", "finaliza", "完了", "完成",
)  # fmt: skip
"""Of lines that tell of a start or an end, beginnings of words of which each has at least one."""
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
        often = Counter({lines[index]: templates[index] for index in silent}.values())
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
        end = min(index + 1 + _NEAR_END, spoken, self.end_of_file(index))
        near = lines[index:end]
        if _PREPARES.search(lines[index]):
            return False
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


def tells_of_a_turn(template: str) -> bool:
    """Whether a line without its digits, in lower case, tells of a start or an end."""
    return _shows_start(template) or _shows_finish(template) or _shows_end(template)


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
