"""Where verdicts go wrong: right causes beside found ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers, template

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from analytics.failures.confusion import ConfusionMatrix
    from app.figures.template import Mode

ROW_HEIGHT = 24
FRAME_HEIGHT = 230
THOUSAND = 1_000
WHOLE_FROM = 9_950
"""Count from which thousands are written without a decimal."""
DARK_SHARE = 0.55
"""Share from which on a cell is so strong that its text takes the background's colour."""


def figure(matrix: ConfusionMatrix, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which causes are taken for which others? Colour is the share of the row."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Which causes are taken for which others?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(matrix.actual), 1),
    )
    shares = [[n / max(sum(row), 1) for n in row] for row in matrix.counts]
    chart.add_heatmap(
        x=list(range(len(matrix.found))),
        y=list(range(len(matrix.actual))),
        z=[[share or None for share in row] for row in shares],
        zmin=0,
        zmax=1,
        colorscale=[[0, template.translucent(palette.series, 0.08)], [1, palette.series]],
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=[
            [_says(matrix, row, column) for column in range(len(matrix.found))]
            for row in range(len(matrix.actual))
        ],
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    _add_counts(chart, matrix, shares=shares, mode=mode)
    _name_axes(chart, matrix, mode)
    return chart


def frame(matrix: ConfusionMatrix) -> pd.DataFrame:
    """One row a pair of right and found cause that occurs."""
    return pd.DataFrame(
        [
            {"actual": actual, "found": found, "attempts": n, "share_of_actual": n / sum(row)}
            for actual, row in zip(matrix.actual, matrix.counts, strict=True)
            for found, n in zip(matrix.found, row, strict=True)
            if n
        ],
        columns=["actual", "found", "attempts", "share_of_actual"],
    )


def scores(matrix: ConfusionMatrix) -> pd.DataFrame:
    """One row a cause: how often it is right, found, and both; precision and recall."""
    return pd.DataFrame(
        [
            {
                "cause": score.cause,
                "domain": score.domain,
                "actual": score.n_actual,
                "found": score.n_found,
                "right": score.n_right,
                **_columns("precision", score.precision),
                **_columns("recall", score.recall),
            }
            for score in matrix.scores
        ]
    )


def _columns(name: str, share: Estimate) -> dict[str, float | None]:
    """A share and its interval as columns."""
    return {name: share.value, f"{name}_lower": share.lower, f"{name}_upper": share.upper}


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
            f"{cause} ({sum(row):,})"
            for cause, row in zip(matrix.actual, matrix.counts, strict=True)
        ],
        tickfont=text,
        autorange="reversed",
        showgrid=False,
        ticklen=0,
    )


def _add_counts(
    chart: go.Figure, matrix: ConfusionMatrix, *, shares: list[list[float]], mode: Mode
) -> None:
    """The number of attempts in every cell that holds some."""
    palette = template.PALETTES[mode]
    for strong, colour in ((True, palette.background), (False, palette.text)):
        cells = [
            (column, row, n)
            for row, counts in enumerate(matrix.counts)
            for column, n in enumerate(counts)
            if n and (shares[row][column] > DARK_SHARE) == strong
        ]
        chart.add_scatter(
            x=[column for column, _, _ in cells],
            y=[row for _, row, _ in cells],
            text=[_compact(n) for _, _, n in cells],
            mode="text",
            textfont={"color": colour, "size": 11},
            hoverinfo="skip",
            name="counts",
        )


def _compact(n: int) -> str:
    """A count that fits a cell.

    >>> _compact(999), _compact(5926), _compact(21560)
    ('999', '5.9k', '22k')
    """
    if n < THOUSAND:
        return str(n)
    return f"{n / THOUSAND:.{1 if n < WHOLE_FROM else 0}f}k"


def _says(matrix: ConfusionMatrix, row: int, column: int) -> str:
    """What a cell says on hover."""
    n, of = matrix.counts[row][column], sum(matrix.counts[row])
    return (
        f"right: {matrix.actual[row]}<br>found: {matrix.found[column]}<br>"
        f"{n:,} of {numbers.counted(of, 'attempt')} ({numbers.percent(n / of if of else None)})"
    )
