"""One writer at a time builds `building-<n>.duckdb` aside and publishes it as a snapshot."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

import duckdb

from data import stages
from data.access import PRIVATE, access_of, make_file, make_folder
from data.current import (
    SCHEMA_VERSION,
    Current,
    copy_published,
    read_current,
    refuse_newer,
    replace_file,
    snapshot_numbers,
    sync,
    threads_for,
)
from data.database_errors import told_of, told_of_writing
from data.definitions import DEFAULT_SINCE_SCHEMA
from data.errors import StoreBusyError, StoreError
from data.landing import land
from data.metrics_files import NAMED, remove, unnamed
from data.publish import schema
from data.publish.lock import locked
from data.publish.merge import Touched, merge
from data.publish.names import NODE_KEYED, name_nodes, names_told
from data.publish.owners import place
from data.said import read_said
from data.sampled import sampled
from data.site import load_site
from data.site_changes import settings
from data.snapshots import damaged_notes, kept_snapshots, note_superseded, prune
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa

    from data.publish.owners import Owners

    Rows: TypeAlias = pd.DataFrame | pa.Table | duckdb.DuckDBPyRelation

WRITE_MEMORY = "2500MB"
"""Memory of the database that builds a snapshot; larger steps spill to disk."""
SMALL_BYTES = 1_000_000
"""Of an input: up to there one thread is quicker than two."""
MIGRATION_WAIT_S = 600.0
"""How long who reads an older store waits for another writer."""


class StoreWriter:
    """The snapshot under construction."""

    def __init__(self, root: Path, current: Current | None, start: Current | None) -> None:
        self.root = root
        self._superseded = current
        self.keeps: int | None = None
        """Earlier snapshots that stay once it has published; as many as site.toml says where None.
        """
        self.synthetic = current is not None and current.synthetic
        self.snapshot = (current.snapshot if current else 0) + 1
        known = current.store_id if current else ""
        self.store_id = known or State(root).store_id() or secrets.token_hex(8)
        self.building = root / f"building-{self.snapshot}.duckdb"
        self._scratch = root / "scratch"
        make_folder(self._scratch, PRIVATE)
        self.changed: set[str] = set()
        """Tables whose rows this writer changed; of some, `touched` knows which."""
        self.new_files: list[Path] = []
        """Files that this writer added to the store's folder; gone where it publishes nothing."""
        self.owners: Owners | None = None
        """Which cluster knows which host, as long as nothing was merged that could tell more."""
        self.takes_site = True
        """Whether a publish takes site.toml as known; not one that nobody asked for."""
        self._settings: dict[str, str] = {}
        self.new_names: list[tuple[str, str, str, str]] = []
        """What the publish found of names (`data.publish.names.names_told`)."""
        if start is not None:
            copy_published(root, start, self.building)
        else:
            make_file(self.building, access_of(root))
            self.building.write_bytes(schema.empty_snapshot())
        self.connection = duckdb.connect(
            config={
                "memory_limit": WRITE_MEMORY,
                "temp_directory": str(self._scratch),
                **threads_for(self.building),
            }
        )
        self.connection.execute("SET GLOBAL TimeZone='UTC'")
        self.connection.execute("SET enable_progress_bar=false")  # it goes to standard output
        self.touched = Touched(self.connection)
        attached = f"ATTACH {schema.literal(str(self.building))} AS building"
        self.connection.execute(f"{attached} (RECOVERY_MODE no_wal_writes); USE building")
        if start is not None and start.schema_version < SCHEMA_VERSION:
            schema.update(self.connection, from_version=start.schema_version)
            self.connection.execute("DELETE FROM stage_runs")
            if start.schema_version < DEFAULT_SINCE_SCHEMA:
                self.connection.execute("UPDATE store_meta SET recounted_at = now()")

    def expect(self, n_bytes: float) -> None:
        """Takes all processors for an input that is not small."""
        if n_bytes > SMALL_BYTES:
            self.connection.execute("RESET threads")

    @property
    def workdir(self) -> Path:
        """A folder for temporary files; emptied when the writer is done."""
        return self._scratch

    def merge(
        self,
        tables: Mapping[str, Rows],
        refuse: Callable[[Mapping[str, int]], None] = lambda counts: None,
    ) -> dict[str, int]:
        """Merges rows into tables in one transaction; rows added or changed, by table.

        `refuse` may raise an error once they are in, which takes them back.
        """
        counts: dict[str, int] = {}
        self.owners = None
        with self.transaction():
            for table, rows in tables.items():
                relation = self._relation(rows)
                before = self.count(table)
                merged = merge(self.connection, table, relation, self.touched)
                self.connection.execute(f"DROP VIEW IF EXISTS {relation}")
                if any(merged.values()) or self.count(table) != before:
                    self.changed |= {table, "job_nodes"} if table == "jobs" else {table}
                self.changed |= {name for name, n_rows in merged.items() if n_rows}
                counts |= merged
            refuse(counts)
        return counts

    def load(self, tables: Mapping[str, Rows]) -> None:
        """Inserts rows that are known to be new into a store that holds none."""
        self.connection.execute("RESET threads")
        with self.transaction():
            for table, rows in tables.items():
                relation = self._relation(rows)
                self.connection.execute(f"INSERT INTO {table} BY NAME FROM {relation}")
                self.connection.execute(f"DROP VIEW IF EXISTS {relation}")
                self.changed.add(table)
                self.touched.forget({table})

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def publish(
        self, progress: Callable[[str], None] = lambda message: None, *, ledger: bool = False
    ) -> Current:
        """Derives what changed, and publishes it; the ledger too where it is asked for."""
        progress("deriving")
        told = names_told(self.connection) if self.snapshot > 1 else set()
        context, sizes = self._named(progress)
        stages.derive(
            self.connection, context, self.changed, touched=self.touched.tables, sizes=sizes
        )
        self.new_names = sorted(names_told(self.connection) - told)
        if ledger:
            stages.derive(self.connection, context, (), on_demand=True)
        return self._published(progress)

    def publish_ledger(self, progress: Callable[[str], None] = lambda message: None) -> Current:
        """Derives the ledger and the runs of the records as they are, and publishes them.

        A reader asks for it, who does not know what changed in site.toml.
        """
        self.takes_site = False
        context, sizes = self._named(progress)
        stages.derive(self.connection, context, self.changed, on_demand=True, sizes=sizes)
        return self._published(progress)

    def _named(self, progress: Callable[[str], None]) -> tuple[stages.Context, dict[str, int]]:
        """What stages may use, and the rows of each table, once every node has one name."""
        site, self._settings = load_site(self.root), settings(self.root)
        sizes = stages.rows_of(self.connection)
        placed = place(self.connection, site, self.changed, sizes)
        self.changed |= placed
        self.touched.forget(placed)
        sizes |= {table: self.count(table) for table in placed}
        renamed = name_nodes(self.connection, site.nodes, placed, sizes)
        self.changed |= renamed
        sizes |= {table: self.count(table) for table in renamed}
        # Names that stay are given to rows that came; of some tables also to what shares their key.
        self.touched.forget(renamed if "node_names" in renamed else renamed & {*NODE_KEYED})
        return stages.Context(self.root, site, read_said(self.root), progress), sizes

    def _published(self, progress: Callable[[str], None]) -> Current:
        """Checkpoints, hashes and publishes what was derived."""
        published_at = datetime.now(UTC).isoformat(timespec="seconds")
        ((recounted_at,),) = self.connection.execute(
            "SELECT max(recounted_at) FROM store_meta"
        ).fetchall()
        self.connection.execute("DELETE FROM store_meta")
        ((synthetic,),) = self.connection.execute(
            "SELECT coalesce(bool_or(synthetic), false) FROM clusters"
        ).fetchall()
        self.connection.execute(
            """INSERT INTO store_meta (schema_version, snapshot, product_version, published_at,
                 recounted_at, synthetic, store_id) VALUES (?, ?, ?, ?, ?, ?, ?)""",
            [
                *(SCHEMA_VERSION, self.snapshot, _product_version()),
                *(published_at, recounted_at, synthetic, self.store_id),
            ],
        )
        named = {path for (path,) in self.connection.execute(NAMED).fetchall()}
        progress("publishing")
        self.connection.execute("CHECKPOINT; USE memory; DETACH building")
        size, sample = sampled(self.building)
        current = Current(
            snapshot=self.snapshot,
            file=f"warehouse-{self.snapshot}.duckdb",
            sha256=_sha256(self.building),
            schema_version=SCHEMA_VERSION,
            published_at=published_at,
            synthetic=synthetic,
            size=size,
            sample=sample,
            store_id=self.store_id,
        )
        sync(self.building)
        self._read_back()
        State(self.root).create(self.store_id, self._taken())
        self._land(current)
        self.new_files.clear()
        keep = load_site(self.root).retention.keep_snapshots if self.keeps is None else self.keeps
        prune(self.root, current, keep=keep)
        superfluous = unnamed(self.root, named)
        if superfluous and not damaged_notes(self.root):  # which may be of one that names them
            with suppress(duckdb.Error):  # one that cannot be read may name any of them
                remove(self.root, superfluous - _named_by_earlier(self.root))
        return current

    def _taken(self) -> dict[str, str]:
        """What site.toml says as far as it is taken from now on: now, or when it was last taken."""
        known = None if self.takes_site else State(self.root).settings()
        return self._settings if known is None else known

    def _read_back(self) -> None:
        """Refuses to publish a file that does not open as the snapshot it is."""
        attached = f"ATTACH {schema.literal(str(self.building))} AS written (READ_ONLY)"
        self.connection.execute(attached)
        rows = self.connection.execute("SELECT snapshot FROM written.store_meta").fetchall()
        if rows != [(self.snapshot,)]:
            raise StoreError(
                f"{self.building}: does not read back as it was written: check the disk"
            )
        self.connection.close()

    def _land(self, current: Current) -> None:
        """Gives the snapshot its name and names it in CURRENT; takes the first back where the
        second fails.
        """
        if self._superseded is not None:
            note_superseded(self.root, self._superseded)
        landed = self.building.rename(self.root / current.file)
        try:
            replace_file(self.root / "CURRENT", current.to_json())
        except BaseException:
            if read_current(self.root) != current:
                landed.unlink()
            raise

    def count(self, table: str) -> int:
        """Rows of a table."""
        ((n_rows,),) = self.connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(n_rows)

    def _relation(self, rows: Rows) -> str:
        """A name under which SQL reads the rows."""
        if isinstance(rows, duckdb.DuckDBPyRelation):
            rows.create_view("incoming", replace=True)
        else:
            self.connection.register("incoming", rows)
        return "incoming"


@contextmanager
def writer(
    root: Path,
    *,
    fresh: bool = False,
    start: Callable[[Current | None], Current | None] | None = None,
    wait_s: float = 0.0,
) -> Iterator[StoreWriter]:
    """The only writer of a store; what is not published when the block ends is thrown away.

    A `fresh` one starts from an empty snapshot in place of the published one; `start` says of the
    published one from which other it starts, None from an empty one. A new folder, in which nothing
    was published, is removed. Another writer is waited for, `wait_s` seconds at most.

    Raises
    ------
    StoreBusyError
        Where another process is writing.
    StoreError
        Where the folder cannot be written.
    """
    with locked(root, wait_s), told_of_writing(root):
        land(root)
        current = read_current(root) or _adopted(root)
        refuse_newer(root, current)
        begins = current if start is None else start(current)
        _clear(root)
        try:
            if current is not None:
                State(root).refuse_another(current.store_id)
            building = StoreWriter(root, current, None if fresh else begins)
            try:
                State(root).refuse_lost(building.count("annotations"))
                yield building
            finally:
                building.connection.close()
                _discard(building.new_files, root)
        finally:
            _clear(root)


def _adopted(root: Path) -> Current | None:
    """The newest snapshot of a store without CURRENT, published again; None where there is none.

    A writer killed before its first CURRENT leaves one, and so does a backup without that file.
    """
    numbers = snapshot_numbers(root)
    if not numbers:
        return None
    snapshot = numbers[-1]
    path = root / f"warehouse-{snapshot}.duckdb"
    with told_of(path), duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(
            "SELECT * REPLACE (CAST(published_at AS VARCHAR) AS published_at) FROM store_meta"
        )
        names = [column[0] for column in found.description or ()]
        row = found.fetchone()
    if row is None:
        return None
    meta = dict(zip(names, row, strict=True))
    current = Current(
        snapshot,
        path.name,
        _sha256(path),
        **{name: meta[name] for name in ("schema_version", "published_at", "synthetic")},
    )
    if meta.get("store_id"):  # else of an earlier version
        size, sample = sampled(path)
        current = replace(current, size=size, sample=sample, store_id=meta["store_id"])
    replace_file(root / "CURRENT", current.to_json())
    return current


def migrate(root: Path) -> Current:
    """Publishes an older store anew under this version's schema, once nobody else writes."""
    with writer(root, wait_s=MIGRATION_WAIT_S) as building:
        current = read_current(root)
        if current is not None and current.schema_version == SCHEMA_VERSION:
            return current  # that writer did it
        building.takes_site = False
        return building.publish()


def clear(root: Path) -> None:
    """Removes what a writer left that was killed; nothing while another one writes."""
    with suppress(StoreBusyError), locked(root):
        _clear(root)


def _clear(root: Path) -> None:
    """Removes what a writer left that published nothing."""
    shutil.rmtree(root / "scratch", ignore_errors=True)
    for path in (*root.glob("building-*"), *root.glob(".*-*.part")):
        path.unlink(missing_ok=True)


def _named_by_earlier(root: Path) -> set[str]:
    """Files of traces that a snapshot names which one can go back to."""
    named: set[str] = set()
    with duckdb.connect() as connection:
        for kept in kept_snapshots(root):
            attached = f"ATTACH {schema.literal(str(root / kept.current.file))} AS kept (READ_ONLY)"
            connection.execute(f"{attached}; USE kept")
            if connection.execute(_HAS_TRACES).fetchall():
                named |= {path for (path,) in connection.execute(NAMED).fetchall()}
            connection.execute("USE memory; DETACH kept")
    return named


_HAS_TRACES = """SELECT 1 FROM duckdb_tables()
WHERE database_name = 'kept' AND table_name = 'straggler_traces'"""


def _discard(files: Sequence[Path], root: Path) -> None:
    """Removes files of a snapshot that was not published, and the folders they leave empty."""
    for path in files:
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == root or any(folder.iterdir()):
                break
            folder.rmdir()


@cache
def _product_version() -> str:
    """Version of this program; read from its metadata once in a process."""
    return version("faultline")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
