"""Which columns of a table of events are node, time and code, and what becomes of its rows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.reduce.engine import REJECTED, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAMES = {
    "node": ("node", "node_name", "nodename", "machine", "hostname", "host", "instance"),
    "at": ("observed_at", "at", "timestamp", "time", "ts", "datetime"),
    "gpu": ("gpu", "gpu_id", "device", "pci_address", "gpu_uuid", "uuid"),
    "source": ("source",),
    "check_name": ("check_name", "check", "event", "kind"),
    "severity": ("severity",),
    "xid": ("xid", "xid_code"),
    "sxid": ("sxid",),
    "job_id": ("job_id", "jobid"),
    "message": ("message", "msg", "text"),
    "cluster": ("cluster",),
}
"""What a record may say -> how it may be called, the surest first."""
_NEEDED = ("node", "at")
_TELLING = ("check_name", "xid", "sxid")
"""One of them tells what happened."""
CODES = ("xid", "sxid")
PASSED = ("passed", "pass", "ok", "healthy")
_SEVERITIES = ("info", "warning", "critical", "fatal")
_MOST_CODE = 99_999
_VERDICT = f"""CASE WHEN severity IN {PASSED} THEN '{SKIPPED}passed'
  WHEN node = '' THEN '{REJECTED}no node'
  WHEN at_us IS NULL THEN '{REJECTED}its time is none'
  WHEN xid = '?' OR sxid = '?' THEN '{REJECTED}its code is no whole number'
  WHEN severity NOT IN {("", *_SEVERITIES)}
    THEN '{REJECTED}its severity is none of {", ".join(_SEVERITIES)}'
  WHEN told <> '' THEN NULL
  WHEN xid = '0' OR sxid = '0' THEN '{SKIPPED}code 0, which is none'
  ELSE '{REJECTED}no check and no code' END"""
"""Why a row is not kept, in the SQL of either engine."""


def part_of(path: str) -> int:
    """Number of a file, by its path."""
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:7])


class EventColumns(NamedTuple):
    """Columns as the file calls them; None where it has none such."""

    node: str
    at: str
    gpu: str | None
    source: str | None
    check_name: str | None
    severity: str | None
    xid: str | None
    sxid: str | None
    job_id: str | None
    message: str | None
    cluster: str | None


def event_columns(name: str, types: Mapping[str, str]) -> EventColumns:
    """The columns of a table of events.

    Raises
    ------
    SourceError
        Where node or time is absent, or nothing tells what happened.

    Examples
    --------
    >>> event_columns("a.csv", {"Host": "", "time": "", "XID": ""}).xid
    'XID'
    """
    plain = {column.lower(): column for column in reversed(list(types))}
    found = {
        what: next((plain[one] for one in names if one in plain), None)
        for what, names in NAMES.items()
    }
    lacking = [f"{what} ({', '.join(NAMES[what])})" for what in _NEEDED if found[what] is None]
    if not any(found[what] for what in _TELLING):
        lacking.append("/".join(_TELLING))
    if lacking:
        there = ", ".join(list(types)[:8]) or "none"
        raise SourceError(
            f"{name}: has no column of {' and '.join(lacking)}, its columns are {there}: rename one"
        )
    return EventColumns(**found)  # type: ignore[arg-type]


def texts_of(
    found: EventColumns, text: Callable[[str | None], str], cluster: str | None
) -> dict[str, str]:
    """What each column but the time says as text, in the SQL of either engine.

    Parameters
    ----------
    found
        The columns of the table.
    text
        A column as a text without surrounding blanks, '' where there is none.
    cluster
        What stands for the cluster instead, as SQL writes it.
    """
    texts = {name: text(column) for name, column in found._asdict().items() if name != "at"}
    texts["severity"] = f"lower({texts['severity']})"
    texts |= {name: _code(texts[name]) for name in CODES}
    return texts if cluster is None else texts | {"cluster": cluster}


def _code(stated: str) -> str:
    """A code as text: '' for none, '?' for no whole number."""
    number = f"TRY_CAST({stated} AS DOUBLE)"
    return f"""CASE WHEN {stated} = '' OR isnan({number}) THEN ''
      WHEN {number} BETWEEN 0 AND {_MOST_CODE} AND {number} = floor({number})
        THEN CAST(TRY_CAST({number} AS BIGINT) AS STRING) ELSE '?' END"""


def judged(stated: str, *, is_clean: bool = False, carried: Sequence[str] = ()) -> str:
    """A query of events, each with its `verdict`, of one that gives their columns as texts.

    A code names its check. Without a source a code is the kernel's, all else a health check's. Of
    clean files all rows are known to be kept. `carried` are further columns.
    """
    verdict = "CAST(NULL AS STRING)" if is_clean else _VERDICT
    further = "".join(f"{name}, " for name in carried)
    return f"""SELECT {further}cluster, node, gpu, severity, job_id, message, at_us, part, is_local,
        CASE WHEN xid = '0' THEN '' ELSE xid END AS xid,
        CASE WHEN sxid = '0' THEN '' ELSE sxid END AS sxid, told AS check_name,
        CASE WHEN source <> '' THEN source WHEN has_code THEN 'kernel' ELSE 'health_check' END
          AS source, {verdict} AS verdict
      FROM (
        SELECT *, xid NOT IN ('', '0') OR sxid NOT IN ('', '0') AS has_code,
          CASE WHEN check_name <> '' THEN check_name WHEN xid NOT IN ('', '0') THEN 'xid'
            WHEN sxid NOT IN ('', '0') THEN 'sxid' ELSE '' END AS told
        FROM ({stated}) AS stated) AS named"""
