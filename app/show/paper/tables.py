"""Tables on paper: as wide as they must be, their header on every page, no row cut in two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportlab.lib.colors import HexColor
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import LongTable, Paragraph, TableStyle

from app.show.drawings.style import PALETTE
from app.show.paper import styles
from app.show.paper.pages import WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reportlab.lib.styles import ParagraphStyle

    from app.answers.content import Excerpt, Table
    from app.words.addresses import Dashboard

GAP = 9.0
"""Points between columns."""
WIDEST = 0.62
"""Share of the page that one column takes at most."""
LINE_NUMBER = 32.0
"""Width of the numbers of lines of a log."""


def table(found: Table, dashboard: Dashboard | None = None) -> LongTable:
    """A table of the report; its cells lead to pages of the dashboard, where one is known."""
    aligned, leads = found.aligned, found.linked(dashboard)
    widths = _widths(found.headers, found.printed, aligned)
    head = [
        _cell(text, place, styles.HEAD) for text, place in zip(found.headers, aligned, strict=True)
    ]
    rows = [
        [
            _cell(text, place, styles.CELL, to)
            for text, place, to in zip(row, aligned, of, strict=True)
        ]
        for row, of in zip(found.printed, leads, strict=True)
    ]
    return _ruled([head, *rows], widths, header=True)


def facts(rows: Sequence[tuple[str, str]]) -> LongTable:
    """Names and what they are."""
    cells = [
        [_cell(name, "text", styles.MUTED), _cell(value, "text", styles.CELL)]
        for name, value in rows
    ]
    return _ruled(cells, [0.18 * WIDTH, 0.82 * WIDTH], header=False)


def excerpt(found: Excerpt) -> LongTable:
    """Lines of a log; those that count on a coloured ground."""
    rows = [
        [
            Paragraph(str(line.line_no), styles.LINE_NUMBER),
            Paragraph(styles.markup(line.text, styles.MONO).replace("  ", "\u00a0 "), styles.LOG),
        ]
        for line in found.lines
    ]
    marked = [
        ("BACKGROUND", (0, place), (-1, place), HexColor(styles.MARK))
        for place, line in enumerate(found.lines)
        if line.counts
    ]
    laid = LongTable(rows, [LINE_NUMBER, WIDTH - LINE_NUMBER], splitInRow=0)
    laid.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, -1), HexColor(styles.GROUND)),
                ("TOPPADDING", (0, 0), (-1, -1), 1),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 1),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                *marked,
            ]
        )
    )
    return laid


def _cell(text: str, place: str, style: ParagraphStyle, to: str = "") -> Paragraph:
    """A cell's text, aligned as its column is, which leads to an address."""
    chosen = styles.to_the_right(style) if place == "number" else style
    return Paragraph(styles.linked(styles.markup(text, style.fontName), to), chosen)


def _ruled(rows: list[list[Paragraph]], widths: list[float], *, header: bool) -> LongTable:
    """Rows with a thin line below each."""
    laid = LongTable(rows, widths, repeatRows=int(header), splitByRow=1, splitInRow=0)
    laid.setStyle(
        TableStyle(
            [
                ("LINEBELOW", (0, 0), (-1, -1), 0.5, HexColor(PALETTE.grid)),
                *(
                    [("LINEBELOW", (0, 0), (-1, 0), 0.9, HexColor(PALETTE.unknown))]
                    if header
                    else []
                ),
                ("LEFTPADDING", (0, 0), (-1, -1), 0),
                ("RIGHTPADDING", (0, 0), (-2, -1), GAP),
                ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
                ("TOPPADDING", (0, 0), (-1, -1), 2.2),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 2.6),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("VALIGN", (0, 0), (-1, 0), "BOTTOM" if header else "TOP"),
            ]
        )
    )
    return laid


def _widths(
    headers: Sequence[str], rows: Sequence[Sequence[str]], aligned: Sequence[str]
) -> list[float]:
    """Widths of the columns: numbers and times on one line, texts share what is left."""
    least, best = [], []
    for place, header in enumerate(headers):
        cells = [row[place] for row in rows]
        words = [_wide(word, styles.HEAD) for word in header.split()] or [0.0]
        whole = [_wide(text, styles.CELL) for text in cells] or [0.0]
        parts = [_wide(word, styles.CELL) for text in cells for word in text.split()] or [0.0]
        broken = max(whole) if aligned[place] != "text" else min(max(parts), 0.2 * WIDTH)
        least.append(max(*words, broken) + GAP + 1)
        best.append(max(*words, min(max(whole), WIDEST * WIDTH)) + GAP + 1)
    least[-1], best[-1] = least[-1] - GAP, best[-1] - GAP
    if sum(best) <= WIDTH:
        spare = (WIDTH - sum(best)) / len(best)
        return [width + spare for width in best]
    if sum(least) >= WIDTH:
        return [width * WIDTH / sum(least) for width in least]
    share = (WIDTH - sum(least)) / (sum(best) - sum(least))
    return [low + share * (high - low) for low, high in zip(least, best, strict=True)]


def _wide(text: str, style: ParagraphStyle) -> float:
    return float(stringWidth(text, style.fontName, style.fontSize))
