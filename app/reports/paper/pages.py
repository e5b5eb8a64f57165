"""Pages: what stands at the foot of each, and how many there are."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

from app.reports.charts.drawing import PALETTE
from app.reports.paper import fonts

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BytesIO

    from reportlab.pdfgen.canvas import Canvas
    from reportlab.platypus import Flowable

    from app.reports.content import Report

MARGIN, FOOT = 18 * mm, 20 * mm
WIDTH = A4[0] - 2 * MARGIN
"""Of the text, in points."""
HEIGHT = A4[1] - MARGIN - FOOT
FOOT_PT = 8


class Pages(BaseDocTemplate):
    """A document whose headings are bookmarks and whose pages are numbered."""

    def __init__(self, stream: BytesIO, report: Report, n_pages: int | None) -> None:
        self._words = f"{report.title} · {report.period}" + (
            " · synthetic" if report.synthetic else ""
        )
        self._n_pages = n_pages
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
            MARGIN, FOOT, WIDTH, HEIGHT, leftPadding=0, rightPadding=0, topPadding=0,
            bottomPadding=0,
        )  # fmt: skip
        self.addPageTemplates(PageTemplate(frames=[frame], onPage=self._foot))
        self._headings = 0

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
        fonts.register()
        y = FOOT - 9 * mm
        of = "" if self._n_pages is None else f" of {self._n_pages}"
        canvas.saveState()
        canvas.setStrokeColor(HexColor(PALETTE.grid))
        canvas.setLineWidth(0.6)
        canvas.line(MARGIN, y + 4 * mm, MARGIN + WIDTH, y + 4 * mm)
        canvas.setFillColor(HexColor(PALETTE.muted))
        canvas.setFont(fonts.TEXT, FOOT_PT)
        canvas.drawString(MARGIN, y, self._words)
        canvas.drawRightString(MARGIN + WIDTH, y, f"Page {canvas.getPageNumber()}{of}")
        canvas.restoreState()


def written(report: Report, story: Callable[[], list[Flowable]]) -> bytes:
    """The file. It is laid out twice: the first time to know how many pages there are."""
    counted = Pages(io.BytesIO(), report, None)
    counted.build(story())
    stream = io.BytesIO()
    Pages(stream, report, counted.page).build(story())
    return stream.getvalue()
