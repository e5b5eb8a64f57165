"""Sends what waits: each try is noted before and after, so that a process may end at any moment.

A message whose try was noted and not answered is sent again with the same id. Receivers are told
side by side: one that hangs holds up no other, and is asked no more in that round.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING

from app.alerts.out import alertmanager, sender
from data.alerts import Answer
from data.deliveries import Deliveries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from app.alerts.out.answered import Answered
    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver

FIRST_S, LONGEST_S = 30.0, 3_600.0
"""Seconds before a message is sent again: doubled with each try, up to an hour."""
GIVEN_UP_AFTER = timedelta(days=3)
KEPT = timedelta(days=365)
"""Of alerts that are resolved, and of what was told of them."""
AT_ONCE = 8
"""Receivers that are told side by side."""
MOST_ROUNDS = 5
"""In a row, while something new waits."""
_IN_A_ROW = 3
"""Failures after which a receiver that answers is asked no more in a round."""
_UNKNOWN_THERE = "the opening was not delivered, so its end is not told"


@dataclass(frozen=True)
class Limits:
    """Of one round."""

    timeout_s: float = 10.0
    """Of one try, whatever the receiver does."""
    receiver_s: float = 60.0
    """Of all messages to one receiver."""
    n_messages: int = 1_000
    """To one receiver."""


@dataclass(frozen=True)
class Round:
    """What one round did."""

    n_delivered: int = 0
    n_refused: int = 0
    """Refused for good, or given up."""
    n_again: int = 0
    """Tried in vain, and to be sent again."""
    is_elsewhere: bool = False
    """Whether another process sends, so that this one sent nothing."""

    def __add__(self, other: Round) -> Round:
        return Round(
            self.n_delivered + other.n_delivered,
            self.n_refused + other.n_refused,
            self.n_again + other.n_again,
            self.is_elsewhere or other.is_elsewhere,
        )


NO_LIMITS = Limits()


def deliver(
    root: Path,
    site: Site,
    *,
    limits: Limits = NO_LIMITS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Round:
    """Sends what waits and may be sent now; tells Alertmanager again what is open; removes what
    is older than a year.

    What others queue meanwhile, and an end behind its beginning, is sent too: whoever finds that
    this process sends has queued before it looked, so this one looks again after it has freed the
    lock. A receiver that failed is left alone.

    Raises
    ------
    StoreError
        Where state.sqlite or the lock cannot be written.
    """
    queue, now = Deliveries(root), clock()
    queue.remove_before(now - KEPT)
    managers = [one for one in site.alerts.receivers if one.kind == "alertmanager"]
    if not managers and not queue.waiting(now):
        return Round()
    rounds = _Rounds(queue, site, limits, clock)
    with queue.sending() as may:
        if not may:
            return Round(is_elsewhere=True)
        done = rounds.next()
        first = queue.first_told() if managers else []
        standing = [_Standing(receiver, limits, now) for receiver in managers]
        with ThreadPoolExecutor(AT_ONCE, "alertmanagers") as pool:
            list(pool.map(lambda one: one.tell(first), standing))
    for _ in range(MOST_ROUNDS - 1):
        if not rounds.waiting():
            break
        with queue.sending() as may:
            if not may:
                break
            done += rounds.next()
    return done


def wait_s(delivery_id: str, n_tries: int) -> float:
    """Seconds before a message is sent again after so many tries.

    Up to a quarter less than what is doubled: drawn from the id, so that messages that failed
    together do not come together again.

    >>> [round(wait_s("a1", n)) for n in (1, 2, 8, 500)]
    [26, 58, 2731, 3515]
    """
    whole = min(FIRST_S * 2.0 ** min(n_tries - 1, 16), LONGEST_S)
    return whole * random.Random(f"{delivery_id}/{n_tries}").uniform(0.75, 1.0)


@dataclass(frozen=True)
class _Standing:
    """An Alertmanager, which forgets what it is not told again."""

    receiver: Receiver
    limits: Limits
    now: datetime

    def tell(self, first: Sequence[Delivery]) -> None:
        """Tells it what is open; where it does not answer, the next round does."""
        own = [one for one in first if one.receiver == self.receiver.name]
        if own:
            alertmanager.send_again(self.receiver, own, self.now, timeout_s=self.limits.timeout_s)


@dataclass(frozen=True)
class _Rounds:
    """Rounds in a row, in which each message is looked at once."""

    queue: Deliveries
    site: Site
    limits: Limits
    clock: Callable[[], datetime]
    seen: set[str] = field(default_factory=set)
    """Ids of messages."""
    left: set[str] = field(default_factory=set)
    """Names of receivers that are left alone, for one try was in vain."""

    def waiting(self) -> list[Delivery]:
        """What may be sent now and was not looked at yet, by receiver, the oldest first."""
        new = [
            one
            for one in self.queue.waiting(self.clock())
            if one.delivery_id not in self.seen and one.receiver not in self.left
        ]
        return sorted(new, key=lambda one: one.receiver)

    def next(self) -> Round:
        """Sends it."""
        waiting = self.waiting()
        self.seen.update(one.delivery_id for one in waiting)
        failed = self.queue.failed_of(one.message["first"] for one in waiting)
        by_name = {receiver.name: receiver for receiver in self.site.alerts.receivers}
        by_receiver = {
            name: _Round(
                self.queue, self.site, by_name.get(name), (*each,), failed, self.limits, self.clock
            )
            for name, each in groupby(waiting, lambda one: one.receiver)
        }
        with ThreadPoolExecutor(AT_ONCE, "deliveries") as pool:
            done = list(pool.map(_Round.run, by_receiver.values()))
        self.left.update(name for name, one in zip(by_receiver, done, strict=True) if one.n_again)
        return sum(done, Round())


@dataclass(frozen=True)
class _Round:
    """All that waits for one receiver, in order."""

    queue: Deliveries
    site: Site
    receiver: Receiver | None
    """None where site.toml names none of that name."""
    waiting: tuple[Delivery, ...]
    failed: frozenset[str]
    """First messages that never arrived."""
    limits: Limits
    clock: Callable[[], datetime]

    def run(self) -> Round:
        """Sends them, until one shows that more would fail too."""
        until = monotonic() + self.limits.receiver_s
        done, in_a_row = Round(), 0
        for delivery in self.waiting[: self.limits.n_messages]:
            left_s = until - monotonic()
            if left_s <= 0.0:
                break
            if (ended := self._ended(delivery)) is not None:
                answer = Answer("given up", ended, self.clock(), is_known=False)
                self.queue.answered(delivery, answer)
                done += Round(n_refused=1)
                continue
            if self.receiver is None:
                continue
            answered = self._try(self.receiver, delivery, min(left_s, self.limits.timeout_s))
            done += _counted(answered)
            in_a_row = 0 if answered.outcome is not None else in_a_row + 1
            if answered.is_down or in_a_row >= _IN_A_ROW:
                break
        return done

    def _ended(self, delivery: Delivery) -> str | None:
        """Why a message is not sent any more."""
        if delivery.message["first"] in self.failed:
            return _UNKNOWN_THERE
        if self.clock() - datetime.fromisoformat(delivery.made_at) <= GIVEN_UP_AFTER:
            return None
        missing = f"site.toml names no receiver {delivery.receiver}"
        return missing if self.receiver is None else delivery.said or "was never tried"

    def _try(self, receiver: Receiver, delivery: Delivery, timeout_s: float) -> Answered:
        """One try, noted before and after."""
        n_tries = delivery.n_tries + 1
        again_s = wait_s(delivery.delivery_id, n_tries)
        self.queue.began(delivery, self.clock() + timedelta(seconds=again_s))
        answered = sender(receiver.kind)(receiver, delivery, self.site, timeout_s=timeout_s)
        now = self.clock()
        asked_s = answered.retry_after_s or 0.0
        again = None if answered.outcome else now + timedelta(seconds=max(again_s, asked_s))
        self.queue.answered(
            delivery, Answer(answered.outcome, answered.said, now, again, answered.is_known)
        )
        if asked_s:
            self.queue.hold(receiver.name, now + timedelta(seconds=asked_s))
        return answered


def _counted(answered: Answered) -> Round:
    """One try as a round."""
    return Round(
        int(answered.outcome == "delivered"),
        int(answered.outcome == "refused"),
        int(answered.outcome is None),
    )
