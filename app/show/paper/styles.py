"""The styles of paragraphs on paper: three sizes of text, and the small print of tables."""

from __future__ import annotations

from functools import cache

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.styles import ParagraphStyle

from app.show.drawings.style import PALETTE
from app.show.paper import fonts

GROUND, MARK, BADGE, BADGE_TEXT = "#f3f6f9", "#fff3dc", "#fff3dc", "#7a4a00"


def _style(name: str, size: float, colour: str = PALETTE.text, **more: object) -> ParagraphStyle:
    settings = {"fontName": fonts.TEXT, "leading": size * 1.3, "textColor": HexColor(colour)}
    return ParagraphStyle(name, fontSize=size, **(settings | more))


fonts.register()
TITLE = _style("title", 20, fontName=fonts.BOLD)
ANSWER = _style("answer", 15, spaceBefore=10, spaceAfter=6, leading=19)
BODY = _style("body", 10, spaceAfter=4)
BULLET = _style("bullet", 10, leftIndent=11, bulletIndent=1, spaceAfter=2.5)
NOTE = _style("note", 9.5, backColor=HexColor(GROUND), borderPadding=(4, 6, 5, 6), spaceBefore=9,
              spaceAfter=9, leftIndent=6, rightIndent=6)  # fmt: skip
MUTED = _style("muted", 8.5, PALETTE.muted)
BADGED = _style("badge", 9, BADGE_TEXT, fontName=fonts.BOLD, backColor=HexColor(BADGE),
                borderPadding=(2, 5, 3, 5), leftIndent=5, spaceAfter=8)  # fmt: skip
SECTION = _style("section", 14, fontName=fonts.BOLD, spaceBefore=16, spaceAfter=5)
TABLE = _style("table", 10.5, fontName=fonts.BOLD, spaceBefore=9, spaceAfter=3)
LABEL = _style("label", 8.5, PALETTE.muted)
VALUE = _style("value", 14, fontName=fonts.BOLD, leading=17)
TERM = _style("term", 9, fontName=fonts.BOLD, spaceBefore=5)
DEFINITION = _style("definition", 9, PALETTE.muted)
HEAD = _style("head", 8, fontName=fonts.BOLD, leading=9.6)
CELL = _style("cell", 8.5, leading=10.4)
LOG = _style("log", 6.8, fontName=fonts.MONO, leading=8.6)
LINE_NUMBER = _style("line_number", 6.8, PALETTE.muted, fontName=fonts.MONO, leading=8.6,
                     alignment=TA_RIGHT)  # fmt: skip


@cache
def to_the_right(style: ParagraphStyle) -> ParagraphStyle:
    """The same, for numbers."""
    return ParagraphStyle(f"{style.name}_right", parent=style, alignment=TA_RIGHT)
