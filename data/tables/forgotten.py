"""What a site's retention removed."""

from data.tables.table import Table, bigint, timestamptz, varchar

FORGOTTEN = Table(
    "forgotten",
    "Rows of a table before a time that `faultline forget` removed, so that days without a record "
    "are not taken for days that were not collected.",
    {
        "table_name": varchar("the table"),
        "before_at": timestamptz("rows before it were removed"),
        "forgotten_at": timestamptz("when they were removed"),
        "n_rows": bigint("how many there were"),
    },
    key=("table_name", "before_at"),
)
