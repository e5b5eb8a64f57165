"""Log entries and events of service processors by Redfish (DMTF DSP0266)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    import duckdb


_KEY = ("cluster", "node", "observed_at", "check_name", "severity", "message")
_SEVERITY = {"ok": "info", "informational": "info", "warning": "warning", "critical": "critical"}
_FIRST_YEAR = 2000


def sniff(head: str) -> bool:
    """Whether JSON is a log, an entry of one, or an event of Redfish."""
    if head.lstrip("\ufeff \t\r\n")[:1] not in ("{", "[") or '"@odata.' not in head:
        return False
    return "#LogEntry" in head or "#Event." in head


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Entries and events as rows of `health_events`.

    A file holds one answer or many, whole or one a line. Severity is what the service processor
    says; of a state that has ended (Deassert, or resolved) info. The check is `redfish_` and the
    type of the sensor, else the name of the message without version and number. A member that is a
    link alone says nothing and is skipped (`link_only`).

    Raises
    ------
    SourceError
        Where the file holds no record, or `--timezone` is unknown.
    """
    log = Gathered(options, LocalClock(options), _made)
    records = JsonRecords(source, ("Members", "Events"), options.limits)
    for line_no, raw, record in records:
        log.take(line_no, raw, record)
    batch = log.batch("health_events", health_frame(log.rows, "bmc", _KEY))
    if batch.rows_read == 0:
        raise SourceError(f"{source.name}: holds no records: give log entries or events of Redfish")
    batch.notices += records.notices()
    if records.around.get("@odata.nextLink") or records.around.get("Members@odata.nextLink"):
        batch.notices.append("the service processor holds more pages of this log: @odata.nextLink")
    return batch


def _made(record: object, log: Gathered) -> list[HealthRow] | str:
    """The row of an entry or event, or a reason to skip it."""
    if isinstance(record, RecordError):
        raise record
    if not isinstance(record, dict):
        raise RecordError("not a JSON object")
    if set(record) == {"@odata.id"}:
        return "link_only"
    message_id, said = _text(record.get("MessageId")), _text(record.get("Message"))
    if message_id is None and said is None:
        raise RecordError("no Message and no MessageId")
    node = log.options.node
    if node is None:
        raise RecordError("no host in the record: pass --node")
    cluster = log.options.cluster or log.options.default_cluster
    at = _instant(record.get("EventTimestamp") or record.get("Created"), cluster, log.clock)
    log.saw(cluster, at)
    is_over = record.get("EntryCode") == "Deassert" or record.get("Resolved") is True
    written = record.get("MessageSeverity") or record.get("Severity")
    severity = _SEVERITY.get(str(written).lower())
    return [
        HealthRow(
            cluster,
            node,
            at,
            _check(_text(record.get("SensorType")), message_id),
            said or f"{message_id} {_arguments(record)}".strip(),
            severity="info" if is_over else severity,
        )
    ]


def _instant(value: object, cluster: str, clock: LocalClock) -> datetime | None:
    """When it was; None where it is not said, or the service processor did not know."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(str(value).strip())
        return None if at.year < _FIRST_YEAR else clock.utc(at, cluster)
    except (ValueError, OverflowError):
        raise RecordError("impossible time") from None


def _check(sensor: str | None, message_id: str | None) -> str:
    """`redfish_temperature` of a sensor's type, `redfish_tmp` of `IDRAC.2.8.TMP0110`."""
    last = (message_id or "").rpartition(".")[2]
    name = sensor or ("" if last.startswith("0x") else re.sub(r"\d+$", "", last))
    return "_".join(filter(None, ("redfish", re.sub(r"\W+", "_", name.lower()).strip("_"))))


def _arguments(record: dict[str, Any]) -> str:
    """The values that a message is about, where its text is missing."""
    values = record.get("MessageArgs")
    return ", ".join(map(str, values)) if isinstance(values, list) else ""


def _text(value: object) -> str | None:
    """A text without surrounding space; None where there is none."""
    return value.strip() or None if isinstance(value, str) else None


READER = Reader(
    "redfish",
    "service processors' events",
    export="curl https://BMC/redfish/v1/Systems/1/LogServices/SEL/Entries",
    reads="log entries and events of service processors (Redfish JSON); `--node` says whose",
    fills=("health_events",),
    place=4.3,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
