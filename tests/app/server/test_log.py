"""The server's log: each kind of error once a minute, and how many were left out."""

import logging

import pytest

from app.server.log import KINDS_KEPT, OnceAMinute


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@pytest.fixture
def moments() -> list[float]:
    return [0.0]


@pytest.fixture
def logger(moments: list[float]) -> logging.Logger:
    made = logging.Logger("of a test")
    once = OnceAMinute(lambda: moments[-1])
    for _ in range(2):
        made.addHandler(Lines())
        made.handlers[-1].addFilter(once)
    return made


def said(logger: logging.Logger) -> list[str]:
    first, second = (handler.said for handler in logger.handlers if isinstance(handler, Lines))
    assert first == second  # what one handler tells, the other tells too
    return first


def refuse(logger: logging.Logger, which: int) -> None:
    logger.warning("connection %d was refused", which)


def test_an_error_is_told_once_a_minute_with_how_many_went_untold(
    logger: logging.Logger, moments: list[float]
) -> None:
    for which in range(1_000):
        refuse(logger, which)
    moments.append(59.9)
    refuse(logger, 1_000)
    assert said(logger) == ["connection 0 was refused"]
    moments.append(60.0)
    refuse(logger, 1_001)
    refuse(logger, 1_002)
    last = "connection 1001 was refused (1,000 more like it went untold)"
    assert said(logger) == ["connection 0 was refused", last]


def test_another_error_and_another_cause_are_told(logger: logging.Logger) -> None:
    def fail(text: str, kind: type[Exception]) -> None:
        try:
            raise kind(text)
        except Exception:
            logger.exception("the page failed")

    for _ in range(3):
        refuse(logger, 1)
        fail("of one node", ValueError)
        fail("of another node", ValueError)
        fail("of one node", KeyError)
    assert [line.splitlines()[-1] for line in said(logger)] == [
        "connection 1 was refused",
        "ValueError: of one node",
        "KeyError: 'of one node'",
    ]


def test_requests_are_all_told(logger: logging.Logger) -> None:
    for _ in range(3):
        logger.info("GET /")
    assert len(said(logger)) == 3


def test_what_is_remembered_is_bounded(logger: logging.Logger) -> None:
    once = OnceAMinute(lambda: 0.0)
    for line in range(3 * KINDS_KEPT):
        once.filter(logging.LogRecord("x", logging.ERROR, "x.py", line, "text", None, None))
    assert len(once._kinds) <= KINDS_KEPT
