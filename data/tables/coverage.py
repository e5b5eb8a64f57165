"""What was collected, by source and day."""

from data.tables.table import Table, bigint, date, varchar

COVERAGE = Table(
    "coverage",
    "What was collected: rows by source and day. Derived at every publish.",
    {
        "cluster": varchar("name of the cluster"),
        "source": varchar(
            "table of the records; where it holds those of several sources, <table>.<source>"
        ),
        "day": date("day in UTC; NULL for rows without a time"),
        "n_rows": bigint("rows of the source on that day"),
    },
    key=("cluster", "source", "day"),
)
