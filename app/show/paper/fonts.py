"""The fonts of paper, embedded: Source Sans as on the dashboard, DejaVu for what it lacks."""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

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
