"""Retention: rows older than a site keeps them, removed for good.

What stays is copied into a new file, because a database keeps the bytes of deleted rows; and the
earlier snapshots go, because they hold what is to be forgotten.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from data.current import damaged, read_current
from data.errors import StoreError
from data.publish.schema import literal
from data.publish.writer import writer
from data.tables import forgettable, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from data.current import Current
    from data.publish.writer import StoreWriter

_FOLLOWS = {
    "job_nodes": "(cluster, attempt_key) IN (SELECT cluster, attempt_key FROM jobs)",
    "pod_runs": "(cluster, job_id) IN (SELECT cluster, job_id FROM jobs)",
    "queue_changes": "(cluster, job_id) IN (SELECT cluster, job_id FROM jobs)",
}
"""Table without a time of its own, copied after those that have one -> which of its rows stay."""


def limits(days: Mapping[str, int], as_of: datetime) -> dict[str, datetime]:
    """Table -> the midnight (UTC) before which its rows are too old.

    >>> limits({"jobs": 30}, datetime(2026, 3, 2, 5, tzinfo=UTC))["jobs"].isoformat()
    '2026-01-31T00:00:00+00:00'
    """
    today = datetime.combine(as_of.astimezone(UTC).date(), time(tzinfo=UTC))
    return {table: today - timedelta(days=n) for table, n in sorted(days.items())}


def forget(
    root: Path,
    days: Mapping[str, int],
    as_of: datetime,
    progress: Callable[[str], None] = lambda message: None,
) -> Current:
    """Removes what is too old, derives all else anew and publishes it; earlier snapshots go.

    Raises
    ------
    StoreError
        Where there is no store, it is damaged or being written.
    """
    with writer(root, fresh=True) as building:
        current = read_current(root)
        if current is None:
            raise StoreError(f"{root}: holds no store: there is nothing to forget")
        with (root / current.file).open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != current.sha256:
                raise damaged(root / current.file, "its SHA-256 is not the one that CURRENT states")
        attached = f"ATTACH {literal(str(root / current.file))} AS old (READ_ONLY)"
        building.connection.execute(attached)
        _copy(building, limits(days, as_of), progress)
        building.connection.execute("DETACH old")
        building.keeps = 0
        return building.publish(progress)


def _copy(
    building: StoreWriter, limits: Mapping[str, datetime], progress: Callable[[str], None]
) -> None:
    """Copies all tables but the rows that are too old; every stage runs again."""
    connection = building.connection
    for name in sorted(tables().keys() - {"stage_runs"}, key=lambda name: (name in _FOLLOWS, name)):
        progress(f"copying {name}")
        before_at = limits.get(name)
        stays = _FOLLOWS.get(name, "true")
        if before_at is not None:
            limit = f"TIMESTAMPTZ {literal(before_at.isoformat())}"
            stays = f"(({forgettable()[name]}) < {limit}) IS NOT TRUE"
        building.load({name: connection.sql(f"SELECT * FROM old.{name} WHERE {stays}")})
        ((n_before,),) = connection.execute(f"SELECT count(*) FROM old.{name}").fetchall()
        if before_at is not None and n_before > building.count(name):
            connection.execute(
                "INSERT INTO forgotten BY NAME SELECT ? AS table_name, ? AS before_at, "
                "? AS forgotten_at, ? AS n_rows",
                [name, before_at, datetime.now(UTC), n_before - building.count(name)],
            )
