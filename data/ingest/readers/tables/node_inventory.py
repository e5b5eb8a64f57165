"""A site's own list of its nodes: CSV or Parquet, one row a node, by time where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.ingest.node_observation import WITHOUT_STATE, Observation, Observations, state_words
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.tables.mapped_table import HOST_NAMES, Column, Layout, Table

if TYPE_CHECKING:
    import duckdb

    from data.ingest.readers.tables.mapped_table import Row


LAYOUT = Layout(
    "node_inventory",
    (
        Column("node", "nodes", needed=True, also=HOST_NAMES),
        Column("gpus", "count", also=("ngpus", "gpucount", "numgpus")),
        Column("cluster"),
        Column("observed_at", "time", also=("observed", "date", "time")),
        Column("gpu_model"),
        Column("state", also=("status", "outcome", "result")),
        Column("reason"),
        Column("partitions"),
        Column("features"),
        Column("rack", also=("cabinet",)),
        Column("topology"),
        Column("cpus", "count"),
        Column("memory_mb", "count"),
        Column("os"),
        Column("driver"),
        Column("boot_at", "time"),
    ),
    known_by=frozenset({"node", "gpus"}),
)


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What it says of each node, as rows of `node_inventory`.

    Raises
    ------
    SourceError
        Where the file has no header or no column of nodes, or the mapping holds a mistake.
    """
    table = Table(source, options, LAYOUT)
    log = Observations(source, options, READER.name, table.making(_made), table.zone)
    table.read_into(log.gathered)
    return log.batch()


def _made(row: Row, log: Observations) -> list[Observation]:
    """The nodes of a record."""
    stated = {
        "cluster": row.cluster,
        "observed_at": row.values["observed_at"] or log.observed_at,
        "state": state_words([row.values["state"] or ""]),
    }
    return [Observation(**row.values | stated | {"node": node}) for node in row.values["node"]]


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
    script="cat nodes.csv  # node,gpus,gpu_model,rack,observed_at",
    example="nodes.csv --at {start}",
    fills=("node_inventory",),
    place=5,
    options=("columns", "delimiter", "at", "mapping"),
    cluster_by_host=True,
    layout=LAYOUT,
    sniff=LAYOUT.sniff,
    read=read,
    lacks=WITHOUT_STATE,
)
