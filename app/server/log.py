"""What the server says on standard error: an error once a minute, requests where asked for."""

from __future__ import annotations

import copy
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S = 60.0
"""Seconds in which an error is told once."""
KINDS_KEPT = 1_000
"""Kinds of errors remembered at most."""


class WithoutQuery(logging.Filter):
    """Cuts queries from logged requests: the link's token is one, and filters name people."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps every line; of its arguments the third is the address."""
        if isinstance(record.args, tuple) and len(record.args) > 2:
            client, method, address, *rest = record.args
            record.args = (client, method, str(address).partition("?")[0], *rest)
        return True


@dataclass
class _Kind:
    """Errors of one kind: when one was told, and how many came since."""

    told_at: float
    untold: int = 0


class OnceAMinute(logging.Filter):
    """Lets each kind of warning and error through once a minute, with the number left out before.

    A kind is what is said, by whom, and where the exception was raised; not the values in it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[object, ...], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is told; a record that comes by another handler is told there too."""
        if record.levelno < logging.WARNING:
            return True
        known: bool | None = record.__dict__.get("once_a_minute")
        if known is None:
            known = record.__dict__["once_a_minute"] = self._is_due(record)
        return known

    def _is_due(self, record: logging.LogRecord) -> bool:
        kind, now = _kind_of(record), self._clock()
        seen = self._kinds.get(kind)
        if seen is not None and now - seen.told_at < EVERY_S:
            seen.untold += 1
            return False
        if len(self._kinds) >= KINDS_KEPT:
            self._kinds.clear()
        self._kinds[kind] = _Kind(now)
        if seen is not None and seen.untold:
            record.msg = f"{record.getMessage()} ({seen.untold:,} more like it went untold)"
            record.args = None
        return True


def _kind_of(record: logging.LogRecord) -> tuple[object, ...]:
    raised: tuple[object, ...] = ()
    if record.exc_info and record.exc_info[2] is not None:
        last = record.exc_info[2]
        while last.tb_next is not None:
            last = last.tb_next
        raised = (record.exc_info[0], last.tb_frame.f_code.co_filename, last.tb_lineno)
    return (record.name, record.levelno, record.pathname, record.lineno, *raised)


def configuration(*, access_log: bool) -> dict[str, Any]:
    """uvicorn's own logging, warnings alone; requests too where they are asked for.

    Standard output is for the link: all of it goes to standard error.
    """
    logged = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    logged["handlers"]["access"] |= {"stream": "ext://sys.stderr", "filters": ["no query"]}
    logged["filters"] = {"no query": {"()": WithoutQuery}}
    for name in ("uvicorn", "uvicorn.error"):
        logged["loggers"][name]["level"] = "WARNING"
    logged["loggers"]["uvicorn.access"]["level"] = "INFO" if access_log else "WARNING"
    return logged


def bound() -> None:
    """Puts the filter before every place where a line is written now."""
    once = OnceAMinute()
    loggers = [logging.getLogger(), *map(logging.getLogger, [*logging.root.manager.loggerDict])]
    handlers = {handler for logger in loggers for handler in logger.handlers}
    for handler in handlers | ({logging.lastResort} if logging.lastResort else set()):
        handler.addFilter(once)
