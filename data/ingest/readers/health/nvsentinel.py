"""Health events of NVIDIA's NVSentinel: as its monitors send them, or as its store keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.ingest.formats.json_text import is_json
from data.ingest.health import (
    HealthLog,
    HealthRow,
    events_of,
    instant_of,
    json_objects,
    text_of,
)
from data.ingest.reader import Reader, RecordError

if TYPE_CHECKING:
    from datetime import datetime

    from data.ingest.rows import LocalClock

_KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "severity", "xid", "message")


def sniff(head: str) -> bool:
    """Whether JSON holds an event with a check and a verdict."""
    words = head.lower()
    named = all(f'"{name}"' in words for name in ("checkname", "isfatal", "ishealthy"))
    return is_json(head) and named


def _event(record: dict[str, Any], log: HealthLog) -> list[HealthRow] | str:
    """The rows of an event, one for each GPU that it names; `healthy` where all is well.

    An event is bare, in a list `events`, or in a document with a `healthevent`. A fatal one is
    critical, others are warnings; that of an XID is set from the catalog at publish. A bare event
    may lack a time, which then stays unknown.
    """
    event = _lower(record)
    created_at = event.get("createdat")
    if isinstance(event.get("healthevent"), dict):
        event = _lower(event["healthevent"])
    check = text_of(event.get("checkname"))
    node = text_of(event.get("nodename")) or log.options.node
    if check is None or node is None:
        raise RecordError("no checkName" if check is None else "no nodeName")
    cluster = log.options.cluster_of()
    at = _instant(event.get("generatedtimestamp") or created_at, cluster, log.clock)
    is_healthy, is_fatal = event.get("ishealthy", False), event.get("isfatal", False)
    if not isinstance(is_healthy, bool) or not isinstance(is_fatal, bool):
        raise RecordError("isHealthy and isFatal are not true or false")
    log.saw(cluster, at)
    if is_healthy:
        return "healthy"
    severity, xid = "critical" if is_fatal else "warning", _xid(check, event.get("errorcode"))
    message = text_of(event.get("message"))
    row = HealthRow(cluster, node, at, check, message, severity=severity, xid=xid)
    return [row._replace(gpu=gpu) for gpu in _gpus(event.get("entitiesimpacted"))]


def _lower(record: dict[str, Any]) -> dict[str, Any]:
    """The fields by their names in small letters, in which MongoDB keeps them."""
    return {name.lower(): value for name, value in record.items()}


def _gpus(entities: object) -> list[str | None]:
    """The GPUs among what is impacted, by index, else by address; None where there is none."""
    named: dict[str, list[str]] = {"gpu": [], "pci": []}
    for entity in entities if isinstance(entities, list) else ():
        fields = _lower(entity) if isinstance(entity, dict) else {}
        kind, value = str(fields.get("entitytype")).lower(), text_of(fields.get("entityvalue"))
        if kind in named and value is not None and value not in named[kind]:
            named[kind].append(value)
    return [*(named["gpu"] or named["pci"])] or [None]


def _xid(check: str, codes: object) -> int | None:
    """The XID that an event of a check of XIDs states; None where it states none or several."""
    found = {str(code).strip() for code in codes} if isinstance(codes, list) else set()
    if "xid" not in check.lower() or len(found) != 1:
        return None
    (code,) = found
    return int(code) if code.isascii() and code.isdigit() and len(code) <= 4 else None


def _instant(value: object, cluster: str, clock: LocalClock) -> datetime | None:
    """A time as text, as MongoDB's `$date`, or as seconds and nanoseconds of protobuf."""
    if isinstance(value, dict) and "$date" in value:
        value = value["$date"]
    if isinstance(value, dict):
        value = value.get("$numberLong", value.get("seconds"))
    return None if value in (None, "") else instant_of(value, cluster, clock, or_ms=True)


READER = Reader(
    "nvsentinel",
    "health events of NVSentinel",
    export="mongoexport -d HealthEventsDatabase -c HealthEvents",
    reads="health events of NVSentinel as JSON, bare or as its MongoDB keeps them",
    script="mongoexport -d HealthEventsDatabase -c HealthEvents -o nvsentinel.json",
    example="nvsentinel.json",
    fills=("health_events",),
    place=4.4,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(
        json_objects("events"),
        _event,
        "health_check",
        "health events of NVSentinel",
        key=_KEY,
    ),
)
