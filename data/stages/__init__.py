"""Derived tables and columns, each set by a stage: a module or package of this folder.

A stage declares what it rests on; the order of stages and which of them run follow from that.

READS
    Tables it reads. The name of a table means its columns that records bring; a column that a
    stage sets is named by itself: `jobs.attempt`.
WRITES
    Tables it fills, and columns that it sets in tables of others (`jobs.attempt`).
CARRIES
    Those of its tables whose rows it keeps or reads from its last run; all others are emptied
    before it runs.
CONCERNS
    Of tables that it reads a query on `touched_<table>` each: where only few rows came or went
    and the query finds none of them, the stage is carried over.
INPUTS
    What it rests on besides records: a part of site.toml (`site.attribution`), `annotations`,
    `decided` (causes that people gave attempts), `models`, the code of a module or package
    (`analytics.failures`). Its own code always counts.
NEEDS
    Tables of which one has rows wherever there is anything to do; none where it always runs.
ON_DEMAND
    True where an ingest does not run it: it only empties what is no longer true.
run(connection, context)
    Does it, inside a transaction; returns notes to keep in `stage_runs`, a JSON object, or None.

A stage may keep temporary tables to itself; no other stage reads them. What a run from nothing
gives is what a stage means: one that brings its tables up to date by rows (`Context.by_row`) must
end with the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from data.tables import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import duckdb

    from data.said import Said
    from data.site import Site

SMALL_ROWS = 50_000
"""Up to so many rows in all one thread is the quickest: more of them cost more than they do."""
_CODE = (".py", ".toml", ".csv")


@dataclass(frozen=True)
class Context:
    """What a stage may use besides the tables."""

    root: Path
    """Folder of the store, for trained models."""
    site: Site
    said: Said
    progress: Callable[[str], None] = lambda message: None
    filled: set[str] = field(default_factory=set)
    """Tables that have rows now: of others there is nothing to ask."""
    changed: frozenset[str] | None = None
    """What of its READS changed since the stage ran; None where more than that did."""
    touched: frozenset[str] = frozenset()
    """Tables of which every row that came or went stands in `touched_<table>`."""

    def by_row(self, *tables: str, besides: Collection[str] = ()) -> bool:
        """Whether all that changed for a stage are rows of these tables, and which is known.

        What stands in `besides` may have changed as it likes.
        """
        return self.changed is not None and self.changed - {*besides} <= self.touched & {*tables}


@dataclass(frozen=True)
class Stage:
    """What a module of this folder declares."""

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    carries: frozenset[str]
    concerns: Mapping[str, str]
    inputs: tuple[str, ...]
    needs: frozenset[str]
    on_demand: bool
    run: Callable[[duckdb.DuckDBPyConnection, Context], dict[str, Any] | None]


@cache
def stages() -> tuple[Stage, ...]:
    """All stages, each after those that write what it reads."""
    known = {name: _stage(name) for _, name, _ in sorted(iter_modules(__path__), key=str)}
    before = {
        name: sorted(
            other.name
            for other in known.values()
            if other.name != name and other.writes & one.reads
        )
        for name, one in known.items()
    }
    return tuple(known[name] for name in TopologicalSorter(before).static_order())


def _stage(name: str) -> Stage:
    """The stage of a module."""
    module = import_module(f"{__name__}.{name}")
    return Stage(
        name,
        reads=frozenset(module.READS),
        writes=frozenset(module.WRITES),
        carries=frozenset(getattr(module, "CARRIES", ())),
        concerns=getattr(module, "CONCERNS", {}),
        inputs=tuple(getattr(module, "INPUTS", ())),
        needs=frozenset(getattr(module, "NEEDS", ())),
        on_demand=getattr(module, "ON_DEMAND", False),
        run=module.run,
    )


def fingerprint(stage: Stage, context: Context) -> str:
    """Hash of what a stage rests on besides records."""
    values = [code_hash(f"{__name__}.{stage.name}")]
    values += [repr(_input(name, context)) for name in stage.inputs]
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:16]


def _input(name: str, context: Context) -> object:
    """Value of an input; two that differ have different representations."""
    if name == "annotations":
        return context.said.version
    if name == "decided":
        return context.said.decided()
    if name == "models":
        from data.models import current_model

        return current_model(context.root)
    package, _, part = name.partition(".")
    return getattr(context.site, part) if package == "site" else code_hash(name)


@cache
def code_hash(name: str) -> str:
    """Hash of the code of a module, or of all code and tables of a package."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module is named {name!r}", name=name)
    origin = Path(spec.origin)
    files = [origin]
    if origin.name == "__init__.py":
        files = sorted(path for path in origin.parent.rglob("*") if path.suffix in _CODE)
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(origin.parent)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def all_on_demand_hold(recorded: Mapping[str, str], context: Context) -> bool:
    """Whether what is derived on demand is true of now; `recorded` are the rows of `stage_runs`."""
    return all(
        recorded.get(stage.name) == fingerprint(stage, context)
        for stage in stages()
        if stage.on_demand
    )


def derive(
    connection: duckdb.DuckDBPyConnection,
    context: Context,
    changed: Collection[str],
    *,
    on_demand: bool = False,
    touched: Collection[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> list[str]:
    """Runs the stages of which something changed; their names, in the order in which they ran.

    Parameters
    ----------
    connection : DuckDBPyConnection
        The snapshot under construction, outside of a transaction.
    context : Context
        What the stages may use.
    changed : collection of str
        Tables that got other rows since the stages ran last.
    on_demand : bool
        Runs those on demand too, and of the others only those that read what has changed since:
        what people said meanwhile waits for the next ingest. Without it, those on demand that
        are no longer true are emptied.
    touched : collection of str
        Those of them of which every row that came or went stands in `touched_<table>`.
    sizes : mapping
        Rows of each table now; counted where it is not given.
    """
    sizes = rows_of(connection) if sizes is None else sizes
    few = sum(sizes.values()) <= SMALL_ROWS
    connection.execute("SET threads = 1" if few else "RESET threads")
    recorded = dict(connection.execute("SELECT stage, fingerprint FROM stage_runs").fetchall())
    changed, filled = set(changed), {table for table, n_rows in sizes.items() if n_rows}
    context = replace(context, filled=filled)
    ran: list[str] = []
    records: list[tuple[str, str | None, str | None]] = []
    connection.execute("BEGIN")
    for stage in stages():
        key, waits = fingerprint(stage, context), stage.on_demand and not on_demand
        is_new = recorded.get(stage.name) != key and (stage.on_demand or not on_demand)
        of_reads = frozenset(changed & stage.reads)
        if not is_new and not _concern(connection, stage, of_reads, touched):
            continue
        written, notes = stage.writes & sizes.keys(), None
        for table in sorted((written if waits else written - stage.carries) & filled):
            connection.execute(f"DELETE FROM {table}")
            filled.discard(table)
        if not waits and (not stage.needs or filled & (stage.needs | stage.carries)):
            known = of_reads if recorded.get(stage.name) == key else None
            own = replace(context, changed=known, touched=frozenset(touched))
            notes = stage.run(connection, own)
            ran.append(stage.name)
            filled |= _filled(connection, sorted(written))
        changed |= written if waits else stage.writes
        records.append((stage.name, None if waits else key, json.dumps(notes) if notes else None))
    _record(connection, records)
    connection.execute("COMMIT")
    return ran


def _concern(
    connection: duckdb.DuckDBPyConnection,
    stage: Stage,
    changed: Collection[str],
    touched: Collection[str],
) -> bool:
    """Whether a stage must run because of what changed of its READS."""
    return any(
        table not in stage.concerns
        or table not in touched
        or connection.execute(f"{stage.concerns[table]} LIMIT 1").fetchone() is not None
        for table in changed
    )


_SIZES = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables())
"""Rows of each table; a third of the time of DuckDB's own list of tables."""


def rows_of(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many rows each table has."""
    return dict(connection.execute(_SIZES).fetchall())


def _filled(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> set[str]:
    """Those of some tables that have a row."""
    asked = " UNION ALL ".join(f"(SELECT '{table}' FROM {table} LIMIT 1)" for table in tables)
    return {table for (table,) in connection.execute(asked).fetchall()} if asked else set()


def _record(
    connection: duckdb.DuckDBPyConnection, records: list[tuple[str, str | None, str | None]]
) -> None:
    """Writes which stages hold now, and for which inputs; one without a fingerprint holds not."""
    if not records:
        return
    names, keys, notes = (list(column) for column in zip(*records, strict=True))
    connection.execute("DELETE FROM stage_runs WHERE list_contains(?, stage)", [names])
    connection.execute(
        """INSERT INTO stage_runs FROM (
             SELECT unnest(CAST($names AS VARCHAR[])), unnest(CAST($keys AS VARCHAR[])) AS key,
               unnest(CAST($notes AS VARCHAR[]))) WHERE key IS NOT NULL""",
        {"names": names, "keys": keys, "notes": notes},
    )
