"""How the domains of failure are coloured in every figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words.domains import TITLES

if TYPE_CHECKING:
    from app.figures.template import Mode

SHADES = (1.0, 0.7, 0.5, 0.38, 0.3, 0.24)
"""Strength of the domain's colour for its first, second, ... cause."""
PATTERNS = {"hardware": "", "system_software": "-", "user": "x", "unknown": "/"}
SYMBOLS = {
    "hardware": "circle", "system_software": "diamond", "user": "square", "unknown": "circle-open",
}  # fmt: skip
"""Signs of the domains beside their colour: of bars and of marks."""
LONGEST = 38
"""Letters of a title that stand in a figure; all of them on hover."""


def colour(domain: str, mode: Mode, rank: int = 0) -> str:
    """Colour of a domain, fainter for each further cause in it."""
    palette = template.PALETTES[mode]
    full = str(getattr(palette, domain, palette.unknown))
    return template.mixed(full, palette.background, SHADES[min(rank, len(SHADES) - 1)])


def fill(domain: str, mode: Mode, rank: int = 0) -> dict[str, object]:
    """Marker of a bar: the domain's colour; hatched where the domain is unknown."""
    palette = template.PALETTES[mode]
    shade = colour(domain, mode, rank)
    if domain in TITLES and domain != "unknown":
        edge = {"width": 1, "color": colour(domain, mode)}
        return template.patterned(PATTERNS[domain], shade, mode) | {"line": edge}
    faint = template.mixed(shade, palette.background, SHADES[3])
    pattern = template.HATCH | {"fgcolor": shade, "bgcolor": faint}
    return {"color": palette.background, "pattern": pattern, "line": {"width": 1, "color": shade}}


def short(title: str) -> str:
    """A title without what stands in brackets, cut where it is long.

    >>> short("GPU memory error (HBM: ECC, row remapping)")
    'GPU memory error'
    """
    text = title.partition(" (")[0]
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"
