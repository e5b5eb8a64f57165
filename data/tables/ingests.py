"""Ingested files, and their records that could not be read."""

from data.tables.table import Table, bigint, boolean, timestamptz, varchar

INGESTS = Table(
    "ingests",
    "An ingest.",
    {
        "ingest_id": varchar("id of the ingest"),
        "source": varchar("reader that read it"),
        "cluster": varchar("clusters it holds, comma-separated"),
        "path": varchar("file as it was named; - for standard input", people="text"),
        "sha256": varchar("SHA-256 of the file's bytes as they were given"),
        "rows_read": bigint("records read = kept + skipped + rejected"),
        "rows_kept": bigint("valid records, whether or not they changed the store"),
        "rows_skipped": bigint("records that are not of interest, e.g. job steps"),
        "rows_rejected": bigint("records that could not be read"),
        "skipped_by_reason": varchar("JSON object: reason to count"),
        "first_at": timestamptz("earliest time in the file"),
        "last_at": timestamptz("latest time in the file"),
        "ingested_at": timestamptz("when it was read"),
        "notices": varchar("what the reader had to assume, a JSON array"),
        "zones": varchar(
            "IANA zone in which times without one were read, a JSON object by cluster; null in it "
            "where nobody stated a zone, which is read as UTC"
        ),
        "own_zone": boolean("whether that is the zone of this file, whatever the cluster's is"),
        "brought": varchar("rows added or changed, a JSON object by table"),
        "command": varchar("command that reads it again; NULL of an upload", people="text"),
    },
    key=("ingest_id",),
)

REJECTED_ROWS = Table(
    "rejected_rows",
    "A record that could not be read.",
    {
        "ingest_id": varchar("the ingest"),
        "path": varchar("the file", people="text"),
        "line_no": bigint("line in the file, from 1"),
        "reason": varchar("why it could not be read", people="text"),
        "raw": varchar("the record, at most 2,000 characters", people="text"),
    },
    key=("ingest_id", "line_no"),
    time="(SELECT ingested_at FROM ingests i WHERE i.ingest_id = rejected_rows.ingest_id)",
)
