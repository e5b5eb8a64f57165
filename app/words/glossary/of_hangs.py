"""Terms of Hangs."""

from __future__ import annotations

from app.words.terms import Term

_RUNS = ("runs",)
HANG_SOURCE = "PyTorch, flight recorder tutorial and torch/distributed/flight_recorder"
RANKS_SEEN = Term(
    "Ranks seen",
    "Ranks of which a flight-recorder dump was read, of all that the dumps and their process "
    "groups name. A rank without a dump may be the one at fault.",
    pages=_RUNS,
)
RANKS_WAITING = Term(
    "Ranks waiting",
    "Ranks that enqueued an operation which did not end, of those seen.",
    pages=_RUNS,
)
HANG_AT_FAULT = Term(
    "Ranks at fault",
    "Ranks for which others wait, and which wait for nobody: they never joined an operation that "
    "the others enqueued, or did something else under its number. Of more than one it is not "
    "known which of them held up the others.",
    source=HANG_SOURCE,
    pages=_RUNS,
)
PROCESS_GROUP = Term(
    "Process group",
    "Ranks that communicate with one another, by what the group is for, e.g. tensor parallelism, "
    "and its global ranks. Its numbers count its collectives; the same operation has the same "
    "number on each of its ranks.",
    source=HANG_SOURCE,
    pages=_RUNS,
    of_column=True,
)
SEQUENCE = Term(
    "Number",
    "Count of the collectives of a process group, or of a rank's sends and receives in it.",
    source=HANG_SOURCE,
    pages=_RUNS,
    of_column=True,
)
HANG_CONFIDENCE = Term(
    "Confidence",
    "High: all ranks have a dump, and the rank's own shows that it did not join, or did something "
    "else than most. Medium: a dump is missing or holds little, or the order of other ranks and "
    "groups tells. Low: named by what the others lack or by stacks alone, one of several, or its "
    "own dump leaves open what it waits for.",
    pages=_RUNS,
    of_column=True,
)
PROGRESS = Term(
    "Last ended",
    "The last collective of a group that ended on a rank, beside the last that started and the "
    "last that was enqueued.",
    source=HANG_SOURCE,
    pages=_RUNS,
    of_column=True,
)
