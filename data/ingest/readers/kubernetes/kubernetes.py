"""What readers of Kubernetes share: objects in any shape that kubectl prints, their kind and times.

A list (`kubectl get ... -o json`), what the API answers, one object after another (`--watch`, one a
line or not), watch events (`--output-watch-events`). Other output is refused with the command.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.formats.header import first_line
from data.ingest.formats.json_records import JsonRecords
from data.ingest.formats.json_text import is_json, members
from data.ingest.reader import RecordError
from data.ingest.rows import Gathered, LocalClock, typed_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import duckdb

    from data.ingest.reader import Batch, Options, Source

RESOURCE = {
    "Pod": "pods", "Node": "nodes", "Event": "events", "Workload": "workloads.kueue.x-k8s.io",
    "Job": "jobs.batch.volcano.sh", "PodGroup": "podgroups.scheduling.volcano.sh",
}  # fmt: skip
"""Kind of object -> what kubectl calls it."""
_YAML = re.compile(r"^(?:- )?(?: {2})?kind: ['\"]?(\w+)", re.MULTILINE)
_TABLES = {
    "Pod": re.compile(r"(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS"),
    "Node": re.compile(r"NAME +STATUS +ROLES +AGE"),
    "Event": re.compile(r"(?:NAMESPACE +)?LAST SEEN +(?:TYPE|REASON)"),
}
_GPU = re.compile(
    r"nvidia\.com/(?:gpu(?:\.shared)?|mig-[\w.]+)|amd\.com/gpu|gpu\.intel\.com/\w+|habana\.ai/gaudi"
)
"""Resources of which one is a GPU, or a part of one that is handed out as if it were."""
_PLACEHOLDER_BEFORE = datetime(1980, 1, 1, tzinfo=UTC)
_OTHER = "another kind"


def is_of_kind(head: str, *kinds: str) -> bool:
    """Whether a text begins with such an object, as JSON or in a form that is refused."""
    return (_kind_of_json(head) or _kind_of_text(head)) in kinds


def _kind_of_json(head: str) -> str | None:
    """Kind of the first object."""
    at = len(head) - len(head.lstrip("\ufeff \t\r\n["))
    if head[at : at + 1] != "{":
        return None
    kind, is_list, has_version = None, False, False
    while True:
        inside = None
        places = dict(members(head, at))
        has_version = has_version or "apiVersion" in places
        if "kind" in places and (found := re.match(r'"(\w+)"', head[places["kind"] :])):
            kind, is_list = found[1].removesuffix("List"), found[1].endswith("List")
        if "items" in places and (kind is None or is_list):
            inside = re.compile(r"\[\s*(?={)").match(head, places["items"])
        elif "object" in places and "type" in places:
            inside = re.compile(r"(?={)").match(head, places["object"])
        if inside is None:
            break
        at = inside.end()
    if kind in (None, "", "List"):
        kind = _kind_by_fields(places)
    return kind if has_version else None


def _kind_by_fields(fields: Iterable[str]) -> str | None:
    """Kind of an object of a list of the API, whose objects do not state it."""
    names = set(fields)
    return "Event" if names & {"involvedObject", "regarding"} else None


def _kind_of_text(head: str) -> str | None:
    """Kind of the objects in YAML, or in the table that kubectl prints."""
    for kind, header in _TABLES.items():
        if header.match(first_line(head)):
            return kind
    if not re.search(r"^(?:- )?(?: {2})?apiVersion: ", head, re.MULTILINE):
        return None
    kinds = [kind for kind in _YAML.findall(head) if kind != "List"]
    return kinds[0] if kinds else None


def rows_of(
    table: str,
    columns: Sequence[str],
    make: Callable[[dict[str, Any], Gathered], Sequence[Any] | str],
    *kinds: str,
) -> Callable[[Source, Options, duckdb.DuckDBPyConnection], Batch]:
    """What reads objects of these kinds into rows of a table with these columns.

    `make` gives the rows of an object, or why it is skipped. An object that is shown again, as a
    watch does, is one.
    """

    def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
        log = Gathered(options, LocalClock(options), make)
        log.take_all(source.name, objects(source, log, *kinds))
        return log.batch(table, typed_frame(table, list(dict.fromkeys(log.rows)), columns))

    return read


def objects(
    source: Source, log: Gathered, *kinds: str
) -> Iterator[tuple[int, str, dict[str, Any] | RecordError]]:
    """Every object of these kinds, with line and text; one that is gone holds `deleted`.

    Others count as skipped in the log, which is told what users must know of the file.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    _refuse_text(source, kinds)
    records = JsonRecords(source, ("items",), log.options.limits)
    for line_no, raw, value in records:
        if isinstance(value, dict) and value.get("kind") == "Status":
            message = str(value.get("message") or value.get("reason"))
            raise SourceError(f"{source.name}: is an error of Kubernetes: {message[:200]}")
        record = _object(value, kinds)
        if isinstance(record, str):
            log.skipped[record] += 1
        else:
            yield line_no, raw, record
    log.notices += records.notices()
    if log.skipped[_OTHER]:
        others = f"objects other than {' and '.join(kinds)}"
        log.notices.append(f"{others} were left out: each has a source")


def _refuse_text(source: Source, kinds: tuple[str, ...]) -> None:
    """Refuses YAML and tables with the command that prints JSON."""
    with source.path.open(encoding="utf-8-sig", errors="replace") as stream:
        head = stream.read(1 << 14)
    if not is_json(head):
        command = f"kubectl get {RESOURCE[kinds[0]]} -A -o json > {RESOURCE[kinds[0]]}.json"
        command = command.replace(" -A", "") if kinds[0] == "Node" else command
        what = "is YAML or text of kubectl, not JSON" if _kind_of_text(head) else "is no JSON"
        raise SourceError(f"{source.name}: {what}: give what `{command}` writes")


def _object(value: Any, kinds: tuple[str, ...]) -> dict[str, Any] | RecordError | str:
    """The object that a record is, also that of a watch event; else why it is skipped."""
    if isinstance(value, RecordError):
        return value
    no_object = RecordError("no object of Kubernetes")
    if not isinstance(value, dict):
        return no_object
    if isinstance(value.get("object"), dict) and "type" in value:
        if value["type"] in ("BOOKMARK", "ERROR"):
            return "bookmark"
        value = {**value["object"], "deleted": value["type"] == "DELETED"}
    try:
        kind = value.get("kind") or _kind_by_fields(value) or _kind_by_content(value)
    except RecordError as error:
        return error
    if kind is None or not isinstance(value.get("metadata"), dict):
        return no_object
    return value if kind in kinds else _OTHER


def _kind_by_content(record: dict[str, Any]) -> str | None:
    """Kind of a pod or node that does not state it."""
    if within(record, "spec").get("containers"):
        return "Pod"
    return "Node" if within(record, "status", "nodeInfo") else None


def within(record: Any, *path: str) -> dict[str, Any]:
    """The object at a path; an empty one where there is none.

    Raises
    ------
    RecordError
        Where something else stands there.
    """
    for name in path:
        record = record.get(name)
        if record is None:
            return {}
        if not isinstance(record, dict):
            raise RecordError(f"{name} is no object")
    return dict(record)


def listed(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list; none where there is none.

    Raises
    ------
    RecordError
        Where something else stands there.
    """
    found = record.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise RecordError(f"{name} is no list of objects")
    return found


def conditions(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The conditions in an object's status, by type."""
    return {str(one.get("type")): one for one in listed(within(record, "status"), "conditions")}


def text(value: object, longest: int = 2_000) -> str | None:
    """A text without surrounding space, its beginning where it is long; None where there is none.

    Raises
    ------
    RecordError
        For a list or an object.
    """
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise RecordError("a text is none")
    return str(value).strip()[:longest] or None


def count(value: object) -> int | None:
    """A whole number, also as text; None where there is none.

    Raises
    ------
    RecordError
        For anything else.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value.strip()[:18])
    if type(value) is not int or not 0 <= value < 2**31:
        raise RecordError("a number is none")
    return value


def instant(value: object) -> datetime | None:
    """A time as Kubernetes writes it; None where there is none, or its stand-in of 1970.

    Raises
    ------
    RecordError
        Where it is no time, or names no zone.
    """
    if value is None or value == "":
        return None
    try:
        at = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise RecordError("impossible time") from None
    if at.tzinfo is None:
        raise RecordError("a time without zone")
    try:
        at = at.astimezone(UTC)
    except OverflowError:
        raise RecordError("impossible time") from None
    return None if at < _PLACEHOLDER_BEFORE else at


def since(condition: dict[str, Any]) -> datetime | None:
    """When a condition changed last."""
    return instant(condition.get("lastTransitionTime"))


def why(stated: dict[str, Any]) -> str | None:
    """Reason and message of what an object states of itself, in one text."""
    return told(stated.get("reason"), stated.get("message"))


def owner(meta: dict[str, Any]) -> dict[str, Any]:
    """What an object belongs to: its controller, else the first that it names."""
    owners = listed(meta, "ownerReferences")
    controllers = [one for one in owners if one.get("controller") is True]
    return next(iter(controllers or owners), {})


def version(record: dict[str, Any], latest_at: datetime | None) -> int:
    """What orders the versions of an object: its resourceVersion, else its latest time."""
    stated = text(within(record, "metadata").get("resourceVersion")) or ""
    if stated.isdecimal() and len(stated) <= 15:
        return int(stated)
    return int(latest_at.timestamp() * 1e6) if latest_at else 0


def gpus(resources: dict[str, Any]) -> int:
    """GPUs among resources, those of every maker; the instances of MIG are GPUs, too.

    Examples
    --------
    >>> gpus({"cpu": "4", "nvidia.com/gpu": "8"}), gpus({"nvidia.com/mig-1g.5gb": 3})
    (8, 3)
    """
    return sum(count(n) or 0 for name, n in resources.items() if _GPU.fullmatch(name))


def told(*parts: object) -> str | None:
    """Reason and message in one text."""
    known = [found for part in parts if (found := text(part))]
    return ": ".join(dict.fromkeys(known)) or None
