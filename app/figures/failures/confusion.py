"""Where verdicts go wrong: right causes beside found ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.failures.confusion import ConfusionMatrix
    from app.figures.template import Mode

ROW_HEIGHT = 24
FRAME_HEIGHT = 230
THOUSAND = 1_000
WHOLE_FROM = 9_950
"""Count from which thousands are written without a decimal."""
FAINT = 0.08
"""Strength of the colour of the smallest share."""


def figure(matrix: ConfusionMatrix, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which causes are taken for which others? Colour is the share of the row."""
    series = template.PALETTES[mode].series
    chart = template.figure(
        title="Which causes are taken for which others?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(matrix.actual), 1),
    )
    says = [
        [
            f"right: {actual}<br>found: {named}<br>{n:,} of {numbers.counted(of, 'attempt')} "
            f"({numbers.percent(n / of if of else None)})"
            for named, n in zip(matrix.found, counts, strict=True)
        ]
        for actual, counts, of in zip(matrix.actual, matrix.counts, matrix.n_by_actual, strict=True)
    ]
    chart.add_heatmap(
        x=list(range(len(matrix.found))),
        y=list(range(len(matrix.actual))),
        z=[[share or None for share in row] for row in matrix.shares_of_actual],
        zmin=0,
        zmax=1,
        colorscale=[[0, template.translucent(series, FAINT)], [1, series]],
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=says,
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    template.pickable(
        chart,
        (
            (column, row, "", says[row][column])
            for row, counts in enumerate(matrix.counts)
            for column, n in enumerate(counts)
            if n
        ),
    )
    _add_counts(chart, matrix, mode)
    _name_axes(chart, matrix, mode)
    return chart


def _name_axes(chart: go.Figure, matrix: ConfusionMatrix, mode: Mode) -> None:
    """Causes on both axes: rows with their number."""
    text = {"color": template.PALETTES[mode].text}
    chart.update_xaxes(
        title="Cause that was found",
        tickvals=list(range(len(matrix.found))),
        ticktext=list(matrix.found),
        tickangle=-45,
        tickfont=text,
        ticklen=0,
    )
    chart.update_yaxes(
        title="Right cause (attempts)",
        tickvals=list(range(len(matrix.actual))),
        ticktext=[
            f"{cause} ({n:,})" for cause, n in zip(matrix.actual, matrix.n_by_actual, strict=True)
        ],
        tickfont=text,
        autorange="reversed",
        showgrid=False,
        ticklen=0,
    )


def _add_counts(chart: go.Figure, matrix: ConfusionMatrix, mode: Mode) -> None:
    """The number of attempts in every cell that holds some."""
    by_colour: dict[str, list[tuple[int, int, int]]] = {}
    for row, counts in enumerate(matrix.counts):
        for column, n in enumerate(counts):
            if n:
                ground = cell(matrix.shares_of_actual[row][column], mode)
                by_colour.setdefault(template.text_on(ground), []).append((column, row, n))
    for colour, cells in by_colour.items():
        chart.add_scatter(
            x=[column for column, _, _ in cells],
            y=[row for _, row, _ in cells],
            text=[_compact(n) for _, _, n in cells],
            mode="text",
            textfont={"color": colour, "size": 11},
            hoverinfo="skip",
            name="counts",
        )


def cell(share: float, mode: Mode) -> str:
    """Colour of a cell by its share of the row."""
    palette = template.PALETTES[mode]
    return template.mixed(palette.series, palette.background, FAINT + (1 - FAINT) * share)


def _compact(n: int) -> str:
    """A count that fits a cell.

    >>> _compact(999), _compact(5926), _compact(21560)
    ('999', '5.9k', '22k')
    """
    if n < THOUSAND:
        return str(n)
    return f"{n / THOUSAND:.{1 if n < WHOLE_FROM else 0}f}k"
