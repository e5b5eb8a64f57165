"""The queue of messages about alerts: one process sends at a time; counts; what is old goes."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.access import access_of, make_file
from data.alerts import Alerts, Delivery
from data.disk_full import disk_full
from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

LOCK = "alerts.lock"
_REMOVED = "deliveries_removed"
"""Fact that holds the counts of deliveries that were removed, by receiver."""
_COUNTS = """
SELECT receiver, count(*) - count(ended_at), count(*) FILTER (WHERE outcome = 'delivered'),
  count(*) FILTER (WHERE outcome IN ('refused', 'given up')),
  coalesce(sum(n_unanswered) FILTER (WHERE outcome = 'delivered'), 0)
FROM deliveries {where} GROUP BY receiver ORDER BY receiver
"""
_OLD = "ended_at < :before AND alert_id NOT IN (SELECT alert_id FROM alerts WHERE {kept})"
_KEPT = "resolved_at IS NULL OR resolved_at >= :before"


@dataclass(frozen=True)
class Counts:
    """Deliveries to one receiver; all but those that wait count since the store was made."""

    receiver: str
    n_waiting: int
    n_delivered: int = 0
    n_failed: int = 0
    """Refused for good, or given up."""
    n_repeats: int = 0
    """How often, at most, what was delivered had come before, since that try was not answered."""


class Deliveries(Alerts):
    """Messages to receivers, of one store."""

    @contextmanager
    def sending(self) -> Iterator[bool]:
        """The right to send, where no other process has it; the system frees it when one ends.

        Raises
        ------
        StoreError
            Where the lock cannot be made.
        """
        path = self._path.with_name(LOCK)
        try:
            make_file(path, access_of(path.parent))
            opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise disk_full(error, path.parent) or StoreError(
                f"{path}: cannot be written ({error.strerror}): check access"
            ) from None
        try:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                with self._many_writes():
                    yield True
        finally:
            os.close(opened)

    def hold(self, receiver: str, until: datetime) -> None:
        """Sends a receiver nothing before a time, since it said so."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE deliveries SET next_at = ? WHERE receiver = ? AND ended_at IS NULL "
                "AND coalesce(next_at, '') < ?",
                (at := until.isoformat(timespec="seconds"), receiver, at),
            )

    def first_told(self) -> list[Delivery]:
        """Of each open alert and receiver, the first message that was delivered; oldest first."""
        told = self.deliveries(
            alert_ids=[one.alert_id for one in self.all() if not one.resolved_at]
        )
        first: dict[tuple[str, str], Delivery] = {}
        for delivery in reversed(told):
            if delivery.outcome == "delivered" and delivery.event != "resolved":
                first.setdefault((delivery.alert_id, delivery.receiver), delivery)
        return list(first.values())

    def failed_of(self, ids: Iterable[str | None]) -> frozenset[str]:
        """Those of some deliveries that were refused for good, or given up."""
        asked = sorted(one for one in ids if one)
        if not asked:
            return frozenset()
        rows = self._read(
            "SELECT delivery_id FROM deliveries WHERE outcome IN ('refused', 'given up') "
            "AND delivery_id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(asked)},
        )
        return frozenset(row[0] for row in rows)

    def counts(self) -> list[Counts]:
        """Deliveries by receiver."""
        held = {row[0]: row for row in self._read(_COUNTS.format(where=""), {})}
        removed = self._removed()
        none = (0, 0, 0)
        return [
            Counts(
                name,
                held[name][1] if name in held else 0,
                *(
                    now + before
                    for now, before in zip(
                        held[name][2:] if name in held else none,
                        removed.get(name, none),
                        strict=True,
                    )
                ),
            )
            for name in sorted(held.keys() | removed.keys())
        ]

    def remove_before(self, before: datetime) -> int:
        """Removes alerts that were resolved before a time, and what was told of them; how many."""
        at = {"before": before.isoformat(timespec="seconds")}
        old = _OLD.format(kept=_KEPT)
        if not self._read(f"SELECT 1 FROM alerts WHERE NOT ({_KEPT}) LIMIT 1", at):
            return 0
        removed = self._removed()
        with self._writing() as connection:
            gone = connection.execute(_COUNTS.format(where=f"WHERE {old}"), at).fetchall()
            for name, _, *counted in gone:
                earlier = removed.get(name, (0, 0, 0))
                removed[name] = tuple(a + b for a, b in zip(counted, earlier, strict=True))
            connection.execute(f"DELETE FROM deliveries WHERE {old}", at)
            n_removed = connection.execute(f"DELETE FROM alerts WHERE NOT ({_KEPT})", at).rowcount
            connection.execute(
                "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "
                "value = excluded.value",
                (_REMOVED, json.dumps(removed)),
            )
        return int(n_removed)

    def _removed(self) -> dict[str, tuple[int, ...]]:
        """Counts of what was removed, by receiver: delivered, failed, repeats."""
        rows = self._read("SELECT value FROM facts WHERE name = :name", {"name": _REMOVED})
        return {name: tuple(told) for name, told in json.loads(rows[0][0]).items()} if rows else {}
