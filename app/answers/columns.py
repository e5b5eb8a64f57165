"""Columns and texts of the store's records as people read them: the same on every surface."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.words import terms
from app.words.cells import Column
from app.words.glossary import of_failures
from app.words.plain import one_line, shortened

if TYPE_CHECKING:
    import pandas as pd

_NO_SIZE = "unknown: the scheduler's records name no GPUs"
_NO_NODE = "unknown: no record names a node"
_NO_CAUSE = "unknown: no record says why"
_NOT_STATED = "not stated by the source"

_COLUMNS = (
    Column("cluster", "Cluster"),
    Column("job_id", "Job", link="job"),
    Column("attempt", "Attempt", "count", help=of_failures.ATTEMPT.definition),
    Column("attempt_key", "Attempt key", help=of_failures.ATTEMPT_KEY.definition),
    Column("run_id", "Run", link="run", none="unknown: no run is known of this job"),
    Column("incident_id", "Incident", link="incident", none="of no incident"),
    Column("trace", "Trace", link="trace"),
    Column("node", "Node", link="node", none=_NO_NODE),
    Column("gpu", "GPU", none="of the whole node"),
    Column("state", "State", none=_NOT_STATED),
    Column("cause", "Cause", none=_NO_CAUSE),
    Column("subcause", "Finer cause", none=_NOT_STATED),
    Column("hit", "What it hit", none="a node, or not stated"),
    Column("domain", "Domain", none=_NO_CAUSE),
    Column("confidence", "Confidence", "ratio", help=terms.CONFIDENCE.definition),
    Column("method", "Method", help=of_failures.METHOD.definition),
    Column("symptom", "Symptom", none=_NOT_STATED),
    Column("evidence", "Evidence", none="no evidence"),
    Column("severity", "Severity", none=_NOT_STATED),
    Column("message", "Message", none=_NOT_STATED),
    Column("reason", "Reason", none=_NOT_STATED),
    Column("text", "Text", none=_NOT_STATED),
    Column("status", "Status"),
    Column("summary", "What happened"),
    Column("user", "User", none=_NOT_STATED),
    Column("account", "Account", none=_NOT_STATED),
    Column("name", "Job name", none=_NOT_STATED),
    Column("partition", "Partition", none=_NOT_STATED),
    Column("n_gpus", "GPUs", "count", none=_NO_SIZE),
    Column("n_nodes", "Nodes", "count", none=_NOT_STATED),
    Column("gpu_hours", "GPU-hours", "number", none=_NO_SIZE),
    Column("lost_gpu_hours", "Lost (GPU-h)", "number", none="not known"),
    Column("running_hours", "Running time (h)", "number"),
    Column("repair_minutes", "Repair (min)", "number", none=_NOT_STATED),
    Column("failed", "Failed", "flag"),
    Column("failed_at", "Failed at", "time", "UTC", none=_NOT_STATED),
    Column("submit_at", "Submitted", "time", "UTC", none=_NOT_STATED),
    Column("start_at", "Started", "time", "UTC", none="never started"),
    Column("end_at", "Ended", "time", "UTC", none="has not ended"),
    Column("observed_at", "Observed", "time", "UTC", none="the source gives no time"),
    Column("since_at", "Since", "time", "UTC", none=_NOT_STATED),
)
KNOWN = {column.key: column for column in _COLUMNS}


def columns(
    *keys: str, hidden: tuple[str, ...] = (), wide: tuple[str, ...] = ()
) -> tuple[Column, ...]:
    """Columns of these names.

    Only pages have room for the wide ones; the hidden ones serve links and downloads alone.
    """
    shown = tuple(replace(KNOWN[key], wide=key in wide) for key in keys)
    return (*shown, *(replace(KNOWN[key], link=None, shown=False) for key in hidden))


LONGEST = 300
"""Characters of a record that are printed."""


def text(value: Any) -> str | None:
    """What a record says, on one line; None where it says nothing."""
    import pandas as pd  # here: most commands need none

    return None if pd.isna(value) else shortened(one_line(str(value)), LONGEST)


def values(column: pd.Series) -> list[Any]:
    """Values of a column as Python holds them, None where unknown: to_dict looks at each of them.

    >>> import pandas as pd
    >>> values(pd.Series([0.5, None])), values(pd.Series([1, 2]))
    ([0.5, None], [1, 2])
    """
    known: list[Any] = column.tolist()
    if not column.hasnans:
        return known
    return [value if there else None for value, there in zip(known, column.notna(), strict=True)]


def texts(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Rows with the records in these columns on one line each."""
    return rows.assign(**{name: rows[name].map(text) for name in names})
