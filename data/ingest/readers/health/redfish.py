"""Log entries and events of service processors by Redfish (DMTF DSP0266)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from data.ingest.formats.json_text import is_json
from data.ingest.health import HealthLog, HealthRow, events_of, json_objects, text_of
from data.ingest.reader import Reader, RecordError, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.rows import LocalClock

_SEVERITY = {"ok": "info", "informational": "info", "warning": "warning", "critical": "critical"}
_FIRST_YEAR = 2000


def sniff(head: str) -> bool:
    """Whether JSON is a log, an entry of one, or an event of Redfish."""
    if not is_json(head) or '"@odata.' not in head:
        return False
    return "#LogEntry" in head or "#Event." in head


def _records(source: Source, log: HealthLog) -> Iterator[tuple[int, str, Any]]:
    """Entries and events: a file holds one answer or many, whole or one a line."""
    yield from json_objects("Members", "Events")(source, log)
    if log.around.get("@odata.nextLink") or log.around.get("Members@odata.nextLink"):
        log.notices.append("the service processor holds more pages of this log: @odata.nextLink")


def _event(record: dict[str, Any], log: HealthLog) -> list[HealthRow] | str:
    """The row of an entry or event; a member that is a link alone says nothing (`link_only`).

    Severity is what the service processor says; of a state that has ended (Deassert, or resolved)
    info. The check is `redfish_` and the type of the sensor, else the name of the message without
    version and number.
    """
    if set(record) == {"@odata.id"}:
        return "link_only"
    message_id, message = text_of(record.get("MessageId")), text_of(record.get("Message"))
    if message_id is None and message is None:
        raise RecordError("no Message and no MessageId")
    node, cluster = log.options.node, log.options.cluster_of()
    if node is None:
        raise RecordError("no host in the record: pass --node")
    at = _instant(record.get("EventTimestamp") or record.get("Created"), cluster, log.clock)
    check = _check(text_of(record.get("SensorType")), message_id)
    is_over = record.get("EntryCode") == "Deassert" or record.get("Resolved") is True
    stated = record.get("MessageSeverity") or record.get("Severity")
    severity = "info" if is_over else _SEVERITY.get(str(stated).lower())
    if message is None:
        values = record.get("MessageArgs")
        arguments = ", ".join(map(str, values)) if isinstance(values, list) else ""
        message = f"{message_id} {arguments}".strip()
    return [HealthRow(cluster, node, at, check, message, severity=severity)]


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


READER = Reader(
    "redfish",
    "service processors' events",
    export="curl https://BMC/redfish/v1/Systems/1/LogServices/SEL/Entries",
    reads="log entries and events of service processors (Redfish JSON); `--node` says whose",
    script=(
        "curl -s -n https://node001-bmc/redfish/v1/Systems/1/LogServices/SEL/Entries \\\n"
        "  > redfish-node001.json"
    ),
    example="redfish-node001.json --node node001",
    fills=("health_events",),
    place=4.3,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(_records, _event, "bmc", "log entries or events of Redfish"),
)
