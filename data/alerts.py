"""Alerts and their deliveries, in state.sqlite: what was told to whom, and what came back."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from data.access import access_of, make_file
from data.audit import login
from data.disk_full import disk_full
from data.errors import StoreError
from data.state import State, audited

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

Event = Literal["opened", "escalated", "resolved"]
Outcome = Literal["delivered", "refused", "given up"]
LOCK = "evaluating.lock"
EVALUATED = "alerts_evaluated"
"""Fact of the last evaluation."""
_ALERTS = (
    "SELECT alert_id, target, rules, cluster, severity, sentence, page, named, owner, since_at, "
    "raised_at, opened_at, escalated_at, resolved_at, resolved_by, title FROM alerts"
)
_DELIVERIES = (
    "SELECT delivery_id, alert_id, event, receiver, message, made_at, n_tries, next_at, ended_at, "
    "outcome, said, n_unanswered FROM deliveries"
)


@dataclass(frozen=True)
class Alert:
    """One thing that somebody should know of, however many rules see it. Times are ISO, UTC."""

    alert_id: str
    """Stays the same from when it opens until it is resolved; another time has another id."""
    target: str
    """What people acknowledge, snooze and resolve: `incident:ID` or `action:KIND-HASH`."""
    rules: tuple[str, ...]
    """Those that see it now, or that did when they last could look; the first that did first."""
    cluster: str
    severity: str
    sentence: str
    page: str
    named: Mapping[str, str]
    owner: str | None
    since_at: str
    raised_at: str
    opened_at: str
    escalated_at: str | None = None
    resolved_at: str | None = None
    resolved_by: str | None = None
    """Who said so; None where its evidence was gone by itself."""
    title: str = ""
    """What the gravest of its rules is called."""

    @property
    def since(self) -> datetime:
        """Since when it has been so."""
        return datetime.fromisoformat(self.since_at)


@dataclass(frozen=True)
class Delivery:
    """A message to one receiver. Times are ISO, UTC."""

    delivery_id: str
    """Stays the same when it is sent again."""
    alert_id: str
    event: Event
    receiver: str
    message: Mapping[str, Any]
    """What is told, as it was when it was made."""
    made_at: str
    n_tries: int = 0
    """Times that sending began."""
    next_at: str | None = None
    """Not before that it is sent again; None: now."""
    ended_at: str | None = None
    """When it was answered for good, or given up; None while it waits."""
    outcome: Outcome | None = None
    said: str | None = None
    """What the receiver or the network said last."""
    n_unanswered: int = 0
    """Tries of which nobody knows whether the receiver took them: so often, at most, one that
    knows no ids has shown it again."""


@dataclass(frozen=True)
class Answer:
    """What came back of one try."""

    outcome: Outcome | None
    """None: it is sent again, not before `next_at`."""
    said: str
    at: datetime
    next_at: datetime | None = None
    is_known: bool = True
    """Whether it is known that the receiver took it, or that it did not."""


@dataclass(frozen=True)
class Figure:
    """A number of one cluster, as it was when rules were last asked."""

    name: str
    cluster: str
    value: float | None
    """None where it is not known; so are its bounds."""
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Change:
    """What one evaluation changes: all of it in one transaction."""

    alerts: tuple[Alert, ...] = ()
    """New ones, and those that changed, whole."""
    deliveries: tuple[Delivery, ...] = ()
    """New ones."""
    audited: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Action and detail of lines of the audit."""


@dataclass(frozen=True)
class Evaluated:
    """The last time that the rules were asked."""

    at: str
    """ISO, UTC."""
    snapshot: int
    n_rules: int
    """Rules that were on."""
    blind: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Rule -> cluster -> why it could not be judged."""
    figures: tuple[Figure, ...] = ()
    """What every site graphs."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Cluster -> until when it had records (ISO, UTC)."""


@contextmanager
def evaluating(root: Path) -> Iterator[None]:
    """The right to evaluate the rules of a store; whoever has it is waited for.

    Raises
    ------
    StoreError
        Where the folder cannot be written.
    """
    path = root / LOCK
    try:
        make_file(path, access_of(root))
        # no link is followed: what it leads to would be locked
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise disk_full(error, root) or StoreError(
            f"{root}: cannot be written ({error.strerror}): check access"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def alert_id() -> str:
    """Of a new alert."""
    return secrets.token_hex(6)


class Alerts(State):
    """The alerts of one store."""

    def all(self, *, since: datetime | None = None) -> list[Alert]:
        """Those that are not resolved, and those resolved since a time; the latest first."""
        at = None if since is None else since.isoformat(timespec="seconds")
        rows = self._read(
            f"{_ALERTS} WHERE resolved_at IS NULL OR resolved_at >= :since "
            "ORDER BY opened_at DESC, rowid DESC",
            {"since": at},
        )
        return [_alert(row) for row in rows]

    def last_of(self, targets: Collection[str]) -> dict[str, Alert]:
        """The latest alert of each of some targets that had any, resolved or not."""
        rows = self._read(
            f"{_ALERTS} WHERE target IN (SELECT value FROM json_each(:targets)) ORDER BY rowid",
            {"targets": json.dumps(sorted(targets))},
        )
        return {alert.target: alert for alert in map(_alert, rows)}

    def last_evaluated(self) -> Evaluated | None:
        """When the rules were last asked; None where they never were."""
        rows = self._read("SELECT value FROM facts WHERE name = :name", {"name": EVALUATED})
        if not rows:
            return None
        told = json.loads(rows[0][0])
        return Evaluated(**told | {"figures": tuple(Figure(**one) for one in told["figures"])})

    def change(self, change: Change, evaluated: Evaluated, *, author: str) -> None:
        """Keeps what an evaluation found, in one transaction."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO facts VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (EVALUATED, json.dumps(asdict(evaluated), sort_keys=True)),
            )
            for alert in change.alerts:
                connection.execute(_upsert("alerts", Alert), _values(alert))
            for delivery in change.deliveries:
                connection.execute(_upsert("deliveries", Delivery), _values(delivery))
            for action, detail in change.audited:
                audited(connection, author, action, dict(detail))

    def waiting(self, now: datetime) -> list[Delivery]:
        """Deliveries that have no answer and may be sent now, the oldest first.

        Of one alert to one receiver only the first that waits: nobody hears of its end before its
        beginning.
        """
        rows = self._read(
            f"{_DELIVERIES} WHERE ended_at IS NULL AND (next_at IS NULL OR next_at <= :now) "
            "AND rowid IN (SELECT min(rowid) FROM deliveries WHERE ended_at IS NULL "
            "GROUP BY alert_id, receiver) ORDER BY rowid",
            {"now": now.isoformat(timespec="seconds")},
        )
        return [_delivery(row) for row in rows]

    def deliveries(self, *, alert_ids: Iterable[str] | None = None) -> list[Delivery]:
        """All deliveries, or those of some alerts; the latest first."""
        wanted = None if alert_ids is None else json.dumps(sorted(alert_ids))
        rows = self._read(
            f"{_DELIVERIES} WHERE :ids IS NULL OR alert_id IN (SELECT value FROM json_each(:ids)) "
            "ORDER BY rowid DESC",
            {"ids": wanted},
        )
        return [_delivery(row) for row in rows]

    def began(self, delivery: Delivery, next_at: datetime) -> None:
        """Notes that a delivery is being sent: if nothing is noted after it, it is sent again."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE deliveries SET n_tries = n_tries + 1, n_unanswered = n_unanswered + 1, "
                "next_at = ? WHERE delivery_id = ?",
                (next_at.isoformat(timespec="seconds"), delivery.delivery_id),
            )

    def answered(self, delivery: Delivery, answer: Answer) -> None:
        """Notes what came back of the try that began last; a failure is a line of the audit."""
        ended, again = (
            None if at is None else at.isoformat(timespec="seconds")
            for at in (None if answer.outcome is None else answer.at, answer.next_at)
        )
        with self._writing() as connection:
            connection.execute(
                "UPDATE deliveries SET outcome = ?, said = ?, ended_at = ?, next_at = ?, "
                "n_unanswered = max(n_unanswered - ?, 0) WHERE delivery_id = ?",
                (answer.outcome, answer.said, ended, again, answer.is_known, delivery.delivery_id),
            )
            if answer.outcome in ("refused", "given up"):
                detail = {"target": delivery.receiver, "delivery_id": delivery.delivery_id}
                detail |= {"alert_id": delivery.alert_id, "event": delivery.event}
                audited(
                    connection, login(), f"alert {answer.outcome}", detail | {"said": answer.said}
                )


def _upsert(table: str, declared: type) -> str:
    """A row of a dataclass, in place of the one with its key."""
    names = [item.name for item in fields(declared)]
    rest = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
        f"ON CONFLICT ({names[0]}) DO UPDATE SET {rest}"
    )


def _values(row: Alert | Delivery) -> tuple[Any, ...]:
    """The columns of a row; what is no text or number is JSON."""
    return tuple(
        json.dumps(value, sort_keys=True) if isinstance(value, dict | list | tuple) else value
        for value in asdict(row).values()
    )


def _alert(row: tuple[Any, ...]) -> Alert:
    held = list(row)
    held[2], held[7] = tuple(json.loads(held[2])), json.loads(held[7])
    return Alert(*held)


def _delivery(row: tuple[Any, ...]) -> Delivery:
    held = list(row)
    held[4] = json.loads(held[4])
    return Delivery(*held)
