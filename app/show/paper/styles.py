"""Fonts of paper, embedded, and styles of its paragraphs: Source Sans as on the dashboard, DejaVu
for what it lacks.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from app.show.drawings.style import PALETTE

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
