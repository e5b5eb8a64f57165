"""What the derived tables rest on."""

from data.tables.table import Table, varchar

STAGE_RUNS = Table(
    "stage_runs",
    "A stage of the derivation, whose tables hold.",
    {
        "stage": varchar("name of the stage"),
        "fingerprint": varchar(
            "hash of what it rests on besides records: code, site.toml, annotations, models"
        ),
        "notes": varchar(
            "what it takes for granted and leaves out, a JSON object; NULL where nothing"
        ),
    },
    key=("stage",),
)
