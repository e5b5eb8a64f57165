"""Nodes in JSON of Slurm: scontrol and sinfo with --json, slurmrestd, one object a line."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.formats.json_records import Found, JsonRecords
from data.ingest.formats.json_text import json_value
from data.ingest.node_observation import Observation, gpus_of, known, state_words, whole
from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from data.ingest.node_observation import Observations
    from data.ingest.reader import Source
    from data.limits import Limits

NODES, GROUPS = "nodes", "sinfo"
"""Keys that hold the records: one a node, and one a group of alike nodes."""


def is_json(head: str) -> bool:
    """Whether a text begins as JSON does."""
    return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def has_groups(head: str) -> bool:
    """Whether a JSON text holds the groups of nodes that sinfo writes."""
    return re.search(rf'"{GROUPS}"\s*:', head) is not None


def take_json(source: Source, log: Observations, flat: Callable[..., Any]) -> None:
    """Takes every record of a file; `flat` makes one of an object that is no node of Slurm's.

    A document is read twice, a record at a time, for it says behind its nodes when it was made.

    Raises
    ------
    SourceError
        Where the file is no whole JSON, holds no nodes, or is an error that Slurm answered.
    """
    limits = log.options.limits
    named = None
    if _is_one_a_line(source, limits):
        found = _lines(source)
    else:
        records = JsonRecords(source, (NODES, GROUPS), limits)
        _refuse_foreign(source, records)
        slurm = _slurm(records.around)
        log.stated_at = _epoch(records.around.get("last_update"))
        named, found = known(slurm.get("cluster")), iter(records)

    def made(record: object, log: Observations) -> Iterable[Observation] | str:
        if isinstance(record, dict) and named:
            record = {"cluster_name": named, **record}
        return _made(record, log, flat)

    log.make = made
    for each in found:
        log.gathered.take(each.line_no, each.raw, each.value)


def _is_one_a_line(source: Source, limits: Limits) -> bool:
    """Whether the first line is an object of its own, and there are more lines."""
    begun, first = source.first_line()
    try:
        alone = isinstance(json_value(first, limits), dict)
    except ValueError:
        return False
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
        return alone and any(line.strip() for line in islice(stream, begun + 1, None))


def _lines(source: Source) -> Iterator[Found]:
    """The lines of a file that are not blank."""
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
        for number, line in enumerate(stream, 1):
            if text := line.rstrip("\r\n"):
                yield Found(number, text, text)


def _refuse_foreign(source: Source, records: JsonRecords) -> None:
    """Reads a document through, and refuses one that is no list of nodes.

    Raises
    ------
    SourceError
        Where it is none, or not whole.
    """
    begun, line = source.first_line()
    found = iter(records)
    first = next(found, None)
    n_more = sum(1 for _ in found)
    if records.is_cut:
        raise SourceError(f"{source.name}: is no whole JSON (it ends early): export it again")
    errors = records.around.get("errors")
    if first is None and isinstance(errors, list) and errors:
        raise SourceError(f"{source.name}: is an error of Slurm: {str(errors[0])[:200]}")
    if first is None or n_more or not isinstance(first.value, dict):
        return
    is_whole = first.line_no == begun + 1 and first.raw.startswith(line.strip())
    if is_whole and not {"name", "node", "n"} & first.value.keys():
        there = ", ".join(map(str, first.value))[:200]
        raise SourceError(
            f"{source.name}: holds no nodes, there are: {there}: give what scontrol show nodes "
            "--json or sinfo --json wrote"
        )


def _slurm(document: Mapping[str, object]) -> dict[str, Any]:
    """What the document says of the Slurm that wrote it."""
    meta = document.get("meta")
    found = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def _made(record: Any, log: Observations, flat: Callable[..., Any]) -> Iterable[Observation] | str:
    """The nodes of a record of any form."""
    if isinstance(record, RecordError):
        raise record
    if isinstance(record, str):
        try:
            record = json_value(record, log.options.limits)
        except RecordError:
            raise
        except ValueError:
            raise RecordError("no JSON") from None
    if not isinstance(record, dict):
        raise RecordError("no object")
    if isinstance(record.get("nodes"), dict):
        return _group(record, log)
    if "name" in record and {"gres", "tres", "hostname", "real_memory"} & record.keys():
        return [_node(record, log)]
    made: Iterable[Observation] | str = flat(
        {str(key): "" if value is None else str(value) for key, value in record.items()}, log
    )
    return made


def _node(record: dict[str, Any], log: Observations) -> Observation:
    """A node as scontrol, sinfo of Slurm 21 and slurmrestd write it."""
    node = known(record["name"])
    if node is None:
        raise RecordError("no node")
    gpus = gpus_of(_text(record.get("gres")), _text(record.get("tres")))
    return Observation(
        cluster=log.cluster(_text(record.get("cluster_name"))),
        node=node,
        observed_at=log.observed_at,
        gpus=gpus.n,
        gpu_model=gpus.model,
        state=state_words([*_listed(record.get("state")), *_listed(record.get("state_flags"))]),
        reason=known(record.get("reason")),
        reason_user=known(record.get("reason_set_by_user")),
        reason_at=_epoch(record.get("reason_changed_at")),
        partitions=",".join(_listed(record.get("partitions"))) or None,
        features=_features(record.get("active_features"), record.get("features")),
        topology=known(_text(record.get("topology"))),
        cpus=whole(record.get("cpus")),
        memory_mb=whole(record.get("real_memory")),
        os=known(_text(record.get("operating_system"))),
        boot_at=_epoch(record.get("boot_time")),
    )


def _group(record: dict[str, Any], log: Observations) -> list[Observation] | str:
    """The nodes of a record of `sinfo --json` since Slurm 22.05: alike nodes of one partition."""
    names = record["nodes"].get("nodes")
    nodes = [name for text in _listed(names) for name in expand(text)]
    if not nodes:
        return "no_nodes"
    part = {key: found if isinstance(found := record.get(key), dict) else {} for key in _PARTS}
    partition = part["partition"].get("name") or part["partition"].get("partition")
    gpus = gpus_of(_text(part["gres"].get("total")), None)
    row = Observation(
        cluster=log.cluster(_text(record.get("cluster")) or _text(record.get("cluster_name"))),
        node="",
        observed_at=log.observed_at,
        gpus=gpus.n,
        gpu_model=gpus.model,
        state=state_words(_listed(part["node"].get("state"))),
        reason=known(part["reason"].get("description")),
        reason_user=known(_text(part["reason"].get("user"))),
        reason_at=_epoch(part["reason"].get("time")),
        partitions=known(_text(partition)),
        features=_features(part["features"].get("active"), part["features"].get("total")),
        cpus=whole(part["cpus"].get("maximum")),
        memory_mb=whole(part["memory"].get("maximum")),
    )
    return [row._replace(node=node) for node in nodes]


_PARTS = ("node", "gres", "reason", "partition", "features", "cpus", "memory")


def _epoch(value: object) -> datetime | None:
    """A time in seconds since 1970; 0 is never."""
    seconds = whole(value)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _listed(value: object) -> list[str]:
    """Texts of a list, or of what newer versions write as one and older ones as text."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str) and item]


def _features(*values: object) -> str | None:
    """The first features that are stated."""
    return next((text for value in values if (text := ",".join(_listed(value)))), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
