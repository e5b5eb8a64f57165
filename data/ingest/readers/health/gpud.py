"""Events and states of gpud's components, as its API on a node answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.formats.json_text import members
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.readers.logs.kernel_line import pci_address
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    import duckdb


_LISTS = ("events", "states", "info")
_KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "severity", "xid", "sxid", "message")
_OF_TYPE = {"Info": "info", "Warning": "warning", "Critical": "warning", "Fatal": "critical"}
"""Type of an event -> severity; gpud calls critical what is no fault of hardware."""
_OF_HEALTH = {"Unhealthy": "warning", "Degraded": "warning"}
_REPAIRS = frozenset(("REBOOT_SYSTEM", "HARDWARE_INSPECTION"))
_WELL = frozenset(("Healthy", "Initializing"))
_CODE = re.compile(
    r"(?P<switch>S?)XID (?P<code>\d{1,5})\b(?: \(.{0,200}?\))? detected on (?:GPU )?"
    r"(?:PCI:)?(?P<gpu>[0-9a-fA-F]{4,8}(?::[0-9a-fA-F]{2}){2})?"
)
_UNDATED = "states without a time: taken as of {at:%Y-%m-%d %H:%M:%S} UTC, {why}: {n:,}"


def sniff(head: str) -> bool:
    """Whether the first object is a component of gpud with its events or states."""
    at = len(head) - len(head.lstrip("\ufeff \t\r\n["))
    if head[at : at + 1] != "{":
        return False
    keys = {key for key, _ in members(head, at)}
    return "component" in keys and not keys.isdisjoint(_LISTS) and "apiVersion" not in keys


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Events, and states that are not well, as rows of `health_events`.

    A fatal event is critical, as is a state for which gpud asks to reboot or repair the node; all
    else is a warning at most, for gpud reports jobs' own faults, too. An event of an XID or SXid
    gets its severity from the catalog at publish. Healthy states and components without events are
    skipped. The API does not name its node: `--node` does, else a `node` or `hostname` that was
    added to a component. A state without a time is of `--at`, else of the file's modification time.

    Raises
    ------
    SourceError
        Where the file holds no record.
    """
    records = JsonRecords(source, _LISTS, options.limits, grouped=True)
    undated_at = options.at or source.modified_at
    n_undated = 0

    def made(record: object, log: Gathered) -> list[HealthRow] | str:
        nonlocal n_undated
        row = _made(record, records.around, log)
        if isinstance(row, str):
            return row
        if row.observed_at is None and _is_state(record):
            n_undated += 1
            row = row._replace(observed_at=undated_at)
        log.saw(row.cluster, row.observed_at)
        return [row]

    log = Gathered(options, LocalClock(options), made)
    for line_no, raw, record in records:
        log.take(line_no, raw, record)
    batch = log.batch("health_events", health_frame(log.rows, "health_check", _KEY))
    if batch.rows_read == 0:
        raise SourceError(f"{source.name}: holds no records: give what gpud's /v1/events answers")
    if n_undated:
        why = "as stated" if options.at else "the file's modification time (pass --at)"
        batch.notices.append(_UNDATED.format(at=undated_at, why=why, n=n_undated))
    batch.notices += records.notices()
    return batch


def _is_state(record: object) -> bool:
    return isinstance(record, dict) and ("health" in record or "healthy" in record)


def _made(record: object, around: dict[str, object], log: Gathered) -> HealthRow | str:
    """The row of an event or state, or why there is none."""
    if isinstance(record, RecordError):
        raise record
    if not isinstance(record, dict):
        raise RecordError("not a JSON object")
    if not _is_state(record) and any(name in record and not record[name] for name in _LISTS):
        return "no events"
    node = k8s.text(around.get("node") or around.get("hostname")) or log.options.node
    if node is None:
        raise RecordError("names no node: pass --node")
    component = k8s.text(record.get("component") or around.get("component"))
    name = k8s.text(record.get("name")) or component
    if name is None:
        raise RecordError("no name")
    cluster = log.options.cluster or log.options.default_cluster
    at = k8s.instant(record.get("time"))
    if _is_state(record):
        health = _health(record)
        if health in _WELL:
            return "healthy"
        message = k8s.told(record.get("reason"), record.get("error"))
        severity = "critical" if _asks_for_repair(record) else _OF_HEALTH[health]
        return HealthRow(cluster, node, at, component or name, message, severity=severity)
    message, kind = k8s.text(record.get("message")), k8s.text(record.get("type"))
    if message is None and kind is None and at is None:
        raise RecordError("no event")
    row = HealthRow(cluster, node, at, name, message, severity=_OF_TYPE.get(kind or ""))
    found = _CODE.match(message or "")
    if found is None:
        return row
    code = int(found["code"])
    return row._replace(
        gpu=pci_address(found["gpu"]) if found["gpu"] else None,
        xid=None if found["switch"] else code,
        sxid=code if found["switch"] else None,
    )


def _health(state: dict[str, Any]) -> str:
    """How a component is; the first versions say `healthy` alone."""
    health = k8s.text(state.get("health"))
    if health is None and isinstance(state.get("healthy"), bool):
        return "Healthy" if state["healthy"] else "Unhealthy"
    if health not in (*_WELL, *_OF_HEALTH):
        raise RecordError("no health that is known")
    return str(health)


def _asks_for_repair(state: dict[str, Any]) -> bool:
    """Whether gpud asks to reboot or repair the node."""
    actions = k8s.within(state, "suggested_actions").get("repair_actions")
    return isinstance(actions, list) and any(action in _REPAIRS for action in map(str, actions))


READER = Reader(
    "gpud",
    "events and states of gpud",
    export=(
        "curl -ks 'https://NODE:15132/v1/events?startTime=...' (/v1/states, /v1/info) "
        "with --node NODE"
    ),
    reads=(
        "events and states of gpud: `curl -ks "
        "'https://NODE:15132/v1/events?startTime=...'` (`/v1/states`, `/v1/info`); "
        "`--node` says whose"
    ),
    fills=("health_events",),
    place=4.41,
    options=("node", "at"),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
