"""Slurm's nodes: `scontrol show node` text or JSON, and what slurmrestd answers for nodes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.node_observation import (
    WITHOUT_STATE,
    Observation,
    Observations,
    gpus_of,
    known,
    state_words,
    whole,
)
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.slurm_node_json import has_groups, is_json, take_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb


_KEYS = (
    "NodeName Arch CoresPerSocket CPUAlloc CPUEfctv CPUErr CPUTot CPULoad AvailableFeatures "
    "ActiveFeatures Gres GresDrain GresUsed NodeAddr NodeHostName Port Version OS RealMemory "
    "AllocMem FreeMem Sockets Boards CoreSpecCount CPUSpecList MemSpecLimit State ThreadsPerCore "
    "TmpDisk Weight Owner MCS_label Partitions BootTime SlurmdStartTime LastBusyTime "
    "ResumeAfterTime CfgTRES AllocTRES CapWatts CurrentWatts LowestJoules ConsumedJoules AveWatts "
    "ExtSensorsJoules ExtSensorsWatts ExtSensorsTemp ExtSensors Reason Comment Extra InstanceId "
    "InstanceType Topology GpuSpec ReservationName NextState Power RestrictedCoresPerGPU "
    "CPUs Feature Features Procs SocketsPerBoard ParamsFile CertToken"
)
"""What scontrol prints of a node (print_node of Slurm 20.11 to 25.05), and slurm.conf states."""
_FIELD = re.compile(rf"(?:^|(?<=\s))({'|'.join(_KEYS.split())})=")
_MADE_AT = re.compile(
    r"\s*(?:last_update_time=|Node data as of )(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b"
)
_GIVEN_BY = re.compile(r"\s*\[([^@\[\]]*)@(\d{4}-[^\]]*)\]")
_FEATURES = ("ActiveFeatures", "AvailableFeatures", "Features", "Feature")
_FREE_TEXT = frozenset({"Reason", "Comment", "Extra"})


def sniff(head: str) -> bool:
    """Whether it begins with a node of scontrol's, as text or as JSON."""
    if is_json(head):
        of_nodes = '"real_memory"' in head or '"slurmd_start_time"' in head
        return of_nodes and not has_groups(head)
    lines = (line for line in head.splitlines() if line.strip() and not _MADE_AT.match(line))
    return next(lines, "").lstrip().startswith("NodeName=")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """What it shows of each node, as rows of `node_inventory`.

    Raises
    ------
    SourceError
        Where nothing in it is a node, or its JSON is not whole.
    """
    log = Observations(source, options, READER.name, _made)
    first = source.first_line()[1]
    if is_json(first):
        take_json(source, log, flat=_no_node)
        return log.batch()
    with source.path.open(encoding="utf-8-sig", newline="\n") as stream:
        for number, text in _blocks(stream, log):
            log.gathered.take(number, text, text)
    if not log.gathered.n_kept and not log.gathered.rejected:
        raise SourceError(f"{source.name}: names no node: give the output of scontrol show node")
    return log.batch()


def _no_node(*_: object) -> str:
    raise RecordError("no node of Slurm")


def _blocks(lines: Iterable[str], log: Observations) -> Iterator[tuple[int, str]]:
    """The lines of each node with the number of the first; a node begins at its NodeName."""
    begun, block = 0, ""
    for number, line in enumerate(lines, 1):
        made_at = _MADE_AT.match(line)
        if made_at is not None:
            if block:
                yield begun, block
            begun, block = number, ""
            local = datetime.fromisoformat(made_at[1])
            log.stated_at = log.clock.utc(local, log.cluster(None))
        elif line.lstrip().startswith("NodeName="):
            if block:
                yield begun, block
            begun, block = number, line
        elif block and line[:1].isspace() and line.strip():
            block += line
        elif line.strip() and not line.lstrip().startswith("#"):
            log.gathered.rejected.reject(number, "belongs to no node", line.rstrip("\r\n"))
    if block:
        yield begun, block


def _made(text: str, log: Observations) -> list[Observation] | str:
    """The nodes of a block; slurm.conf names several in one."""
    fields = _fields(text)
    name = known(fields.get("NodeName"))
    if name is None:
        raise RecordError("no node")
    if name == "DEFAULT":
        return "default"
    if len(fields) == 1:
        raise RecordError("nothing but the node's name")
    cluster = log.cluster(None)

    def time(key: str) -> datetime | None:
        return log.time(fields.get(key), cluster)

    gpus = gpus_of(fields.get("Gres"), fields.get("CfgTRES"))
    reason, user, reason_at = _reason(fields.get("Reason"), cluster, log)
    features = (known(fields.get(name)) for name in _FEATURES)
    row = Observation(
        cluster=cluster,
        node="",
        observed_at=log.observed_at,
        gpus=gpus.n,
        gpu_model=gpus.model,
        state=state_words([fields.get("State", "")]),
        reason=reason,
        reason_user=user,
        reason_at=reason_at,
        partitions=known(fields.get("Partitions")),
        features=next((each for each in features if each), None),
        topology=known(fields.get("Topology")),
        cpus=whole(fields.get("CPUTot", fields.get("CPUs"))),
        memory_mb=whole(fields.get("RealMemory")),
        os=known(fields.get("OS")),
        boot_at=time("BootTime"),
    )
    return [row._replace(node=node) for node in expand(name)]


def _fields(text: str) -> dict[str, str]:
    """Keys and values of a block; a free text goes to the end of its line, whatever it holds."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        found = list(_FIELD.finditer(line))
        for place, match in enumerate(found):
            end = found[place + 1].start() if place + 1 < len(found) else len(line)
            free = match[1] in _FREE_TEXT
            fields.setdefault(match[1], line[match.end() : len(line) if free else end].strip())
            if free:
                break
    return fields


def _reason(
    text: str | None, cluster: str, log: Observations
) -> tuple[str | None, str | None, datetime | None]:
    """Reason, who gave it, and when: `Not responding [root@2024-03-01T10:00:00]`."""
    given = _GIVEN_BY.search(text or "")
    if given is None:
        return known(text), None, None
    user, at = given[1], log.time(given[2], cluster)
    return known((text or "")[: given.start()]), known(user), at


READER = Reader(
    "scontrol-nodes",
    "GPUs, state and features of nodes",
    export=(
        "scontrol show node > nodes.txt, also --json, and what slurmrestd answers for "
        "/slurm/v0.0.41/nodes"
    ),
    reads=(
        "nodes, their GPUs, state, reason and features: `scontrol show node > nodes.txt` "
        "(with `-o` or `--json` too) and `curl --unix-socket SOCKET "
        "http://localhost/slurm/v0.0.41/nodes > nodes.json` of slurmrestd"
    ),
    script="scontrol show node > nodes.txt",
    example="nodes.txt",
    advice=(
        "Without a list of nodes a node has the GPUs that jobs on it show, and idle nodes "
        "are unknown. It holds from now on: export it again when nodes change."
    ),
    fills=("node_inventory",),
    place=3,
    options=("at",),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    lacks=WITHOUT_STATE,
)
