"""Terms of Overview and Data."""

from __future__ import annotations

from app.words.terms import Term

_DATA = ("data",)
_OVERVIEW = ("overview",)
OCCURRENCES = Term(
    "Occurrences of a cause",
    "Occurrences of the cause: an incident, or a user's failures of a day.",
    pages=_OVERVIEW,
    of_column=True,
)
RISEN = Term(
    "Rate ratio of a cause",
    "Rate now over rate in the period before, with the exact interval of a ratio of two Poisson "
    "rates.",
    unit="ratio",
    pages=_OVERVIEW,
)
FIRST_DAY = Term(
    "First day", "Day of the first record in the period, UTC.", pages=_DATA, of_column=True
)
LAST_DAY = Term(
    "Last day", "Day of the last record in the period, UTC.", pages=_DATA, of_column=True
)
QUIET_DAYS = Term(
    "Quiet days",
    "Days that were collected and without a record.",
    unit="days",
    pages=_DATA,
    of_column=True,
)
DAYS_NOT_KNOWN = Term(
    "Days missing between",
    "Days between the first and the last, without a record, and not known to have been collected.",
    unit="days",
    pages=_DATA,
    of_column=True,
)
AGE = Term(
    "Age of a source",
    "Time since the moment up to which the source was collected.",
    unit="h",
    pages=_DATA,
    of_column=True,
)
ANSWERS = Term(
    "Answers", "Stretches of time for which the source had an answer.", pages=_DATA, of_column=True
)
QUIET_ANSWERS = Term(
    "Without a record",
    "Answers of the source that held no record; a quiet time was collected too.",
    pages=_DATA,
    of_column=True,
)
LAST_ERROR = Term(
    "Last error",
    "Error of the last attempt to collect the source, where that failed.",
    pages=_DATA,
    of_column=True,
)
SKIPPED = Term(
    "Skipped", "Records of no interest, e.g. steps of jobs.", pages=_DATA, of_column=True
)
REJECTED = Term(
    "Rejected", "Records that could not be read; a row opens them.", pages=_DATA, of_column=True
)
RAW_RECORD = Term(
    "Rejected record",
    "The first 2,000 characters of a rejected record.",
    pages=_DATA,
    of_column=True,
)
BROUGHT = Term(
    "Brought", "Rows that the ingest added or changed, by table.", pages=_DATA, of_column=True
)
UNDOABLE = Term(
    "Undoable", "Whether the snapshot before the ingest is still kept.", pages=_DATA, of_column=True
)
ZONES = Term(
    "Zones", "Zone in which times without one were read, by cluster.", pages=_DATA, of_column=True
)
NOTICES = Term("Notices", "What the reader had to assume.", pages=_DATA, of_column=True)
READ_AGAIN = Term(
    "Command of an ingest", "Command that reads the file again.", pages=_DATA, of_column=True
)
SHA256 = Term("SHA-256", "Hash of the file's bytes as they were given.", pages=_DATA)
SNAPSHOT_BYTES = Term(
    "Bytes",
    "Size of the snapshot; blocks that two snapshots share count in both.",
    unit="bytes",
    pages=_DATA,
    of_column=True,
)
LIES = Term(
    "Offset of a clock",
    "How far the times of a source are off those of the reference.",
    pages=_DATA,
    of_column=True,
)
AGREEING = Term(
    "Occasions that agree",
    "Occasions that agree at this offset of two clocks.",
    pages=_DATA,
    of_column=True,
)
OUT_OF_STEP = Term(
    "Occasions out of step",
    "Occasions that agree at no offset of two clocks.",
    pages=_DATA,
    of_column=True,
)
AGREEING_BY_CHANCE = Term(
    "Occasions by chance",
    "Occasions that chance would let agree at such an offset.",
    pages=_DATA,
    of_column=True,
)
