"""Going back to an earlier snapshot, which is published anew: what an ingest brought is taken back.

What people said stays: it lies in another file. A rollback is a publish like any other, and so can
be taken back itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb

from data.current import Current, read_current
from data.database_errors import told_of
from data.errors import StoreError
from data.publish.schema import literal
from data.publish.writer import writer
from data.sampled import refuse_another
from data.snapshots import damaged_notes, kept_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

Key: TypeAlias = "tuple[str, str, Any]"
"""Id, hash and time of an ingest, which tell it from those of any other store."""
_TOLD = ("ingest_id", "source", "cluster", "path", "sha256", "ingested_at", "rows_kept", "command")


@dataclass(frozen=True)
class Plan:
    """What going back means."""

    published: int
    """Snapshot from which it goes back."""
    base: Current | None
    """Snapshot to which it goes back; None: to an empty store, as before the first ingest."""
    undone: tuple[dict[str, Any], ...]
    """Ingests that are taken back, in the order in which they were read: ingest_id, source,
    cluster, path, sha256, ingested_at, rows_kept and command."""
    brought_back: tuple[dict[str, Any], ...]
    """Ingests that are in again, because an earlier rollback had taken them back."""

    def to_repeat(self, ingest_id: str | None) -> tuple[dict[str, Any], ...]:
        """Ingests that are taken back although nobody asked for that."""
        return tuple(each for each in self.undone if each["ingest_id"] != ingest_id)


def plan(root: Path, *, ingest_id: str | None = None, snapshot: int | None = None) -> Plan:
    """What taking back an ingest, or going back to a snapshot, means.

    The ingests of one command are published at once, and so are taken back together.

    Raises
    ------
    StoreError
        Where the store has no such ingest or snapshot, or the snapshot that is needed is gone.
    """
    current = read_current(root)
    if current is None:
        raise StoreError(f"{root}: holds no store: there is nothing to take back")
    with _opened(root) as held:
        published, earlier = held.pop(current.snapshot), held
        if ingest_id is not None:
            number = _before(root, ingest_id, published.keys, earlier)
        elif snapshot in earlier:
            number = snapshot
        else:
            if told := damaged_notes(root):
                raise StoreError(told[0])
            is_now = "is the published one" if snapshot == current.snapshot else "is not kept"
            raise StoreError(f"{root}: snapshot {snapshot} {is_now}: kept are {_numbers(earlier)}")
        base = None if number is None else earlier[number]
        then = set() if base is None else {*base.keys}
        return Plan(
            published=current.snapshot,
            base=None if base is None else base.current,
            undone=published.told({*published.keys} - then),
            brought_back=() if base is None else base.told(then - {*published.keys}),
        )


def roll_back(
    root: Path,
    *,
    ingest_id: str | None = None,
    snapshot: int | None = None,
    expected: int | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[Plan, Current]:
    """Goes back as planned; the plan, and the snapshot that is published then.

    Parameters
    ----------
    expected
        Snapshot that was published when somebody agreed; another one is refused.

    Raises
    ------
    StoreError
        As `plan` does, or where the store changed meanwhile or is being written.
    """
    plans: list[Plan] = []

    def start(current: Current | None) -> Current | None:
        if expected is not None and current is not None and current.snapshot != expected:
            raise StoreError(
                f"{root}: snapshot {current.snapshot} was published meanwhile: look again at what "
                "would be taken back"
            )
        plans.append(plan(root, ingest_id=ingest_id, snapshot=snapshot))
        return plans[0].base

    with writer(root, start=start) as building:
        return plans[0], building.publish(progress)


def undoable(root: Path) -> set[str]:
    """Ids of the ingests of which the snapshot before them is still there."""
    current = read_current(root)
    if current is None:
        return set()
    with _opened(root) as held:
        keys = held.pop(current.snapshot).keys
        begins = [then.keys for then in held.values() if then.keys == keys[: len(then.keys)]]
        lengths = {0, *map(len, begins)}
    first: dict[str, int] = {}  # of each publish the place of its first ingest
    for place, key in enumerate(keys):
        first.setdefault(_publish(key[0]), place)
    return {key[0] for key in keys if first[_publish(key[0])] in lengths}


class _Snapshot:
    """The ingests that a kept snapshot holds."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, root: Path, current: Current) -> None:
        self.current = current
        self._connection, self._name = connection, f"kept_{current.snapshot}"
        self._path = root / current.file
        refuse_another(root, current)
        attached = f"ATTACH {literal(str(self._path))} AS {self._name} (READ_ONLY)"
        with told_of(self._path):
            connection.execute(attached)
            rows = connection.execute(
                f"SELECT ingest_id, sha256, ingested_at FROM {self._name}.ingests ORDER BY rowid"
            ).fetchall()
        self.keys: list[Key] = rows
        """In the order in which they were read."""

    def told(self, keys: Collection[Key]) -> tuple[dict[str, Any], ...]:
        """What is told of some of them; None where an earlier version did not note it."""
        with told_of(self._path):
            found = self._connection.execute(f"SELECT * FROM {self._name}.ingests ORDER BY rowid")
            names = [column[0] for column in found.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return tuple(
            {name: row.get(name) for name in _TOLD}
            for row in rows
            if (row["ingest_id"], row["sha256"], row["ingested_at"]) in keys
        )


@contextmanager
def _opened(root: Path) -> Iterator[dict[int, _Snapshot]]:
    """The kept snapshots by their numbers; an earlier one that cannot be read is left out."""
    published = read_current(root)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = {}
        for kept in kept_snapshots(root):
            try:
                found[kept.current.snapshot] = _Snapshot(connection, root, kept.current)
            except StoreError:
                if kept.current == published:
                    raise
        yield found


def _before(
    root: Path, ingest_id: str, keys: list[Key], earlier: dict[int, _Snapshot]
) -> int | None:
    """Number of the snapshot before an ingest; None where nothing came before it."""
    ids = [key[0] for key in keys]
    if ingest_id not in ids:
        last = ", ".join(reversed(ids[-5:])) or "none"
        raise StoreError(
            f"{root}: holds no ingest {ingest_id!r}: the latest are {last} (`faultline ingests` "
            "lists all)"
        )
    published_with = [_publish(one) == _publish(ingest_id) for one in ids]
    wanted = keys[: published_with.index(True)]
    exact = [number for number, then in earlier.items() if then.keys == wanted]
    if exact:
        return max(exact)
    if not wanted:
        return None
    if told := damaged_notes(root):
        raise StoreError(told[0])
    raise StoreError(
        f"{root}: the snapshot before ingest {ingest_id} is gone or damaged (keep_snapshots of "
        f"[retention] in site.toml says how many stay): kept are {_numbers(earlier)}, which "
        "`faultline rollback --to N` goes back to"
    )


def _publish(ingest_id: str) -> str:
    """What ingests share that were published together: the number of the snapshot."""
    return ingest_id.partition(".")[0]


def _numbers(earlier: Collection[int]) -> str:
    """Numbers of snapshots, the latest first."""
    return ", ".join(map(str, sorted(earlier, reverse=True))) or "none but the published one"
