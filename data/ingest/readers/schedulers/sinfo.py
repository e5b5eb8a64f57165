"""Slurm's nodes as sinfo lists them: columns under a header, --json, or one JSON object a line."""

from __future__ import annotations

import json
import re
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.node_observation import (
    WITHOUT_STATE,
    Gpus,
    Observation,
    Observations,
    gpus_of_gres,
    known,
    state_words,
    whole,
)
from data.ingest.reader import Batch, Options, Reader, RecordError, Source, refuse_wide_header
from data.ingest.readers.schedulers.slurm_node_json import has_groups, is_json, take_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb


_COLUMN = {
    name: column
    for column, names in {
        "node": "nodelist hostnames nodehost nodename node n",
        "gres": "gres g",
        "state": "state statelong statecompact s",
        "partition": "partition partitionname p",
        "cpus": "cpus c",
        "memory": "memory mem m",
        "features": "active_features avail_features features features_act f",
        "reason": "reason e",
        "user": "user",
        "timestamp": "timestamp",
        "cluster": "cluster",
    }.items()
    for name in names.split()
}
"""What sinfo heads a column with, or a site calls it in JSON -> what it is here."""
_DATE = "%a %b %d %H:%M:%S %Y"
"""How `sinfo -l` says when it ran."""


class _Layout(NamedTuple):
    """How the fields of a line are told apart."""

    columns: tuple[str, ...]
    delimiter: str | None
    """None for columns of a width."""
    starts: tuple[int, ...]
    """Where columns of a width begin."""
    header: str
    """The line that names them; empty where none does."""

    def record(self, line: str) -> dict[str, str]:
        """The known columns of a line; of two of one name the first.

        Raises
        ------
        RecordError
            Where its fields do not fit.
        """
        fields = line.split(self.delimiter)
        if self.delimiter and len(fields) == len(self.columns) + 1 and not fields[-1].strip():
            fields.pop()
        if len(fields) != len(self.columns):
            fields = self._cut(line)
        record: dict[str, str] = {}
        for name, field in zip(self.columns, fields, strict=True):
            record.setdefault(_COLUMN.get(name, name), field.strip())
        return record

    def _cut(self, line: str) -> list[str]:
        """Fields of a line in which a reason holds blanks or delimiters."""
        n_columns = len(self.columns)
        fields: list[str] = []
        if self.columns[-1:] == ("reason",):
            fields = line.split(self.delimiter, n_columns - 1)
        elif self.delimiter is None and len(self.starts) == n_columns:
            ends = (*self.starts[1:], len(line))
            if all(line[i - 1 : i].isspace() for i in self.starts[1:]):
                fields = [line[i:end] for i, end in zip(self.starts, ends, strict=True)]
        if len(fields) != n_columns:
            raise RecordError("number of fields differs from the header")
        return fields


def sniff(head: str) -> bool:
    """Whether it begins with sinfo's header, its JSON, or a JSON object of a node and its state."""
    if is_json(head):
        return has_groups(head) or _is_flat(head.lstrip().partition("\n")[0])
    lines = [line for line in head.splitlines() if line.strip()][:2]
    return any(_is_header(line) for line in lines if _date(lines[0]) or line is lines[0])


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What it shows of each node, as rows of `node_inventory`.

    Raises
    ------
    SourceError
        Where the file is empty, has no column of nodes, or its JSON is not whole.
    """
    log = Observations(source, options, READER.name, _made)
    first = source.first_line()[1]
    if is_json(first):
        take_json(source, log, flat=_made)
        return log.batch()
    with source.path.open(encoding="utf-8-sig", newline="\n") as stream:
        lines = enumerate((line.rstrip("\r\n") for line in stream), 1)
        layout, begun = _layout(source, log, lines)
        for number, line in chain(begun, lines):
            if not line.strip():
                continue
            if line == layout.header or _is_date(line, log):
                log.gathered.skipped["header"] += 1
                continue
            try:
                record = layout.record(line)
            except RecordError as error:
                log.gathered.rejected.reject(number, str(error), line)
                continue
            log.gathered.take(number, line, record)
    return log.batch()


def _layout(
    source: Source, log: Observations, lines: Iterator[tuple[int, str]]
) -> tuple[_Layout, list[tuple[int, str]]]:
    """How lines are divided, and the first line where that is a record and no header."""
    options = log.options
    number, first = next(((n, line) for n, line in lines if line.strip()), (0, ""))
    if _is_date(first, log):
        number, first = next(((n, line) for n, line in lines if line.strip()), (0, ""))
    if not first:
        raise SourceError(f"{source.name}: is empty: give the output of sinfo -N -o '%N|%G|%T|%P'")
    delimiter = options.delimiter or ("|" if "|" in first else None)
    if options.columns is not None:
        columns = _names(options.columns)
        starts = tuple(match.start() for match in re.finditer(r"\S+", first))
        layout = _Layout(columns, delimiter, starts[: len(columns)], "")
        begun = [] if _is_header(first) else [(number, first)]
    else:
        words = first.split(delimiter)
        refuse_wide_header(source, len(words), options.limits)
        starts = tuple(match.start() for match in re.finditer(r"\S+", first))
        layout, begun = _Layout(_names(words), delimiter, starts, first), []
    if "node" not in {_COLUMN.get(name, name) for name in layout.columns}:
        there = ", ".join(layout.columns)[:200]
        raise SourceError(
            f"{source.name}: no column of nodes (NODELIST), there are: {there}: give the output of "
            "sinfo -N -o '%N|%G|%T|%P' with its header, or pass --columns"
        )
    return layout, begun


def _made(record: Mapping[str, str], log: Observations) -> list[Observation] | str:
    """The nodes of a record; sinfo repeats one for each of its partitions."""
    record = {_COLUMN.get(name.lower(), name.lower()): value for name, value in record.items()}
    nodes = expand(record.get("node", ""))
    if not nodes:
        return "no_nodes"
    cluster = log.cluster(record.get("cluster"))
    gpus = gpus_of_gres(record["gres"]) if "gres" in record else Gpus(None)
    reason = known(record.get("reason"))
    row = Observation(
        cluster=cluster,
        node="",
        observed_at=log.observed_at,
        gpus=gpus.n,
        gpu_model=gpus.model,
        state=state_words([record.get("state", "")]),
        reason=reason,
        reason_user=known(re.sub(r"(?<=.)\(\d+\)$", "", record.get("user", ""))),
        reason_at=log.time(record.get("timestamp"), cluster) if reason else None,
        partitions=known(record.get("partition", "").rstrip("*")),
        features=known(record.get("features")),
        cpus=whole(record.get("cpus")),
        memory_mb=whole(record.get("memory")),
    )
    return [row._replace(node=node) for node in nodes]


def _date(line: str) -> datetime | None:
    """When sinfo ran, of the line that says it."""
    try:
        return datetime.strptime(line.strip(), _DATE)  # noqa: DTZ007 - in the cluster's zone
    except ValueError:
        return None


def _is_date(line: str, log: Observations) -> bool:
    """Whether a line says when sinfo ran, which then holds for what follows."""
    made_at = _date(line)
    if made_at is not None:
        log.stated_at = log.clock.utc(made_at, log.cluster(None))
    return made_at is not None


def _names(words: Sequence[str]) -> tuple[str, ...]:
    """Names of columns as sinfo heads them, in lower case: `NODES(A/I)` is not `NODES`."""
    return tuple(word.strip().lower() for word in words)


def _is_header(line: str) -> bool:
    """Whether a line names columns as sinfo does, and squeue does not."""
    words = {word.strip() for word in line.replace("|", " ").split()}
    named = {"NODELIST", "HOSTNAMES"} & words
    told = {"STATE", "GRES", "PARTITION", "AVAIL_FEATURES", "ACTIVE_FEATURES", "REASON"} & words
    return bool(named and told and "JOBID" not in words)


def _is_flat(line: str) -> bool:
    """Whether a line is a JSON object of a node and its state or resources."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(record, dict):
        return False
    names = [_COLUMN.get(str(name).lower()) for name in record]
    return "node" in names and bool({"state", "gres"} & {*names}) and "partition" in names


READER = Reader(
    "sinfo",
    "GPUs, state and features of nodes",
    export="sinfo -N -o '%N|%G|%T|%P|%c|%m|%f|%E|%H|%u' > sinfo.txt, sinfo --json",
    reads=(
        "nodes as of now: `sinfo -N -o '%N\\|%G\\|%T\\|%P\\|%c\\|%m\\|%f\\|%E\\|%H\\|%u'"
        " > sinfo.txt` (the bars without their backslashes), other columns under sinfo's header, "
        "`sinfo --json`, or one JSON object a line"
    ),
    script="sinfo --json > sinfo.json",
    example="sinfo.json",
    advice=(
        "Where only `sinfo` may be called. A node stands once for each of its partitions "
        "and counts once."
    ),
    fills=("node_inventory",),
    place=4,
    options=("columns", "delimiter", "at"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    lacks=WITHOUT_STATE,
)
