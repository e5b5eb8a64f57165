"""Records of events to bursts, as expressions that DuckDB and Spark both compile.

A burst is what is told alike within one minute of the clock. Times are whole microseconds since
1970, and "nothing" is an empty text, so that groups mean the same on either engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from analytics.failures.xid import xid_entries
from analytics.failures.xid_nvlink5 import FIRST_CODE, LAST_CODE

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
ALIKE = (
    *("cluster", "node", "gpu", "source", "check_name", "severity", "xid", "sxid", "job_id"),
)  # fmt: skip
"""What the records of a burst have in common, besides the words of their message."""
SCANNED = dict.fromkeys((*ALIKE, "message"), "string") | dict.fromkeys(("at_us", "part"), "int64")
"""Column -> type of records as they are scanned; `part` numbers the file that holds one."""
_GROUP = (*ALIKE, "words", "begin_us")
_FOUND = dict.fromkeys((*ALIKE, "words"), "string") | {"begin_us": "int64", "n": "int64"}
_BURSTS = _FOUND | dict.fromkeys(("first", "last", "least"), "string") | {"is_split": "boolean"}
_RECORDS = _FOUND | {"at_us": "int64", "message": "string"}
_SINCE_US = 100 * SECOND_US
"""Added to the microseconds since a burst began, so that all are texts of one length."""
_DIGITS = len(str(_SINCE_US))
_APART, _END = "\x1f", "\x01"
_NUMBERS = "0x[0-9a-fA-F]+|[0-9][0-9a-fA-F]*"
_STATE_SEVERITY = tuple(str(code) for code in (*range(FIRST_CODE, LAST_CODE + 1), 154))
"""XIDs of which the numbers in the message tell the severity."""
_OF_A_PROCESS = tuple(
    str(code)
    for code, entry in xid_entries().items()
    if code == 45 or entry.severity in ("info", "warning")
)
"""XIDs that one process made: to which attempt a line belongs is told by its second."""
_KILLED = ("oom_kill", "hung_task")
"""What the kernel tells of one process."""


def bursts() -> ir.Table:
    """Bursts: number of records, the first, the last, and that of the least message.

    A record stands as text that sorts as it does: microseconds since the begin, then the message;
    of the least message the other way round. `is_split` says that several files hold its records.
    """
    found = _grouped()
    is_split = found.part.min() != found.part.max()
    return _aggregated(found, found.count(), is_split)


def once() -> ir.Table:
    """The records of bursts that lie in several files, each as often as the file has it that has it
    most: what a store keeps of files that overlap."""
    several = ibis.table(_BURSTS, name="bursts")
    several = several.filter(several.is_split)
    found = _grouped().semi_join(several, list(_GROUP))
    record = [*_GROUP, "at_us", "message"]
    by_file = found.group_by([*record, "part"]).agg(n=found.count())
    return by_file.group_by(record).agg(n=by_file.n.max()).select(*_RECORDS)


def bursts_once() -> ir.Table:
    """Bursts by tables `bursts` and, of those in several files, `records`."""
    found, records = ibis.table(_BURSTS, name="bursts"), ibis.table(_RECORDS, name="records")
    again = _aggregated(records, _sum(records.n), ibis.literal(value=False))
    return found.filter(~found.is_split).select(*_BURSTS).union(again.select(*_BURSTS))


def finished(found: str) -> ir.Table:
    """The rows that are written, of a table of bursts: nothing is NULL, and texts are parted.

    `burst` is a hash of what the records have in common, the same on either engine.
    """
    rows = ibis.table(_BURSTS, name=found)
    in_common = [*(rows[name] for name in (*ALIKE, "words")), rows.begin_us.cast("string")]
    text = in_common[0]
    for each in in_common[1:]:
        text = text + _APART + each
    size = rows.least.length() - _DIGITS
    at = {
        "first": rows["first"].substr(0, _DIGITS),
        "last": rows["last"].substr(0, _DIGITS),
        "least": rows.least.substr(size, _DIGITS),
    }
    message = {
        "first": rows["first"].substr(_DIGITS),
        "last": rows["last"].substr(_DIGITS),
        "least": rows.least.substr(0, size - 1),
    }
    return rows.select(
        text.hexdigest("md5").name("burst"),
        *(rows[name].nullif("").name(name) for name in ALIKE if name not in ("xid", "sxid")),
        *(rows[name].nullif("").cast("int32").name(name) for name in ("xid", "sxid")),
        rows.n,
        *(
            (rows.begin_us + each.cast("int64") - _SINCE_US).name(f"{name}_us")
            for name, each in at.items()
        ),
        *(each.nullif("").name(f"{name}_message") for name, each in message.items()),
    ).order_by(["first_us", "burst"])


def _sum(n: ir.IntegerColumn) -> ir.IntegerScalar:
    """A sum of whole numbers, exact to 2^53: DuckDB gives a type that Parquet has not."""
    return n.sum().cast("float64").cast("int64")


def _aggregated(found: ir.Table, n: ir.IntegerScalar, is_split: ir.BooleanScalar) -> ir.Table:
    """Number, first, last and least of the records of each burst."""
    since = (found.at_us - found.begin_us + _SINCE_US).cast("string")
    record, said = since + found.message, found.message + _END + since
    return found.group_by(list(_GROUP)).agg(
        n=n, first=record.min(), last=record.max(), least=said.min(), is_split=is_split
    )


def _grouped() -> ir.Table:
    """Table `scanned` with what tells bursts apart: the words of a message, and when they begin.

    Words are the message without its numbers: lines of a storm differ by addresses and counts. Of
    codes whose numbers tell the severity, and of a code that stands in the message alone, all of it
    counts.
    """
    found = ibis.table(SCANNED, name="scanned")
    code_in_text = (found.xid == "") & found.message.lower().contains("xid")
    words = ibis.ifelse(
        found.xid.isin(_STATE_SEVERITY) | code_in_text,
        found.message,
        found.message.re_replace(_NUMBERS, "#"),
    )
    of_process = found.xid.isin(_OF_A_PROCESS) | found.check_name.isin(_KILLED)
    width = ibis.ifelse(of_process, SECOND_US, MINUTE_US).cast("int64")
    begin = found.at_us - ((found.at_us % width) + width) % width
    return found.mutate(words=words, begin_us=begin)
