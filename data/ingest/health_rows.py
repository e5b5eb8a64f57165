"""Rows of the table `health_events`, as several readers make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from data.ingest.keys import occurrence_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class HealthRow(NamedTuple):
    """One observation; the columns of `health_events` that a reader fills."""

    cluster: str
    node: str
    observed_at: datetime | None
    check_name: str
    message: str | None
    gpu: str | None = None
    severity: str | None = None
    xid: int | None = None
    sxid: int | None = None
    job_id: str | None = None


_TEXT = ("cluster", "node", "check_name", "message", "gpu", "severity", "job_id")
_NUMBERS = ("xid", "sxid")


def health_frame(rows: list[HealthRow], source: str, key: Sequence[str]) -> pd.DataFrame:
    """The rows as a typed frame with `source` and, over the columns `key`, `event_id`."""
    frame = pd.DataFrame(rows, columns=list(HealthRow._fields), dtype="object")
    frame = frame.astype(
        dict.fromkeys(_TEXT, "string")
        | dict.fromkeys(_NUMBERS, "Int64")
        | {"observed_at": "datetime64[us, UTC]"}
    )
    frame["source"] = pd.array([source] * len(rows), dtype="string")
    frame["event_id"] = pd.array(occurrence_keys(frame, key), dtype="string")
    return frame
