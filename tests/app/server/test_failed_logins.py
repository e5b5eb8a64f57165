"""Failed logins: the first of a minute is told at once, a flood as two lines a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.server.audit import MOST_ADDRESSES, FailedLogins

if TYPE_CHECKING:
    from collections.abc import Callable


class Minutes:
    """Minutes that pass when a test says so; what was told, and what waits for their end."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.waiting: list[Callable[[], None]] = []
        self.failed = FailedLogins(
            lambda person, action, detail: self.told.append(detail),
            lambda seconds, call: self.waiting.append(call),
        )

    def over(self) -> None:
        """Ends the minute."""
        self.waiting.pop()()


def test_a_single_one_is_told_at_once_and_once() -> None:
    minutes = Minutes()
    minutes.failed.add("192.0.2.1")
    assert minutes.told == [{"address": "192.0.2.1", "attempts": 1}]
    minutes.over()
    minutes.failed.tell()
    assert len(minutes.told) == 1


def test_a_flood_is_two_lines_a_minute() -> None:
    minutes = Minutes()
    for _ in range(3):
        for n in range(10_001):
            minutes.failed.add("192.0.2.1" if n % 2 else f"198.51.100.{n % 200}")
        minutes.over()
    assert minutes.waiting == []
    assert len(minutes.told) == 6
    assert minutes.told[::2] == [{"address": "198.51.100.0", "attempts": 1}] * 3
    assert minutes.told[1] == {"address": "192.0.2.1", "attempts": 10_000, "addresses": 101}


def test_many_long_addresses_stay_few_and_short() -> None:
    minutes = Minutes()
    for n in range(5 * MOST_ADDRESSES):
        minutes.failed.add(f"{n:04d}" + "x" * 10_000)
    minutes.over()
    first, rest = minutes.told
    assert first == {"address": "0000" + "x" * 60, "attempts": 1}
    assert rest["attempts"] == 5 * MOST_ADDRESSES - 1
    assert rest["addresses"] == MOST_ADDRESSES + 1
    assert rest["address"] == "others"


def test_the_next_minute_begins_with_the_next_one() -> None:
    minutes = Minutes()
    minutes.failed.add("192.0.2.1")
    minutes.over()
    assert minutes.waiting == []
    minutes.failed.add("192.0.2.2")
    assert minutes.told[1:] == [{"address": "192.0.2.2", "attempts": 1}]
