"""What people said, as of the last publish."""

from data.tables.table import Table, timestamptz, varchar

ANNOTATIONS = Table(
    "annotations",
    "Copy of what people said, as of the last publish; the original is state.sqlite.",
    {
        "annotation_id": varchar("id"),
        "target": varchar("kind and key of what it is about"),
        "author": varchar("who", people="user"),
        "made_at": timestamptz("when"),
        "field": varchar("field it sets"),
        "value": varchar("value it sets", people="text"),
    },
)
