"""Records of accounting to one an attempt, as expressions that DuckDB and Spark both compile.

They decide as the merge of a store does (`data/publish/merge.py`). Times are whole microseconds
since 1970 and what is unknown is NONE or an empty text, so that groups and joins mean the same on
either engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from data.tables.jobs import FINAL_STATES

if TYPE_CHECKING:
    import ibis.expr.types as ir

NONE = -(1 << 62)
"""Instead of a time that is unknown: earlier than all."""
DAY_US = 86_400_000_000
SCANNED = {
    "id": "int64",
    **dict.fromkeys(("of_cluster", "of_job", "of_sluid", "of_state"), "string"),
    **dict.fromkeys(("submit_us", "start_us", "end_us"), "int64"),
}
"""Column -> type of what tells records apart, as scanned; a time that is unknown is NULL."""
_RECORD = {
    **{name: kind for name, kind in SCANNED.items() if name != "of_state"},
    "finality": "int8",
    "day_us": "int64",
}
_PLACED = {"id": "int64", "day_us": "int64", "reason": "string", "tie": "int64"}
_COMPARED = {"id": "int64", "day_us": "int64", "tie": "int64", "text": "int64"}

OUTDATED = "an earlier state of the same submission"
UNNAMED = "no SLUID, which another record of the attempt has"
ENDS_EARLIER = "ends before another record of the attempt"
REPEATED = "the same record once more"
OTHERWISE = "another record of the attempt with the same end counts"
"""Why a record gives way to another one."""


def records() -> ir.Table:
    """What tells the records in table `scanned` apart, with their day of submission."""
    found = ibis.table(SCANNED, name="scanned")
    submit_us = found.submit_us.fill_null(NONE)
    is_final = found.of_state.isin(FINAL_STATES)
    finality = ibis.cases((is_final, 2), (found.start_us.notnull(), 1), else_=0).cast("int8")
    return found.select(
        "id",
        "of_cluster",
        "of_job",
        "of_sluid",
        submit_us=submit_us,
        start_us=found.start_us.fill_null(NONE),
        end_us=found.end_us.fill_null(NONE),
        finality=finality,
        day_us=day_of_submission(found.submit_us),
    )


def day_of_submission(submit_us: ir.IntegerColumn) -> ir.IntegerColumn:
    """Begin of the day (UTC), before 1970 too; NONE where it is unknown."""
    begin = submit_us - ((submit_us % DAY_US) + DAY_US) % DAY_US
    return begin.fill_null(NONE)


def doubted() -> ir.Table:
    """Records that are not alone: of a job and submission, or of a SLUID and day, are several.

    Of all others, the most by far, nothing more has to be asked.
    """
    found = _records()
    submission = ["of_job", "submit_us"]
    several = found.group_by(submission).agg(n=found.count())
    named = found.filter(found.of_sluid != "")
    of_sluid = ["of_cluster", "of_sluid", "day_us"]
    shared = named.group_by(of_sluid).agg(n=named.count())
    again = named.semi_join(shared.filter(shared.n > 1), of_sluid)
    busy = several.filter(several.n > 1).select(submission).union(again.select(submission))
    return found.semi_join(busy.distinct(), submission)


def placed() -> ir.Table:
    """Why a record in table `doubted` gives way, and with which others it ties that does not.

    Of a submission only the most final records count (ended, started, pending); of a start a record
    with SLUID stands for one without; of an attempt the later end counts. `tie` is the least id of
    several that are left, NULL where one is. A day is decided by its own records alone: of a SLUID
    that was submitted on several days one record a day stays.
    """
    found = ibis.table(_RECORD, name="doubted")
    of_submission = ["of_cluster", "of_job", "submit_us"]
    most = found.finality.max().over(group_by=of_submission)
    ranked = found.mutate(outdated=found.finality < most)
    names = ibis.ifelse((ranked.of_sluid != "") & ~ranked.outdated, 1, 0)
    is_named = names.max().over(group_by=[*of_submission, "start_us"]) == 1
    named = ranked.mutate(unnamed=~ranked.outdated & (ranked.of_sluid == "") & is_named)
    gone = named.mutate(
        gone=named.outdated | named.unnamed,
        key_job=ibis.ifelse(named.of_sluid == "", named.of_job, ""),
        key_submit=ibis.ifelse(named.of_sluid == "", named.submit_us, NONE),
        key_start=ibis.ifelse(named.of_sluid == "", named.start_us, NONE),
    )
    attempt = ["of_cluster", "of_sluid", "day_us", "key_job", "key_submit", "key_start", "gone"]
    ends = gone.mutate(last_us=gone.end_us.max().over(group_by=attempt))
    last = ends.mutate(is_last=ends.end_us == ends.last_us)
    counted = last.mutate(
        n_last=ibis.ifelse(last.is_last, 1, 0).sum().over(group_by=attempt),
        least=ibis.ifelse(last.is_last, last.id, ibis.null("int64")).min().over(group_by=attempt),
    )
    reason = ibis.cases(
        (counted.outdated, OUTDATED),
        (counted.unnamed, UNNAMED),
        (~counted.is_last, ENDS_EARLIER),
        else_=ibis.null("string"),
    )
    return counted.select(
        "id",
        "day_us",
        reason=reason,
        tie=ibis.ifelse(reason.isnull() & (counted.n_last > 1), counted.least, None),
    )


def lost() -> ir.Table:
    """Records that give way by what table `placed` says."""
    found = ibis.table(_PLACED, name="placed")
    return found.filter(found.reason.notnull()).select("id", "day_us", "reason")


def tied() -> ir.Table:
    """Records in table `placed` of which one has to be chosen by all that they say."""
    found = ibis.table(_PLACED, name="placed")
    return found.filter(found.tie.notnull()).select("id", "day_us", "tie")


def repeated() -> ir.Table:
    """Records in table `compared` that say to the letter what an earlier one of their tie says."""
    found = ibis.table(_COMPARED, name="compared")
    first = found.id.min().over(group_by=["tie", "text"])
    again = found.mutate(first=first)
    return again.filter(again.id != again.first).select(
        "id", "day_us", reason=ibis.literal(REPEATED)
    )


def contested() -> ir.Table:
    """Records in table `compared` that differ from others of their tie, one a text."""
    found = ibis.table(_COMPARED, name="compared")
    once = found.group_by(["tie", "text"]).agg(id=found.id.min(), day_us=found.day_us.min())
    several = once.group_by("tie").agg(n=once.count())
    return once.semi_join(several.filter(several.n > 1), "tie").select("id", "day_us", "tie")


def left() -> ir.Table:
    """Records that stay, with the day of their submission: all but those in table `gone`."""
    found = _records()
    gone = ibis.table({"id": "int64"}, name="gone")
    return found.anti_join(gone, "id").select("id", "day_us")


def days() -> ir.Table:
    """Records of each day."""
    found = _records()
    return found.group_by("day_us").agg(n=found.count())


def _records() -> ir.Table:
    """Table `records`."""
    return ibis.table(_RECORD, name="records")
