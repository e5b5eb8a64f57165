"""Lines of the logs of jobs."""

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    bigint,
    integer,
    timestamptz,
    varchar,
)

JOB_LOGS = Records(
    "job_logs",
    "A line of a job's log.",
    {
        "cluster": varchar("name of the cluster"),
        "job_id": varchar(
            "job that the file's name states; NULL where the source states the attempt", people="id"
        ),
        "attempt_key": varchar(
            "the attempt; found anew at every publish from job_id and the lines' times",
            derived=True,
        ),
        "file": varchar("name of the log file", people="text"),
        "line_no": bigint(
            "line, from 1; of lines from a log store their place in the file, else a number in the "
            "order of their time"
        ),
        "logged_at": timestamptz("time on the line"),
        "node": varchar("host that wrote it"),
        "rank": integer("rank that wrote it"),
        "text": varchar("the line", people="text"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "job_id", "file", "line_no"),
    time="logged_at",
    coverage=Coverage(),
    later="logged_at",
    placed_by=("job_id",),
)
