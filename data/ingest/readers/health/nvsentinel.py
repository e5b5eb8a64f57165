"""Health events of NVIDIA's NVSentinel: as its monitors send them, or as its store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    import duckdb


_KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "severity", "xid", "message")
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100


def sniff(head: str) -> bool:
    """Whether JSON holds an event with a check and a verdict."""
    if head.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return False
    words = head.lower()
    return all(f'"{name}"' in words for name in ("checkname", "isfatal", "ishealthy"))


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Events of what is not well as rows of `health_events`, one for each GPU that they name.

    A file holds one event or many, bare, in a list `events`, or in documents with a `healthevent`.
    A fatal one is critical, others are warnings; that of an XID is set from the catalog at publish.
    Events that all is well are skipped (`healthy`). A bare event may lack a time, which then stays
    unknown.

    Raises
    ------
    SourceError
        Where the file holds no record.
    """
    log = Gathered(options, LocalClock(options), _made)
    records = JsonRecords(source, ("events",), options.limits)
    for line_no, raw, record in records:
        log.take(line_no, raw, record)
    batch = log.batch("health_events", health_frame(log.rows, "health_check", _KEY))
    if batch.rows_read == 0:
        raise SourceError(f"{source.name}: holds no records: give health events of NVSentinel")
    batch.notices += records.notices()
    return batch


def _made(record: object, log: Gathered) -> list[HealthRow] | str:
    """The rows of an event, or `healthy`."""
    if isinstance(record, RecordError):
        raise record
    if not isinstance(record, dict):
        raise RecordError("not a JSON object")
    event = _lower(record)
    created_at = event.get("createdat")
    if isinstance(event.get("healthevent"), dict):
        event = _lower(event["healthevent"])
    check, node = _text(event.get("checkname")), _text(event.get("nodename")) or log.options.node
    if check is None or node is None:
        raise RecordError("no checkName" if check is None else "no nodeName")
    cluster = log.options.cluster or log.options.default_cluster
    at = _instant(event.get("generatedtimestamp") or created_at, cluster, log.clock)
    is_healthy, is_fatal = event.get("ishealthy", False), event.get("isfatal", False)
    if not isinstance(is_healthy, bool) or not isinstance(is_fatal, bool):
        raise RecordError("isHealthy and isFatal are not true or false")
    log.saw(cluster, at)
    if is_healthy:
        return "healthy"
    row = HealthRow(
        cluster,
        node,
        at,
        check,
        _text(event.get("message")),
        severity="critical" if is_fatal else "warning",
        xid=_xid(check, event.get("errorcode")),
    )
    return [row._replace(gpu=gpu) for gpu in _gpus(event.get("entitiesimpacted"))]


def _lower(record: dict[str, Any]) -> dict[str, Any]:
    """The fields by their names in small letters, in which MongoDB keeps them."""
    return {name.lower(): value for name, value in record.items()}


def _gpus(entities: object) -> list[str | None]:
    """The GPUs among what is impacted, by index, else by address; None where there is none."""
    named: dict[str, list[str]] = {"gpu": [], "pci": []}
    for entity in entities if isinstance(entities, list) else ():
        fields = _lower(entity) if isinstance(entity, dict) else {}
        kind, value = str(fields.get("entitytype")).lower(), _text(fields.get("entityvalue"))
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
    if value in (None, ""):
        return None
    try:
        if isinstance(value, str) and not value.isdigit():
            return clock.utc(datetime.fromisoformat(value.strip()), cluster)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        seconds = float(value)
        if seconds >= _LATEST_S:  # MongoDB counts milliseconds
            seconds /= 1_000
        if not _EARLIEST_S <= seconds < _LATEST_S:
            raise ValueError
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError):
        raise RecordError("impossible time") from None


def _text(value: object) -> str | None:
    """A text without surrounding space; None where there is none."""
    return value.strip() or None if isinstance(value, str) else None


READER = Reader(
    "nvsentinel",
    "health events of NVSentinel",
    export="mongoexport -d HealthEventsDatabase -c HealthEvents",
    reads="health events of NVSentinel as JSON, bare or as its MongoDB keeps them",
    fills=("health_events",),
    place=4.4,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
