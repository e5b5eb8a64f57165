"""A site's own list of its nodes: CSV or Parquet, one row a node, by time where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.hostlist import expand
from data.ingest.formats.header import header_of
from data.ingest.formats.tabular import opened_table
from data.ingest.node_observation import WITHOUT_STATE, Observation, Observations, state_words
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.cells import cluster_of, column_mapping, count_of, is_blank, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

    from data.ingest.readers.tables.cells import ColumnMapping


COLUMNS = (
    "node", "gpus", "cluster", "observed_at", "gpu_model", "state", "reason", "partitions",
    "features", "rack", "topology", "cpus", "memory_mb", "os", "driver", "boot_at",
)  # fmt: skip
_TEXTS = ("gpu_model", "reason", "partitions", "features", "rack", "topology", "os", "driver")
GENERAL = ("cluster", "timezone", "delimiter")
"""What a mapping may say of a whole file."""


def sniff(head: str) -> bool:
    """Whether the first line names the columns node and gpus."""
    header = header_of(head)
    return {"node", "gpus"} <= header


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What it says of each node, as rows of `node_inventory`.

    Raises
    ------
    SourceError
        Where the file has no header or no column of nodes, or the mapping holds a mistake.
    """
    mapping = column_mapping(options.mapping, COLUMNS, GENERAL)
    general = mapping.general
    delimiter = options.delimiter or general.get("delimiter", ",")
    header, records = opened_table(source, delimiter, options.columns, options.limits)
    columns = mapping.of_file(source, header, COLUMNS, needed=("node",))
    log = Observations(
        source, options, READER.name, _made_by(columns, mapping), general.get("timezone")
    )
    for record in records:
        log.gathered.take(record.line_no, record.raw.rstrip("\r\n"), record.values)
    return log.batch()


def _made_by(
    columns: Mapping[str, str], mapping: ColumnMapping
) -> Callable[[dict[str, Any] | None, Observations], Sequence[Observation] | str]:
    """What makes the nodes of a record."""

    def made(values: dict[str, Any] | None, log: Observations) -> Sequence[Observation] | str:
        if values is None:
            raise RecordError("number of fields differs from the header")
        found = dict.fromkeys(COLUMNS) | {ours: values[column] for ours, column in columns.items()}
        if is_blank(values):
            return "blank"
        nodes = expand(str(found["node"] or ""))
        if not nodes:
            raise RecordError("no node")
        cluster = cluster_of(found["cluster"], log.options, mapping.general.get("cluster"))
        observed_at = mapping.time(found["observed_at"], cluster, log.clock)
        row = Observation(
            cluster=cluster,
            node="",
            observed_at=log.observed_at if observed_at is None else observed_at,
            gpus=count_of(found["gpus"], "gpus"),
            state=state_words([text_of(found["state"]) or ""]),
            cpus=count_of(found["cpus"], "cpus"),
            memory_mb=count_of(found["memory_mb"], "memory_mb"),
            boot_at=mapping.time(found["boot_at"], cluster, log.clock),
        )
        texts: dict[str, Any] = {name: text_of(found[name]) for name in _TEXTS}
        row = row._replace(**texts)
        return [row._replace(node=node) for node in nodes]

    return made


READER = Reader(
    "node-inventory",
    "a list of nodes as CSV or Parquet",
    export=(
        "node, gpus and, where known, rack, gpu_model, observed_at, ...; other names of "
        "columns by --mapping TOML"
    ),
    reads=(
        "a list of nodes of your own, CSV or Parquet: `node`, `gpus` and what else is "
        "known (`rack`, `gpu_model`, `observed_at`, ...); other names by `--mapping TOML`"
    ),
    fills=("node_inventory",),
    place=5,
    options=("columns", "delimiter", "at", "mapping"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    lacks=WITHOUT_STATE,
)
