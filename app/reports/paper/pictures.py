"""Charts and timelines as parts of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from reportlab.lib.colors import HexColor
from reportlab.platypus import Flowable

from app.reports.charts import drawing
from app.reports.charts.drawing import PALETTE
from app.reports.paper import fonts, strokes

if TYPE_CHECKING:
    from app.reports.content import Chart
    from app.reports.timeline_svg import Picture, Shape

COLOURS = {"running": PALETTE.grid, "seed": PALETTE.critical, "consequence": PALETTE.muted}
RADIUS, HALF_BAR = 5.0, 4.0
"""Of marks and bars, as on the page in a browser."""
SIZE = 12.5
"""Of the timeline's words, in its own units."""


class ChartOnPaper(Flowable):
    """A chart as wide as the text."""

    def __init__(self, chart: Chart, width: float) -> None:
        super().__init__()
        self._chart = chart
        self.width = width
        self.height = width * chart.height

    def draw(self) -> None:
        """Draws it where the page has put it."""
        font = fonts.known_to_charts()
        with mpl.rc_context(drawing.paper_style(font)):
            self.canv.saveState()
            scale = self.width / (drawing.WIDTH_INCHES * strokes.POINTS_PER_INCH)
            self.canv.scale(scale, scale)
            strokes.draw(drawing.drawn(self._chart), self.canv)
            self.canv.restoreState()


class TimelineOnPaper(Flowable):
    """Lanes along time, as wide as the text."""

    def __init__(self, picture: Picture, width: float) -> None:
        super().__init__()
        self._picture = picture
        self._scale = width / picture.width
        self.width, self.height = width, picture.height * self._scale

    def draw(self) -> None:
        """Draws it where the page has put it; its own y counts from above."""
        canvas, picture = self.canv, self._picture
        canvas.saveState()
        canvas.scale(self._scale, self._scale)
        self._lines()
        for lane, end in zip(picture.lanes, picture.ends, strict=True):
            self._text(lane.x, lane.y + 4, lane.text, PALETTE.text)
            self._text(end.x, end.y + 4, end.text, PALETTE.muted)
        for shape in picture.shapes:
            self._mark(shape)
        for tick in picture.ticks:
            self._text(tick.x, tick.y, tick.text, PALETTE.muted, centred=True)
        self._text(picture.plot_to + 10, picture.axis_y + 18, "Time (UTC)", PALETTE.muted)
        canvas.restoreState()

    def _lines(self) -> None:
        """Lanes, the axis with its ticks, and where the incident began."""
        picture, canvas = self._picture, self.canv
        canvas.setStrokeColor(HexColor(PALETTE.grid))
        for y in [*(lane.y for lane in picture.lanes), picture.axis_y]:
            self._line(picture.plot_from, y, picture.plot_to, y)
        for tick in picture.ticks:
            self._line(tick.x, picture.axis_y, tick.x, picture.axis_y + 4)
        if picture.first is not None:
            canvas.setDash([3, 3])
            canvas.setStrokeColor(HexColor(PALETTE.muted))
            x = picture.first.x
            self._line(x, picture.first.y + 2, x, picture.axis_y)
            canvas.setDash()
            self._text(x + 4, picture.first.y + 4, picture.first.text, PALETTE.muted)

    def _mark(self, shape: Shape) -> None:
        """A bar, a diamond or a circle, by its role."""
        canvas, y = self.canv, self._picture.height - shape.y
        fatal = shape.role == "seed" and shape.severity == "fatal"
        colour = PALETTE.fatal if fatal else COLOURS.get(shape.role, PALETTE.background)
        canvas.setFillColor(HexColor(colour))
        canvas.setStrokeColor(HexColor(PALETTE.muted))
        ring = int(shape.role == "context")
        canvas.setLineWidth(2 * ring)
        if shape.width:
            canvas.rect(shape.x, y - HALF_BAR, shape.width, 2 * HALF_BAR, stroke=ring, fill=1)
        elif shape.role == "consequence":
            path = canvas.beginPath()
            path.moveTo(shape.x, y + 6)
            for x, height in ((6, 0), (0, -6), (-6, 0)):
                path.lineTo(shape.x + x, y + height)
            path.close()
            canvas.drawPath(path, stroke=0, fill=1)
        else:
            canvas.circle(shape.x, y, RADIUS, stroke=ring, fill=1)
        canvas.setLineWidth(1)

    def _line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        top = self._picture.height
        self.canv.line(x0, top - y0, x1, top - y1)

    def _text(self, x: float, y: float, text: str, colour: str, *, centred: bool = False) -> None:
        canvas, top = self.canv, self._picture.height
        canvas.setFillColor(HexColor(colour))
        canvas.setFont(fonts.TEXT, SIZE)
        (canvas.drawCentredString if centred else canvas.drawString)(x, top - y, text)
