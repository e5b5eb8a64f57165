"""What `faultline collect` asked its sources for, and the files it has read of folders."""

from data.tables.table import Table, bigint, boolean, timestamptz, varchar

COLLECTED_WINDOWS = Table(
    "collected_windows",
    "A stretch of time for which a source was asked: [from_at, until_at). Days without any are not "
    "collected; one without rows is a quiet one. Written by `faultline collect`.",
    {
        "source": varchar("what is collected, by its name in the command or its configuration"),
        "cluster": varchar("cluster whose records it brings; NULL where none knows its hosts"),
        "reader": varchar("reader of what it answers"),
        "covers": varchar(
            "source of the table coverage that it brings; NULL where its silence says nothing"
        ),
        "node": varchar("host whose log alone it is; NULL where it is of more than one"),
        "whole_cluster": boolean("whether it brings the records of all nodes"),
        "from_at": timestamptz("begin of the stretch; stretches overlap, for records come late"),
        "until_at": timestamptz("end of the stretch, a margin before it was asked for"),
        "collected_at": timestamptz("when it was asked"),
        "result": varchar("rows, empty or failed"),
        "n_rows": bigint("valid records of the answer, whether or not they changed the store"),
        "error": varchar("why it failed", people="text"),
        "asked": varchar("command, address or files", people="text"),
    },
    key=("source", "cluster", "collected_at", "from_at", "until_at"),
    time="until_at",
)

COLLECTED_FILES = Table(
    "collected_files",
    "A file of a folder as `faultline collect` read it last: one that is unchanged is not read "
    "again, under whatever name.",
    {
        "source": varchar("what is collected, by its name in the configuration"),
        "path": varchar("where it lay", people="text"),
        "inode": bigint("number of the file on its disk, which stays when it is renamed"),
        "n_bytes": bigint("bytes of it that were read"),
        "modified_ns": bigint("when it had been written to last, nanoseconds since 1970"),
        "tail_sha256": varchar("SHA-256 of the last bytes that were read, at most 65,536"),
        "collected_at": timestamptz("when it was read"),
    },
    key=("source", "path"),
)
