"""Names of job logs: patterns in the words of sbatch, and what a name says by them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from data.errors import DataError

_STEMS = (
    "slurm-%A_%a", "slurm-%j", "slurm-%j.%s", "slurm-%j-%t", "slurm-%j_%t", "slurm-%j-%N",
    "slurm-%j_%N", "slurm-%j.%N", "slurm-%x-%j", "slurm-%x.%j", "slurm_%j", "slurm_%A_%a",
    "%A_%a_%t_log", "%j_%t_log", "%A_%a_log", "%j_log",  # submitit
    "%A_%a", "%j", "job-%j", "job_%j", "job.%j", "%x-%A_%a", "%x_%A_%a", "%x.%A_%a",
    "%x-%j", "%x_%j", "%x.%j", "%j-%x", "%j_%x", "%j.%x",
)  # fmt: skip
DEFAULT_PATTERNS = (
    *(f"{stem}.{end}" for stem in _STEMS for end in ("out", "err", "log", "txt")),
    "%x.o%j", "%x.e%j",
)  # fmt: skip
"""Tried in this order; `slurm-%j.out` is what sbatch itself writes."""
_COMPRESSED = re.compile(r"\.(?:gz|xz|zst)$")
_GROUPS = {
    "j": ("job", r"\d+"),
    "J": ("job", r"\d+(?=\.)"),
    "A": ("array", r"\d+"),
    "a": ("task", r"\d+"),
    "t": ("rank", r"\d+"),
    "N": ("node", r"[A-Za-z0-9.-]+?"),
}
_OTHERS = {"x": r"[^/]+?", "u": r"[^/]+?", "n": r"\d+", "s": r"\w+", "b": r"\d+", "%": "%"}
_FIELD = re.compile(r"%(\d*)(.)|(\*)|([^%*]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogName:
    """What the name of a log says."""

    job_id: str
    """As the scheduler prints it: 4711, array task 4711_3."""
    node: str | None = None
    rank: int | None = None


def log_name(path: str, pattern: str | None = None) -> LogName | None:
    """What a path below the folder says by `pattern`, or by the first default that fits.

    A pattern without a slash is held against the file's name, one with slashes against as many
    folders above it. Endings .gz, .xz and .zst do not count.

    Raises
    ------
    DataError
        Where the pattern cannot name a job.

    Examples
    --------
    >>> log_name("run7/slurm-4711.out.gz").job_id, log_name("pre-4711_3.err").job_id
    ('4711', '4711_3')
    >>> log_name("notes.txt") is None
    True
    """
    path = _COMPRESSED.sub("", path)
    for candidate in (pattern,) if pattern else DEFAULT_PATTERNS:
        parts = path.split("/")[-(candidate.count("/") + 1) :]
        found = compiled(candidate).fullmatch("/".join(parts))
        if found is not None:
            return _read(found.groupdict())
    return None


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of sbatch as a regular expression; DataError where it cannot name a job."""
    written: set[str] = set()
    expression = "".join(_expression(pattern, part, written) for part in _FIELD.finditer(pattern))
    if not written & {"job", "array"}:
        raise DataError(
            f"pattern {pattern!r} must hold the job id, %j or %A: pass e.g. --pattern slurm-%j.out"
        )
    return re.compile(expression)


def _expression(pattern: str, part: re.Match[str], written: set[str]) -> str:
    """One field, star or literal of a pattern."""
    _, letter, star, literal = part.groups()
    if literal is not None:
        return re.escape(literal)
    if star is not None:
        return "[^/]*"
    if letter in _OTHERS:
        return _OTHERS[letter]
    if letter not in _GROUPS:
        known = ", ".join(f"%{one}" for one in (*_GROUPS, *_OTHERS))
        raise DataError(f"pattern {pattern!r}: %{letter} is unknown: use {known}, or *")
    name, expression = _GROUPS[letter]
    if name in written:
        return f"(?P={name})"
    written.add(name)
    return f"(?P<{name}>{expression})" + (r"\.\d+" if letter == "J" else "")


def _read(groups: dict[str, str | None]) -> LogName:
    array, task, rank = groups.get("array"), groups.get("task"), groups.get("rank")
    if array is not None:
        job = str(int(array)) + (f"_{int(task)}" if task is not None else "")
    else:
        job = str(int(groups.get("job") or 0))
    return LogName(job, groups.get("node"), None if rank is None else int(rank))
