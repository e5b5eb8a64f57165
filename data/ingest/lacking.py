"""What a table that was read does not say in any row, and what stays unknown without it.

Exports of jobs are told by their columns (`sacct_fields`), as they may be empty on a quiet day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.ingest.reader import Batch

FIGURES: dict[str, dict[tuple[str, ...], str]] = {
    "tickets": {
        ("closed_at",): "when repairs ended stays unknown",
        ("component", "text"): "what was repaired stays unknown",
    },
    "node_inventory": {
        ("state",): "which nodes were out of service stays unknown, where no node events say it",
    },
    "node_failures": {
        ("end_at", "repair_minutes"): "how long nodes were down stays unknown",
        ("cause", "text"): "causes stay unknown",
    },
}
"""Table -> columns of which one is needed -> what stays unknown where all are empty."""


def notices(batch: Batch) -> list[str]:
    """A sentence for what no row of a table says.

    Examples
    --------
    >>> import pandas as pd
    >>> from data.ingest.reader import Batch
    >>> rows = pd.DataFrame({"closed_at": [None], "text": ["fan"]})
    >>> notices(Batch({"tickets": rows}))
    ['no closed_at in any of 1 rows: when repairs ended stays unknown']
    """
    import pandas as pd  # here: a reader of traces does without it

    return [
        f"no {' or '.join(columns)} in any of {len(rows):,} rows: {unknown}"
        for table, figures in FIGURES.items()
        if isinstance(rows := batch.tables.get(table), pd.DataFrame) and len(rows)
        for columns, unknown in figures.items()
        if not any(rows[name].notna().any() for name in columns if name in rows)
    ]
