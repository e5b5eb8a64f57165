"""What ranks of a hung job said: flight recorders with their operations, and stacks."""

from __future__ import annotations

from data.tables.table import (
    CLUSTER_FROM,
    Records,
    bigint,
    boolean,
    integer,
    timestamptz,
    varchar,
)

_CLUSTER = varchar("name of the cluster")
_JOB = varchar("job of the rank; NULL where none is stated", people="id")
_DUMP = varchar("hash of what the dump holds")
_RANK = integer("global rank")
_DUMPED = timestamptz(
    "when the rank last enqueued, began or ended something, by its clock; of stacks, and where the "
    "dump holds no time, when the last dump read with it did; of stacks alone when the file was "
    "written"
)

FLIGHT_DUMPS = Records(
    "flight_dumps",
    "A flight-recorder dump of one rank, of NCCL or PyTorch.",
    {
        "dump_id": _DUMP,
        "cluster": _CLUSTER,
        "job_id": _JOB,
        "rank": _RANK,
        "host": varchar("host that the dump names"),
        "dumped_at": _DUMPED,
        "version": varchar("version of the dump's format"),
        "nccl_version": varchar("version of NCCL"),
        "process_groups": varchar(
            "process groups of the rank, a JSON array: name, desc, ranks, and last enqueued, "
            "started and completed, and how many entries could not be read",
            people="nested",
        ),
        "file": varchar("name of the file", people="text"),
        "cluster_from": CLUSTER_FROM,
    },
    key=("dump_id", "job_id", "cluster"),
    time="dumped_at",
    placed_by=("job_id",),
)

COLLECTIVES = Records(
    "collectives",
    "An operation in the ring of a flight recorder.",
    {
        "dump_id": _DUMP,
        "place": integer("place in the ring, from 0, the oldest first"),
        "process_group": varchar("name of the group in that dump", people="text"),
        "seq": bigint("number among the group's collectives, or its sends and receives"),
        "is_p2p": boolean("whether it is a send or receive"),
        "operation": varchar("as profiled, e.g. nccl:all_reduce"),
        "state": varchar("scheduled, started, completed"),
        "retired": boolean("whether the watchdog no longer watches it"),
        "record_id": bigint("number among all that the rank recorded"),
        "input_sizes": varchar("sizes of what goes in, a JSON array of arrays"),
        "output_sizes": varchar("sizes of what comes out, a JSON array of arrays"),
        "input_dtypes": varchar("types of what goes in, a JSON array"),
        "output_dtypes": varchar("types of what comes out, a JSON array"),
        "created_ns": bigint("when it was enqueued, ns since 1970 by the clock of the rank"),
        "started_ns": bigint("when it was seen started"),
        "completed_ns": bigint("when it was seen completed"),
        "dumped_at": _DUMPED,
    },
    key=("dump_id", "place"),
    time="dumped_at",
)

RANK_STACKS = Records(
    "rank_stacks",
    "The stack of a thread of one rank, by py-spy or faulthandler.",
    {
        "dump_id": _DUMP,
        "cluster": _CLUSTER,
        "job_id": _JOB,
        "rank": _RANK,
        "thread_no": integer("thread of the dump, from 0, the main thread first"),
        "thread": varchar("name of the thread", people="text"),
        "state": varchar("what the tool says of the thread, e.g. active or idle"),
        "frames": varchar(
            "functions, the innermost first, a JSON array: function, file, line", people="nested"
        ),
        "dumped_at": _DUMPED,
        "file": varchar("name of the file", people="text"),
        "cluster_from": CLUSTER_FROM,
    },
    key=("dump_id", "job_id", "cluster", "thread_no"),
    time="dumped_at",
    placed_by=("job_id",),
)
