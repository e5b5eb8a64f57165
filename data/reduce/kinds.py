"""The kinds of raw records that are reduced, and what is read and written of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.reduce.engine import BURSTS, CHANGES, HOURS, KEPT, MINUTES, WINDOWS
from data.reduce.inputs import ACCOUNTING, LOGS, TABLES

if TYPE_CHECKING:
    from data.reduce.inputs import Forms

METRICS, EVENTS, JOBS = "metrics", "events", "jobs"


class Kind(NamedTuple):
    """A kind of reduction."""

    forms: Forms
    """Of the files that are read."""
    called: str
    """The rows that are read, in words."""
    files: tuple[str, ...]
    """What is written."""
    main: str
    """What of it a store is made from."""


KINDS = {
    METRICS: Kind(TABLES, "samples", (MINUTES, HOURS, CHANGES, WINDOWS, KEPT), HOURS),
    EVENTS: Kind(LOGS, "records", (BURSTS,), BURSTS),
    JOBS: Kind(ACCOUNTING, "records", (JOBS,), JOBS),
}
