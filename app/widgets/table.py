"""A table that sorts, searches and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app.ask import FEW
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.show.scope import Scope

ROWS_SHOWN = FEW
"""Rows sent to the browser; the download holds all."""
ROWS_UNSCROLLED = 12
"""Rows up to which a table has no scroll bar of its own."""
SCROLLED_PX = 420
WRAPPED_PX = 66
"""Height of rows whose texts may take several lines: a grid breaks them from 4 rem on."""
NARROW, UNKNOWN_PX = 9, 90
"""Letters up to which a column that holds `unknown` has this width: the grid makes room for the
header and the first values alone."""
LETTER_PX, WIDEST_PX = 8, 180
"""Width of a letter, and of the widest text beside `unknown`."""


def show(
    frame: pd.DataFrame,
    *,
    name: str,
    scope: Scope,
    total: int | None = None,
    everything: Callable[[], pd.DataFrame] | None = None,
    opens: Callable[[pd.Series], None] | None = None,
    wrapped: bool = False,
) -> None:
    """Rows with a search box and a download that says what they were filtered by.

    Parameters
    ----------
    frame
        The rows to show, best first.
    name
        Unique on the page; part of the file's name.
    total
        How many rows there are where `frame` holds only the first of them.
    everything
        Fetches all rows for the download.
    opens
        Shows what is behind a row that the reader picks.
    wrapped
        Whether long texts are broken into lines.
    """
    with st.container(gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            found = matching(frame, _search(name))
            _download(everything or (lambda: frame), name=name, scope=scope)
            hint = "; pick one to open it" if opens is not None else ""
            st.caption(_counts(len(found), total or len(frame)) + hint, width="stretch")
        shown = _rounded(found.head(ROWS_SHOWN))
        picked = _grid(
            shown,
            name=name,
            timezone=scope.timezone,
            pickable=opens is not None,
            row_height=WRAPPED_PX if wrapped else None,
        )
    if opens is not None:
        _open_picked(shown, picked, name=name, opens=opens)


def _grid(
    shown: pd.DataFrame, *, name: str, timezone: str, pickable: bool, row_height: int | None
) -> list[int]:
    """The rows, and which of them the reader picked."""
    config: Any = {c: _column(shown[c], timezone) for c in shown.columns}
    state: Any = st.dataframe(
        shown,
        hide_index=True,
        column_config=config,
        height="content" if len(shown) <= ROWS_UNSCROLLED else SCROLLED_PX,
        row_height=row_height,
        placeholder=numbers.UNKNOWN,
        key=f"table_{name}",
        on_select="rerun" if pickable else "ignore",
        selection_mode="single-row",
    )
    return list(state["selection"]["rows"]) if pickable else []


def _search(name: str) -> str:
    """The box of words to look for."""
    return st.text_input(
        "Search the table",
        key=f"search_{name}",
        placeholder="Search",
        icon=":material/search:",
        label_visibility="collapsed",
        width=170,
    )


def _download(fetch: Callable[[], pd.DataFrame], *, name: str, scope: Scope) -> None:
    """The button that fetches all rows once it is pressed."""
    st.download_button(
        "CSV",
        lambda: scope.csv(fetch()),
        file_name=f"{scope.file_stem(name)}.csv",
        mime="text/csv",
        key=f"csv_{name}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def _open_picked(
    shown: pd.DataFrame, picked: list[int], *, name: str, opens: Callable[[pd.Series], None]
) -> None:
    """Opens the row that was picked, once: a selection outlives the run that made it."""
    key = f"opened_{name}"
    if picked and picked != st.session_state.get(key):
        opens(shown.iloc[picked[0]])
    st.session_state[key] = picked


def matching(frame: pd.DataFrame, wanted: str) -> pd.DataFrame:
    """Rows that hold every word of `wanted` in some column, whatever the case."""
    hits = pd.Series(True, index=frame.index)
    if not wanted.strip() or frame.empty:
        return frame
    text = frame.astype("string").fillna("").agg(" ".join, axis="columns").str.casefold()
    for word in wanted.casefold().split():
        hits &= text.str.contains(word, regex=False)
    return frame[hits]


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Measured values with three significant digits; the download keeps them all."""
    measured = frame.select_dtypes("float").columns
    return frame.assign(**{c: frame[c].map(numbers.rounded) for c in measured})


def _counts(found: int, total: int) -> str:
    """How many rows there are, and how many of them are in the table."""
    shown = min(found, ROWS_SHOWN)
    if shown == total:
        return numbers.counted(total, "row")
    return f"{shown:,} of {numbers.counted(total, 'row')}; the download holds all"


def _column(values: pd.Series, timezone: str) -> object:
    """How a column is written: times in the cluster's zone, numbers with separated thousands."""
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        return st.column_config.DatetimeColumn(
            width=_width(values),
            timezone=timezone,
            format="D MMM YYYY HH:mm",
            help=f"{timezone}; the download is in UTC",
        )
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        known = values.dropna()
        days = bool((known == known.dt.normalize()).all())
        return st.column_config.DatetimeColumn(
            width=_width(values), format="D MMM YYYY" if days else "D MMM YYYY HH:mm", help="UTC"
        )
    if pd.api.types.is_bool_dtype(values.dtype):
        return st.column_config.CheckboxColumn()
    if pd.api.types.is_numeric_dtype(values.dtype):
        return st.column_config.NumberColumn(width=_width(values), format=_format(values))
    return st.column_config.TextColumn(width=_text_width(values))


def _format(values: pd.Series) -> str:
    """Three decimals where all values have three significant digits so, as ratios do.

    >>> _format(pd.Series([0.9, 0.855])), _format(pd.Series([0.9, 12.0])), _format(pd.Series([1]))
    ('%.3f', 'localized', 'localized')
    """
    ratios = pd.api.types.is_float_dtype(values.dtype) and values.dropna().between(0.1, 1.0).all()
    return "%.3f" if ratios and values.notna().any() else "localized"


def _width(values: pd.Series) -> int | None:
    """Room for the word of what is unknown, where nothing else in a column is as long.

    >>> _width(pd.Series([1.5, None], name="hours")), _width(pd.Series([1.5, 2.5], name="x"))
    (90, None)
    """
    return UNKNOWN_PX if values.hasnans and _letters(values) <= NARROW else None


def _text_width(values: pd.Series) -> int | None:
    """Room for texts and the word of what is unknown.

    >>> _text_width(pd.Series(["gpu", None], name="cause"))
    90
    >>> _text_width(pd.Series(["a memory error", None], name="cause"))
    112
    >>> _text_width(pd.Series(["a", "b"], name="x"))
    """
    if not values.hasnans:
        return None
    return min(max(LETTER_PX * _letters(values), UNKNOWN_PX), WIDEST_PX)


def _letters(values: pd.Series) -> int:
    """Letters of the longest value that is known, or of the header."""
    longest = values.dropna().astype("string").str.len().max()
    return max(0 if pd.isna(longest) else int(longest), len(str(values.name)))
