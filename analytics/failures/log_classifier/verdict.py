"""What a log says of the failure of its job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log that bears on the verdict."""

    line: int
    """Line of the log, from 1."""
    text: str
    """The line without colours and carriage returns, cut to 500 characters."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another cause that the log does not exclude."""

    cause: str
    confidence: float
    """In [0, 1], never above that of the verdict's own cause, unless that is unknown."""
    reason: str


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """The first cause of a failure as its log shows it."""

    cause: str
    """Cause by its name in the taxonomy; ``unknown`` where the log shows none."""
    domain: str
    """``user``, ``system_software``, ``hardware`` or ``unknown``."""
    confidence: float
    """In [0, 1]; 0 where the cause is unknown."""
    method: str
    """``log_rule``, ``log_model`` where a site's classifier said it; ``none`` where the cause is
    unknown."""
    evidence: tuple[LogLine, ...] = ()
    """The line of the first cause, then lines that agree with it or follow from it."""
    alternatives: tuple[Alternative, ...] = ()
    """Most likely first."""
    symptom: str | None = None
    """Symptom of the taxonomy: what was seen first of the failure, before looking behind it."""
