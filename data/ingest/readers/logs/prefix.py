"""What stands before the kernel's message on a line, once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

LEAP_YEAR = 2000
"""Stands in for an unknown year, so that 29 February stays possible."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Host and time of a line, as far as they stand on it."""

    host: str | None = None
    time: datetime | None = None
    """Aware where the line states the offset or UTC, else a wall-clock time."""
    has_year: bool = True
    """False where the year of `time` is a stand-in."""
    zone: str | None = None
    """Abbreviated zone of `time`, e.g. CET."""
    uptime_s: float | None = None
    """Seconds since boot, where the line gives no other time."""
