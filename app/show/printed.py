"""Paper: fonts and styles, pages with their feet, and tables of which no row is cut in two."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    LongTable,
    PageTemplate,
    Paragraph,
    TableStyle,
)

from app.show.drawings.style import PALETTE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BytesIO

    from reportlab.platypus import Flowable

    from app.answers.content import Excerpt, Table
    from app.reports.report import Report
    from app.words.addresses import Dashboard

TEXT, BOLD, MONO, OTHER = "SourceSans", "SourceSans-Semibold", "DejaVuSansMono", "DejaVuSans"
FAMILIES = ("Source Sans Pro", "DejaVu Sans")
"""How matplotlib names the fonts of texts."""


@cache
def register() -> None:
    """Makes the fonts known, once a process."""
    for name, path in _files().items():
        pdfmetrics.registerFont(TTFont(name, str(path)))


@cache
def known_to_charts() -> tuple[str, ...]:
    """Makes the fonts of texts known to matplotlib; their names there."""
    from matplotlib import font_manager

    for name in (TEXT, BOLD):
        font_manager.fontManager.addfont(str(_files()[name]))
    return FAMILIES


def runs(text: str, font: str = TEXT) -> list[tuple[str, str]]:
    """Pieces of a text, each with its font: what the font lacks stands in the other one."""
    register()
    glyphs = pdfmetrics.getFont(font).face.charToGlyph
    groups = groupby(text, key=lambda letter: ord(letter) in glyphs or letter.isspace())
    return [(font if there else OTHER, "".join(letters)) for there, letters in groups]


def markup(text: str, font: str = TEXT) -> str:
    """Text as markup of a paragraph; what the font lacks stands in the other one.

    >>> markup("a < b")
    'a &lt; b'
    """
    return "".join(
        escape(piece) if its_font == font else f'<font name="{its_font}">{escape(piece)}</font>'
        for its_font, piece in runs(text, font)
    )


def linked(marked: str, address: str) -> str:
    """Markup that leads to an address; the markup alone where there is none.

    >>> linked("Job 7", "https://f.example/job?job=7&period=all")
    '<a href="https://f.example/job?job=7&amp;period=all" color="#155fa0">Job 7</a>'
    """
    if not address:
        return marked
    return f"<a href={quoteattr(address)} color={quoteattr(PALETTE.series)}>{marked}</a>"


@cache
def _files() -> dict[str, Path]:
    """Where the fonts are: in packages that come with Faultline."""
    import matplotlib as mpl

    source = distribution("font-source-sans-pro")
    found = {
        name: Path(str(source.locate_file(f"font_source_sans_pro/files/SourceSansPro-{cut}.ttf")))
        for name, cut in ((TEXT, "Regular"), (BOLD, "Semibold"))
    }
    shipped = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return found | {MONO: shipped / "DejaVuSansMono.ttf", OTHER: shipped / "DejaVuSans.ttf"}


GROUND, MARK, BADGE, BADGE_TEXT = "#f3f6f9", "#fff3dc", "#fff3dc", "#7a4a00"


def _style(name: str, size: float, colour: str = PALETTE.text, **more: object) -> ParagraphStyle:
    settings = {"fontName": TEXT, "leading": size * 1.3, "textColor": HexColor(colour)}
    return ParagraphStyle(name, fontSize=size, **(settings | more))


register()
TITLE = _style("title", 20, fontName=BOLD)
ANSWER = _style("answer", 15, spaceBefore=10, spaceAfter=6, leading=19)
BODY = _style("body", 10, spaceAfter=4)
BULLET = _style("bullet", 10, leftIndent=11, bulletIndent=1, spaceAfter=2.5)
NOTE = _style("note", 9.5, backColor=HexColor(GROUND), borderPadding=(4, 6, 5, 6), spaceBefore=9,
              spaceAfter=9, leftIndent=6, rightIndent=6)  # fmt: skip
MUTED = _style("muted", 8.5, PALETTE.muted)
BADGED = _style("badge", 9, BADGE_TEXT, fontName=BOLD, backColor=HexColor(BADGE),
                borderPadding=(2, 5, 3, 5), leftIndent=5, spaceAfter=8)  # fmt: skip
SECTION = _style("section", 14, fontName=BOLD, spaceBefore=16, spaceAfter=5)
TABLE = _style("table", 10.5, fontName=BOLD, spaceBefore=9, spaceAfter=3)
LABEL = _style("label", 8.5, PALETTE.muted)
VALUE = _style("value", 14, fontName=BOLD, leading=17)
TERM = _style("term", 9, fontName=BOLD, spaceBefore=5)
DEFINITION = _style("definition", 9, PALETTE.muted)
FINE = _style("fine", 7.5, PALETTE.muted, leading=9.4, spaceAfter=1.5)
HEAD = _style("head", 8, fontName=BOLD, leading=9.6)
CELL = _style("cell", 8.5, leading=10.4)
LOG = _style("log", 6.8, fontName=MONO, leading=8.6)
LINE_NUMBER = _style("line_number", 6.8, PALETTE.muted, fontName=MONO, leading=8.6,
                     alignment=TA_RIGHT)  # fmt: skip


@cache
def to_the_right(style: ParagraphStyle) -> ParagraphStyle:
    """The same, for numbers."""
    return ParagraphStyle(f"{style.name}_right", parent=style, alignment=TA_RIGHT)


MARGIN, FOOT = 18 * mm, 20 * mm
WIDTH = A4[0] - 2 * MARGIN
"""Of the text, in points."""
HEIGHT = A4[1] - MARGIN - FOOT
FOOT_PT = 8
_FOOT_Y = FOOT - 9 * mm
_FOOT_BOX = (MARGIN, 0, MARGIN + WIDTH, FOOT)


class Pages(BaseDocTemplate):
    """A document whose headings are bookmarks and whose pages are numbered."""

    def __init__(self, stream: BytesIO, report: Report, spared: float) -> None:
        self._words = f"{report.title} · {report.period}" + (
            " · synthetic" if report.synthetic else ""
        )
        super().__init__(
            stream,
            pagesize=A4,
            title=report.title,
            subject=f"{report.period}, {report.filters}",
            author="Faultline",
            creator="Faultline",
            producer="Faultline",
            lang="en",
            invariant=1,  # no time of writing: the same report is the same file
            pageCompression=1,
        )
        frame = Frame(
            MARGIN, FOOT + spared, WIDTH, HEIGHT - spared, leftPadding=0, rightPadding=0,
            topPadding=0, bottomPadding=0,
        )  # fmt: skip
        self.addPageTemplates(PageTemplate(frames=[frame], onPage=self._foot))
        self._headings = 0
        self.filled = 0.0
        """Share of the last page's height that is printed on."""

    def afterPage(self) -> None:  # noqa: N802 - as reportlab calls it
        """Takes down how far the page is filled."""
        self.filled = (FOOT + HEIGHT - self.frame._y) / HEIGHT

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802 - as reportlab calls it
        """A heading becomes a bookmark."""
        title = getattr(flowable, "bookmark", None)
        if title is not None:
            key = f"heading-{self._headings}"
            self._headings += 1
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(title, key, level=0)

    def _foot(self, canvas: Canvas, _: Pages) -> None:
        """The report's name on the left, the page on the right."""
        register()
        y = _FOOT_Y
        canvas.saveState()
        canvas.setStrokeColor(HexColor(PALETTE.grid))
        canvas.setLineWidth(0.6)
        canvas.line(MARGIN, y + 4 * mm, MARGIN + WIDTH, y + 4 * mm)
        canvas.setFillColor(HexColor(PALETTE.muted))
        canvas.setFont(TEXT, FOOT_PT)
        canvas.drawString(MARGIN, y, self._words)
        canvas.doForm(_number(canvas.getPageNumber()))  # drawn once all pages are laid out
        canvas.restoreState()


class _Numbered(Canvas):
    """A canvas that draws the number of each page once all are laid out."""

    def save(self) -> None:
        """Draws the numbers, then writes the file."""
        n_pages = self.getPageNumber() - 1
        for page in range(1, n_pages + 1):
            self.beginForm(_number(page), *_FOOT_BOX)
            self.setFillColor(HexColor(PALETTE.muted))
            self.setFont(TEXT, FOOT_PT)
            self.drawRightString(MARGIN + WIDTH, _FOOT_Y, f"Page {page} of {n_pages}")
            self.endForm()
        super().save()


def _number(page: int) -> str:
    """Name of the drawing of a page's number."""
    return f"number-{page}"


@dataclass(frozen=True)
class Written:
    """A file, and how its pages came out."""

    content: bytes
    n_pages: int
    last_filled: float
    """Share of the last page's height that is printed on."""


def written(report: Report, story: list[Flowable], spared: float = 0.0) -> Written:
    """The file; so many points at the foot of each page stay empty."""
    stream = io.BytesIO()
    pages = Pages(stream, report, spared)
    pages.build(story, canvasmaker=_Numbered)
    return Written(stream.getvalue(), pages.page, pages.filled)


GAP = 9.0
"""Points between columns."""
WIDEST = 0.62
"""Share of the page that one column takes at most."""
NUMBERS_WIDTH = 32.0
"""Width of the numbers of lines of a log."""


def table(found: Table, dashboard: Dashboard | None = None) -> LongTable:
    """A table of the report; its cells lead to pages of the dashboard, where one is known."""
    aligned, leads = found.aligned, found.linked(dashboard)
    widths = _widths(found.headers, found.printed, aligned)
    head = [_cell(text, place, HEAD) for text, place in zip(found.headers, aligned, strict=True)]
    rows = [
        [_cell(text, place, CELL, to) for text, place, to in zip(row, aligned, of, strict=True)]
        for row, of in zip(found.printed, leads, strict=True)
    ]
    return _ruled([head, *rows], widths, header=True)


def facts(rows: Sequence[tuple[str, str]]) -> LongTable:
    """Names and what they are."""
    cells = [[_cell(name, "text", MUTED), _cell(value, "text", CELL)] for name, value in rows]
    return _ruled(cells, [0.18 * WIDTH, 0.82 * WIDTH], header=False)


def excerpt(found: Excerpt) -> LongTable:
    """Lines of a log; those that count on a coloured ground."""
    rows = [
        [
            Paragraph(str(line.line_no), LINE_NUMBER),
            Paragraph(markup(line.text, MONO).replace("  ", "\u00a0 "), LOG),
        ]
        for line in found.lines
    ]
    marked = [
        ("BACKGROUND", (0, place), (-1, place), HexColor(MARK))
        for place, line in enumerate(found.lines)
        if line.counts
    ]
    laid = LongTable(rows, [NUMBERS_WIDTH, WIDTH - NUMBERS_WIDTH], splitInRow=0)
    laid.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, -1), HexColor(GROUND)),
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
    chosen = to_the_right(style) if place == "number" else style
    return Paragraph(linked(markup(text, style.fontName), to), chosen)


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
        words = [_wide(word, HEAD) for word in header.split()] or [0.0]
        whole = [_wide(text, CELL) for text in cells] or [0.0]
        parts = [_wide(word, CELL) for text in cells for word in text.split()] or [0.0]
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
