"""Pages: what stands at the foot of each, and how many there are."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

from app.show.drawings.style import PALETTE
from app.show.paper import styles

if TYPE_CHECKING:
    from io import BytesIO

    from reportlab.platypus import Flowable

    from app.reports.report import Report

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
        styles.register()
        y = _FOOT_Y
        canvas.saveState()
        canvas.setStrokeColor(HexColor(PALETTE.grid))
        canvas.setLineWidth(0.6)
        canvas.line(MARGIN, y + 4 * mm, MARGIN + WIDTH, y + 4 * mm)
        canvas.setFillColor(HexColor(PALETTE.muted))
        canvas.setFont(styles.TEXT, FOOT_PT)
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
            self.setFont(styles.TEXT, FOOT_PT)
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
