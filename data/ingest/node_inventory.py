"""A site's own list of its nodes: CSV or Parquet, one row a node, by time where it says so."""

from __future__ import annotations

import csv
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.failure_mapping import MAX_BYTES
from data.ingest.node_observation import Observation, Observations, known, state_words, whole
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.tabular import opened_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

NAME = "node-inventory"
HELP = (
    "a list of nodes as CSV or Parquet: node, gpus and, where known, rack, gpu_model, observed_at, "
    "...; other names of columns by --mapping TOML"
)
PLACE = 5

_COLUMNS = (
    "node", "gpus", "cluster", "observed_at", "gpu_model", "state", "reason", "partitions",
    "features", "rack", "topology", "cpus", "memory_mb", "os", "driver", "boot_at",
)  # fmt: skip
_TEXTS = ("gpu_model", "reason", "partitions", "features", "rack", "topology", "os", "driver")
_GENERAL = ("cluster", "timezone", "delimiter")


def sniff(head: str) -> bool:
    """Whether the first line names the columns node and gpus."""
    header = {field.strip() for row in csv.reader(head.splitlines()[:1]) for field in row}
    return {"node", "gpus"} <= header


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What it says of each node, as rows of `node_inventory`.

    Raises
    ------
    SourceError
        Where the file has no header or no column of nodes, or the mapping holds a mistake.
    """
    named, general = _mapping(options.mapping)
    delimiter = options.delimiter or general.get("delimiter", ",")
    header, records = opened_table(source, delimiter, options.columns, options.limits)
    columns = {name: named.get(name, name) for name in _COLUMNS}
    missing = [columns[name] for name in ("node", *named) if columns[name] not in header]
    if missing:
        raise SourceError(
            f"{source.name}: no column {missing[0]!r}, there are: {', '.join(header)[:200]}: name "
            "them node, gpus, ... or pass --mapping with a TOML file that says which is which"
        )
    log = Observations(
        source, options, NAME, _made_by(columns, general.get("cluster")), general.get("timezone")
    )
    for record in records:
        log.gathered.take(record.line_no, record.raw.rstrip("\r\n"), record.values)
    return log.batch()


def _made_by(
    columns: Mapping[str, str], of_cluster: str | None
) -> Callable[[dict[str, Any] | None, Observations], Sequence[Observation] | str]:
    """What makes the nodes of a record."""

    def made(values: dict[str, Any] | None, log: Observations) -> Sequence[Observation] | str:
        if values is None:
            raise RecordError("number of fields differs from the header")
        found = {name: values.get(column) for name, column in columns.items()}
        if all(value is None or str(value).strip() == "" for value in values.values()):
            return "blank"
        nodes = expand(str(found["node"] or ""))
        if not nodes:
            raise RecordError("no node")
        cluster = log.cluster(known(str(found["cluster"] or "")) or of_cluster)
        observed_at = _time(found["observed_at"], cluster, log)
        row = Observation(
            cluster=cluster,
            node="",
            observed_at=log.observed_at if observed_at is None else observed_at,
            gpus=_count(found["gpus"], "gpus"),
            state=state_words([known(str(found["state"] or "")) or ""]),
            cpus=_count(found["cpus"], "cpus"),
            memory_mb=_count(found["memory_mb"], "memory_mb"),
            boot_at=_time(found["boot_at"], cluster, log),
        )
        texts: dict[str, Any] = {name: known(str(found[name] or "")) for name in _TEXTS}
        row = row._replace(**texts)
        return [row._replace(node=node) for node in nodes]

    return made


def _count(value: object, name: str) -> int | None:
    """A count; an empty cell is unknown, anything else that is no count a fault."""
    if value is None or value != value or known(str(value)) is None:
        return None
    number = float(value) if isinstance(value, float) else None
    count = whole(int(number) if number is not None and number.is_integer() else value)
    if count is None:
        raise RecordError(f"{name} is no whole number")
    return count


def _time(value: object, cluster: str, log: Observations) -> datetime | None:
    """A time: one of Parquet, ISO text, or seconds since 1970; None where the cell is empty."""
    if value is None or value != value or known(str(value)) is None:
        return None
    if (seconds := whole(value)) is not None:
        return datetime.fromtimestamp(seconds, UTC)
    try:
        local = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise RecordError("impossible time") from None
    return log.clock.utc(local, cluster)


def _mapping(wanted: object) -> tuple[dict[str, str], dict[str, str]]:
    """Our name of a column -> the file's, and what else a TOML mapping says of the file.

    Raises
    ------
    SourceError
        Where it cannot be read, or holds a key or value that is none.
    """
    if wanted is None:
        return {}, {}
    if not isinstance(wanted, str):
        raise SourceError("the mapping is one of a failure log: give one of node-inventory")
    try:
        with Path(wanted).open("rb") as stream:
            document = tomllib.loads(stream.read(MAX_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{wanted}: is no TOML file that can be read ({error})") from None
    columns = document.pop("columns", {})
    for place, values, names in (("[columns]", columns, _COLUMNS), ("the top", document, _GENERAL)):
        if not isinstance(values, dict):
            raise SourceError(f"{wanted}: columns must be a section: write [columns]")
        for key, value in values.items():
            if key not in names:
                known_are = ", ".join(names)
                raise SourceError(f"{wanted}: unknown key {key!r} at {place}, known: {known_are}")
            if not isinstance(value, str) or not value:
                raise SourceError(f"{wanted}: {key} at {place} must be text, found {value!r}")
    return columns, document
