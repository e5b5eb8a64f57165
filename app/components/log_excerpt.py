"""What the log of an attempt says around the lines of its first cause."""

from __future__ import annotations

import html
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import loaders
from app.components import empty_state, rows, table
from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from app.components.scope import Scope

AROUND = 8
"""Lines shown before and after the one of the first cause."""
LAST = 25
"""Lines of the end shown where no line names a cause."""
READ = 20_000
"""Lines read to find them."""
LONGEST = 400
"""Letters of a line that are shown; the table holds all."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def show(attempt: pd.Series, evidence: Sequence[Mapping[str, Any]], scope: Scope) -> None:
    """The excerpt of every file that has a line of the first cause, else the end of the log."""
    fetch = partial(loaders.log_lines, str(attempt["cluster"]), str(attempt["attempt_key"]))
    found = fetch(limit=READ)
    if found.empty:
        empty_state.no_log()
        return
    named = named_lines(evidence)
    marked = [
        (str(f), int(n)) in named for f, n in zip(found["file"], found["line_no"], strict=True)
    ]
    kept = _near(marked) if any(marked) else range(max(0, len(found) - LAST), len(found))
    if not any(marked):
        st.caption("No line of the log names a cause; these are its last lines.")
    st.html(excerpt(found, list(kept), marked, scope))
    with st.expander(f"All {len(found):,} lines", type="compact"):
        table.show(
            found.head(table.ROWS_SHOWN),
            name="log",
            scope=scope,
            total=len(found),
            everything=partial(fetch, limit=rows.EVERYTHING),
        )


def named_lines(evidence: Sequence[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """File and number of the lines that evidence names.

    >>> named_lines([{"kind": "job_log", "key": "slurm-7.out:12"}, {"kind": "health_event"}])
    {('slurm-7.out', 12)}
    """
    keys = [str(each.get("key")) for each in evidence if each.get("kind") == "job_log"]
    parts = [key.rpartition(":") for key in keys]
    return {(file, int(number)) for file, _, number in parts if number.isdigit()}


def excerpt(found: pd.DataFrame, kept: Sequence[int], marked: Sequence[bool], scope: Scope) -> str:
    """Lines as HTML: number, text, the marked ones on a coloured ground, gaps as dots."""
    palette = template.PALETTES[scope.mode]
    ground = template.translucent(palette.critical, 0.22)
    lines, before = [], None
    for place in kept:
        row = found.iloc[place]
        if before is None or row["file"] != before[0]:
            lines.append(
                f'<span style="color:{palette.muted}">{html.escape(str(row["file"]))}</span>'
            )
        elif place != before[1] + 1:
            lines.append(f'<span style="color:{palette.muted}">   ...</span>')
        before = (row["file"], place)
        text = html.escape(_CONTROL.sub("", str(row["text"]))[:LONGEST])
        number = f'<span style="color:{palette.muted}">{int(row["line_no"]):>6}</span>  '
        style = f' style="background:{ground}"' if marked[place] else ""
        lines.append(f"<span{style}>{number}{text}</span>")
    return (
        '<pre style="margin:0;padding:0.5rem 0.75rem;overflow-x:auto;font-size:0.8125rem;'
        f'line-height:1.45;border:1px solid {palette.grid};border-radius:4px">'
        + "\n".join(lines)
        + "</pre>"
    )


def _near(marked: Sequence[bool]) -> list[int]:
    """Places of the marked lines and of those around them."""
    places = [place for place, is_marked in enumerate(marked) if is_marked]
    near = {
        at
        for place in places
        for at in range(max(0, place - AROUND), min(len(marked), place + AROUND + 1))
    }
    return sorted(near)
