"""A table that sorts, searches, downloads, and opens what its cells and rows name.

A page rounds values and tells intervals in words; files hold them to the last digit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from analytics.estimate import Estimate
from app.answers.content import Table
from app.ask import EVERYTHING, FEW
from app.ask.cached import ask, kept
from app.show import export, links
from app.words import cells, escaping, moments, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.answers.content import Part
    from app.show.scope import Scope
    from app.words.cells import Column, Link


SMALL = 5
"""Rows up to which a table is read at a glance: nothing to search, nothing to take away."""
ROWS_UNSCROLLED = 12
"""Rows up to which a table has no scroll bar of its own."""
SCROLLED_PX = 420
WRAPPED_PX = 66
"""Least height of rows whose texts may take several lines: a grid breaks them from 4 rem on."""
LINE_PX, LINE_CHARS, MOST_LINES = 18, 80, 9
"""Height of a line of such a text, how much of it a line holds, and the most lines of a row."""
CHAR_PX, CELL_PX = 7, 16
"""Width of a character of a table, and of what stands beside a text."""
DASH = "\N{EN DASH}"
"""What stands for unknown in a cell; the opened row says why."""
PERCENT = "%g %%"
LEAST_RATIO = 0.0005
"""A grid has three decimals: what is below reads as 0.000, or as 0."""
FIRST = f"the first {FEW:,} rows; the download holds all"
"""What is said where the number of all rows is not known."""
LINK_COLOUR = {"light": "#155fa0", "dark": "#7ab2ea"}


def show(
    table: Table,
    scope: Scope,
    *,
    total: int | None = None,
    everything: Part | None = None,
    opens: Callable[[Part], None] | None = None,
) -> None:
    """Rows; more than five have a search box and a download that says what they were filtered by.

    Parameters
    ----------
    total
        How many rows there are where the table holds only the first of them.
    everything
        All rows, for the download.
    opens
        Shows the part behind a row that the reader picks; without it, or without a part, a row
        opens as a list of its values.
    """
    if not len(table):
        st.markdown(escaping.escaped(table.empty))
        return
    everything = everything or table.everything
    plain = Table(table.key, table.title, table.columns, table.rows)  # without what was computed
    total = everything.total if total is None and everything is not None else total
    with st.container(gap="xsmall"):
        matches = kept(rounded_frame, plain)
        if len(table) > SMALL or (total or 0) > SMALL:
            with st.container(horizontal=True, vertical_alignment="center"):
                if table.searched:
                    matches = matching(matches, _search(table.key))
                _download(table, everything, scope)
                more = everything is not None and total is None and len(table) == FEW
                count = FIRST if more else _counts(len(matches), total or len(table))
                st.caption(count, width="stretch")
        shown = matches.head(FEW)
        picked = _grid(table, shown, scope)
    if picked is not None:
        _open(table, shown, picked, opens, scope)


def matching(frame: pd.DataFrame, wanted: str) -> pd.DataFrame:
    """Rows that hold every word of `wanted` in some column, whatever the case."""
    hits = pd.Series(True, index=frame.index)
    if not wanted.strip() or frame.empty:
        return frame
    text = frame.astype("string").fillna("").agg(" ".join, axis="columns").str.casefold()
    for word in wanted.casefold().split():
        hits &= text.str.contains(word, regex=False)
    return frame[hits]


def _grid(table: Table, shown: pd.DataFrame, scope: Scope) -> tuple[int, str] | None:
    """The rows; row and column of the cell that the reader has just picked."""
    visible = [name for column in table.columns if column.shown for name in column_names(column)]
    name = f"table_{table.key}"
    key = f"{name}_{st.session_state.get(_picks(name), 0)}"
    st.dataframe(
        _coloured(table, shown, scope),
        hide_index=True,
        column_order=visible,
        column_config={
            name: config
            for column in table.columns
            for name, config in _config(column, shown, scope.timezone).items()
        },
        height="content" if len(shown) <= ROWS_UNSCROLLED else SCROLLED_PX,
        row_height=_wrapped_px(table.columns, shown) if table.wrapped else None,
        placeholder=DASH,
        key=key,
        on_select=partial(_pick, name, key),
        selection_mode="single-cell",
    )
    picked: tuple[int, str] | None = st.session_state.pop(_picked(name), None)
    return picked


def _wrapped_px(columns: Sequence[Column], shown: pd.DataFrame) -> int:
    """Height at which the longest text of the rows is whole.

    >>> why, narrow = cells.Column("why", "Why"), cells.Column("why", "Why", px=216)
    >>> rows = pd.DataFrame({"why": ["x" * 200]})
    >>> _wrapped_px([why], rows), _wrapped_px([narrow], rows), _wrapped_px([], rows)
    (66, 156, 66)
    """
    lines = 1
    for column in columns:
        if column.shown and column.key in shown and not is_numeric_dtype(shown[column.key]):
            longest = shown[column.key].astype(str).str.len().max()
            a_line = LINE_CHARS if column.px is None else (column.px - CELL_PX) // CHAR_PX
            lines = max(lines, -(-int(longest) // a_line))
    return max(WRAPPED_PX, 12 + LINE_PX * min(lines, MOST_LINES))


def _pick(name: str, key: str) -> None:
    """Keeps the cell that was clicked for the run that follows.

    A browser sends what is selected with every run, and says nothing of a second click on the same
    cell: after a pick the table is another one, in which nothing is selected.
    """
    cells_of = st.session_state[key]["selection"]["cells"]
    if cells_of:
        row, column = cells_of[0]
        st.session_state[_picked(name)] = (int(row), str(column))
        st.session_state[_picks(name)] = st.session_state.get(_picks(name), 0) + 1


def _picked(name: str) -> str:
    """Where a pick waits for the run that follows it."""
    return f"picked_{name}"


def _picks(name: str) -> str:
    """Where the picks of a table are counted."""
    return f"picks_{name}"


def _coloured(table: Table, shown: pd.DataFrame, scope: Scope) -> Any:
    """The rows with what opens a page in the colour of links."""
    linked = [column.key for column in table.columns if column.shown and column.link]
    if not linked:
        return shown
    places = [shown.columns.get_loc(name) for name in linked]
    cells_of = [f"row{row}_col{place}" for row in range(len(shown)) for place in places]
    coloured = {"props": [("color", LINK_COLOUR[scope.mode])], "selectors": cells_of}
    styler: Any = shown.style.set_uuid(table.key)  # else a new one: browsers keep what is the same
    # Streamlit asks a Styler for this; its own answer describes each cell of the table at a cost of
    # more than all else of the page.
    styler._translate = lambda *_: {"cellstyle": [coloured]}
    return styler


def _open(
    table: Table,
    shown: pd.DataFrame,
    picked: tuple[int, str],
    opens: Callable[[Part], None] | None,
    scope: Scope,
) -> None:
    """The page that a cell names, the part behind its row, the page of its row, the row itself."""
    place, name = picked
    row = {str(key): value for key, value in shown.iloc[place].items()}
    if link := _link(table, row, name):
        links.go(link, row, scope)
    elif table.opens is not None and opens is not None:
        opens(table.opens.behind(row))
    elif (link := _link(table, row, _subject(table))) and not pd.isna(row[name]):
        links.go(link, row, scope)
    else:
        values = table.values[int(shown.index[place])]
        st.dialog("Row", width="large")(_row)(table, values)


def _link(table: Table, row: dict[str, Any], name: str) -> Link | None:
    """What a cell opens; None where it is no link, or names nothing."""
    link = next((column.link for column in table.columns if column.key == name), None)
    return None if link is None or pd.isna(row[name]) else link


def _subject(table: Table) -> str:
    """The column that says what a row is: the first one that people see."""
    return next(column.key for column in table.columns if column.shown)


def _row(table: Table, values: tuple[Any, ...]) -> None:
    """Every value of a row in words; where one is unknown, why."""
    for column, value in zip(table.columns, values, strict=True):
        unknown = value is None or (isinstance(value, Estimate) and value.value is None)
        if column.kind in cells.ESTIMATES and isinstance(value, Estimate) and not unknown:
            text = f"{cells.estimate(column.kind, value)[0]}, {cells.basis(column.kind, value)}"
        else:
            text = ", ".join(dict.fromkeys(cells.texts(column, value))) or column.none
        st.markdown(f"**{escaping.escaped(column.title)}**: {escaping.escaped(text)}")


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


def _download(table: Table, everything: Part | None, scope: Scope) -> None:
    """The button that fetches all rows once it is pressed."""

    def rows() -> str:
        whole = table if everything is None else everything.opened(ask, limit=EVERYTHING)
        return scope.csv(exact_frame(whole))

    export.button(
        "CSV",
        f"{scope.file_stem(table.key)}.csv",
        rows,
        mime="text/csv",
        key=f"csv_table_{table.key}",
        type="tertiary",
        icon=":material/download:",
    )


def _counts(n_found: int, total: int) -> str:
    """How many rows there are, and how many of them are in the table."""
    shown = min(n_found, FEW)
    if shown == total:
        return numbers.counted(total, "row")
    return f"{shown:,} of {numbers.counted(total, 'row')}; the download holds all"


def _config(column: Column, shown: pd.DataFrame, timezone: str) -> dict[str, Any]:
    """How the values of a column are written, its interval beside it; its help is its term."""
    title, text = cells.headed(column, timezone=timezone), column.help or None
    if column.kind in cells.ESTIMATES:
        value, interval = column_names(column)
        form = {"share": PERCENT, "ettr": "%.3f"}.get(column.kind, "localized")
        unit = title.removeprefix(column.title)
        return {
            value: st.column_config.NumberColumn(title, help=text, format=form),
            interval: st.column_config.TextColumn(
                f"Interval{unit}",
                help=f"Interval of {column.title}.",
                width=_width_px(f"Interval{unit}", shown[interval]),
            ),
        }
    return {column.key: _plain(column, title, text, shown[column.key], timezone)}


def _width_px(title: str, texts: pd.Series) -> int:
    """Width at which every text is whole: a grid measures the first rows only.

    >>> _width_px("Interval", pd.Series([None, "54.9 % to 100 %"]))
    121
    """
    longest = max([len(title), *(len(text) for text in texts.dropna())])
    return CELL_PX + CHAR_PX * longest


def _plain(column: Column, title: str, text: str | None, values: pd.Series, timezone: str) -> Any:
    """A column of texts, times, flags or numbers."""
    if column.kind in ("time", "second", "day"):
        zoned = isinstance(values.dtype, pd.DatetimeTZDtype)
        return st.column_config.DatetimeColumn(
            title if zoned else cells.headed(column),
            timezone=timezone if zoned else None,
            format=moments.GRID[column.kind],
            help=" ".join(
                (text or "", f"In {timezone if zoned else 'UTC'}; the download is in UTC.")
            ).strip(),
        )
    if column.kind == "flag":
        return st.column_config.CheckboxColumn(title, help=text)
    if column.kind == "text":
        return st.column_config.TextColumn(title, help=text, width=column.px)
    form = PERCENT if column.kind == "ratio" else "localized"
    form = _form_of_ratios(values) if column.kind == "decimal" else form
    return st.column_config.NumberColumn(title, help=text, format=form)


def _form_of_ratios(values: pd.Series) -> str:
    """Three decimals; three significant digits where a value that is not 0 would else read as 0.

    >>> _form_of_ratios(pd.Series([0.78, 0.0, None])), _form_of_ratios(pd.Series([0.78, 0.000276]))
    ('%.3f', '%.3g')
    """
    known = values.dropna().abs()
    return "%.3g" if known.between(0.0, LEAST_RATIO, inclusive="neither").any() else "%.3f"


WHOLE = ("count",)
MEASURED = ("number", "hours")


def column_names(column: Column) -> tuple[str, ...]:
    """Names of the columns of a page: an estimate has its interval beside it."""
    if column.kind in cells.ESTIMATES:
        return (column.key, f"{column.key}_interval")
    return (column.key,)


def rounded_frame(table: Table) -> pd.DataFrame:
    """Values that sort as numbers and times, measured ones with three significant digits."""
    return pd.DataFrame(_shown(table), index=range(len(table)))


def _shown(table: Table) -> dict[str, Any]:
    """Columns of a page."""
    columns: dict[str, Any] = {}
    rows = table.values
    for place, column in enumerate(table.columns):
        values = [row[place] for row in rows]
        if column.kind in cells.ESTIMATES:
            value, interval = column_names(column)
            written = numbers.percents if column.kind == "share" else _rounded
            columns[value] = [written(v.value) for v in values]
            columns[interval] = [_interval(column, v) for v in values]
        elif column.kind in ("time", "second", "day"):
            columns[column.key] = pd.to_datetime(pd.Series(values, dtype=object))
        elif column.kind in MEASURED:
            columns[column.key] = pd.Series([_rounded(v) for v in values], dtype="float64")
        elif column.kind == "ratio":
            columns[column.key] = pd.Series([numbers.percents(v) for v in values], dtype="float64")
        elif column.kind in WHOLE:
            columns[column.key] = pd.Series(values, dtype="float64").round()
        else:
            columns[column.key] = values
    return columns


def exact_frame(table: Table) -> pd.DataFrame:
    """Every value to the last digit under its schema name; an estimate takes five columns."""
    if isinstance(table.rows, pd.DataFrame):
        return table.rows
    columns: dict[str, Any] = {}
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.values]
        if column.kind not in cells.ESTIMATES:
            columns[column.key] = values
            continue
        columns[column.key] = [value.value for value in values]
        for name in ("lower", "upper", "conf_level", "n"):
            columns[f"{column.key}_{name}"] = [getattr(value, name) for value in values]
    return pd.DataFrame(columns)


def _rounded(value: float | None) -> float | None:
    """With three significant digits; what a grid would write as -0 is 0.

    >>> _rounded(-0.000123), _rounded(-0.0123), _rounded(None)
    (0.0, -0.0123, None)
    """
    if value is None or pd.isna(value):
        return None
    found = numbers.rounded(float(value))
    return 0.0 if -LEAST_RATIO < found < 0 else found


def _interval(column: Column, value: Estimate) -> str | None:
    """The interval in words, in the unit of its value; None where there is none."""
    in_hours = column.kind == "mttf"
    text = numbers.interval(value) if in_hours else cells.estimate(column.kind, value)[1]
    return None if text == numbers.UNKNOWN else text
