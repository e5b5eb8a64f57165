"""Records of the store as the cells of a table hold them: one line each, long ones cut."""

from __future__ import annotations

from typing import Any

import pandas as pd

from app.words.plain import one_line, shortened

LONGEST = 300
"""Characters of a record that are printed."""


def text(value: Any) -> str | None:
    """What a record says, on one line; None where it says nothing."""
    return None if pd.isna(value) else shortened(one_line(str(value)), LONGEST)


def texts(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Rows with the records in these columns on one line each."""
    return rows.assign(**{name: rows[name].map(text) for name in names})
