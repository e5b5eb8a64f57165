"""Charts on paper: matplotlib draws into the canvas of a PDF, lines stay lines, text stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase, RendererBase
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from reportlab.platypus import Flowable

from app.show.drawings import style
from app.show.paper import styles

if TYPE_CHECKING:
    from matplotlib.backend_bases import GraphicsContextBase
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.pdfgen.pathobject import PDFPathObject

    from app.answers.content import Chart

POINTS_PER_INCH = 72
_CAPS = {"butt": 0, "round": 1, "projecting": 2}
_JOINS = {"miter": 0, "round": 1, "bevel": 2}


class ChartOnPaper(Flowable):
    """A chart as wide as the text, which leads to an address."""

    def __init__(self, chart: Chart, width: float, address: str = "") -> None:
        super().__init__()
        self._chart = chart
        self._address = address
        self.width = width
        self.height = width * style.height(chart)

    def draw(self) -> None:
        """Draws it where the page has put it."""
        canvas, scale = self.canv, self.width / (style.WIDTH_INCHES * POINTS_PER_INCH)
        with style.applied(*styles.known_to_charts()):
            canvas.saveState()
            canvas.scale(scale, scale)
            figure = style.drawn(self._chart)
            figure.dpi = POINTS_PER_INCH
            surface = _Surface(figure, _Strokes(canvas, *figure.get_size_inches()))
            figure.draw(surface.get_renderer())
            canvas.restoreState()
        if self._address:
            canvas.linkURL(self._address, (0, 0, self.width, self.height), relative=1)


class _Surface(FigureCanvasBase):
    """What a figure asks for its renderer when it lays itself out."""

    def __init__(self, figure: Figure, strokes: _Strokes) -> None:
        super().__init__(figure)
        self._strokes = strokes

    def get_renderer(self) -> _Strokes:
        """The renderer that measures and draws."""
        return self._strokes


class _Strokes(RendererBase):
    """Paths and texts on the canvas, in points."""

    def __init__(self, canvas: Canvas, width_inches: float, height_inches: float) -> None:
        super().__init__()
        self._canvas = canvas
        self.width, self.height = width_inches * POINTS_PER_INCH, height_inches * POINTS_PER_INCH

    def get_canvas_width_height(self) -> tuple[float, float]:
        """Size in points."""
        return self.width, self.height

    def flipy(self) -> bool:
        """A PDF counts from below, as matplotlib does."""
        return False

    def draw_path(
        self,
        gc: GraphicsContextBase,
        path: Path,
        transform: Transform,
        rgbFace: Any = None,  # noqa: N803 - as matplotlib calls it
    ) -> None:
        """A path, filled, hatched and stroked."""
        canvas = self._canvas
        canvas.saveState()
        self._clip(gc)
        traced = self._traced(path.transformed(transform))
        line = gc.get_linewidth() > 0 and gc.get_rgb()[3] > 0
        if rgbFace is not None:
            *colour, opacity = (*rgbFace, 1.0)[:4]
            given = gc.get_alpha() if gc.get_forced_alpha() else opacity
            canvas.setFillColorRGB(*colour, alpha=given)
        if gc.get_hatch():
            self._hatch(gc, traced, path.transformed(transform))
        if line:
            self._pen(gc)
        canvas.drawPath(traced, stroke=int(line), fill=int(rgbFace is not None))
        canvas.restoreState()

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        *_: Any,
        **__: Any,
    ) -> None:
        """A text that can be selected."""
        canvas = self._canvas
        canvas.saveState()
        canvas.translate(x, y)
        canvas.rotate(angle)
        canvas.setFillColorRGB(*gc.get_rgb()[:3])
        size, along = prop.get_size_in_points(), 0.0
        for font, piece in styles.runs(s):
            canvas.setFont(font, size)
            canvas.drawString(along, 0, piece)
            along += canvas.stringWidth(piece, font, size)
        canvas.restoreState()

    def _pen(self, gc: GraphicsContextBase) -> None:
        """Colour, width and dashes of lines."""
        canvas, (red, green, blue, opacity) = self._canvas, gc.get_rgb()
        canvas.setStrokeColorRGB(red, green, blue, alpha=opacity)
        canvas.setLineWidth(gc.get_linewidth())
        canvas.setLineCap(_CAPS[gc.get_capstyle()])
        canvas.setLineJoin(_JOINS[gc.get_joinstyle()])
        offset, dashes = gc.get_dashes()
        if dashes is not None:
            canvas.setDash([float(dash) for dash in np.ravel(dashes)], offset or 0)

    def _clip(self, gc: GraphicsContextBase) -> None:
        """What lies outside the axes is not drawn."""
        box = gc.get_clip_rectangle()
        if box is not None:
            traced = self._canvas.beginPath()
            traced.rect(*box.bounds)
            self._canvas.clipPath(traced, stroke=0, fill=0)

    def _hatch(self, gc: GraphicsContextBase, within: PDFPathObject, shape: Path) -> None:
        """The pattern, tile by tile, inside the path."""
        canvas, tile = self._canvas, gc.get_hatch_path()
        box = shape.get_extents()
        canvas.saveState()
        canvas.clipPath(within, stroke=0, fill=0)
        canvas.setStrokeColorRGB(*gc.get_hatch_color()[:3])
        canvas.setLineWidth(gc.get_hatch_linewidth())
        side = POINTS_PER_INCH
        for column in range(int(box.x0 // side), int(box.x1 // side) + 1):
            for row in range(int(box.y0 // side), int(box.y1 // side) + 1):
                place = Affine2D().scale(side).translate(column * side, row * side)
                canvas.drawPath(self._traced(tile.transformed(place)), stroke=1, fill=0)
        canvas.restoreState()

    def _traced(self, path: Path) -> PDFPathObject:
        """A path as the canvas takes it."""
        traced = self._canvas.beginPath()
        at = (0.0, 0.0)
        for points, code in path.iter_segments(simplify=False):
            if code == Path.MOVETO:
                traced.moveTo(*points)
            elif code == Path.LINETO:
                traced.lineTo(*points)
            elif code == Path.CURVE3:
                traced.curveTo(*_cubic(at, points))
            elif code == Path.CURVE4:
                traced.curveTo(*points)
            else:
                traced.close()
                continue
            at = (points[-2], points[-1])
        return traced


def _cubic(at: tuple[float, float], points: Any) -> tuple[float, ...]:
    """A quadratic curve as a cubic one."""
    (x0, y0), (x1, y1, x2, y2) = at, points
    return (
        x0 + 2 / 3 * (x1 - x0),
        y0 + 2 / 3 * (y1 - y0),
        x2 + 2 / 3 * (x1 - x2),
        y2 + 2 / 3 * (y1 - y2),
        x2,
        y2,
    )
