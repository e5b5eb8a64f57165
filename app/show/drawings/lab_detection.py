"""Which indicator sees a flip of which bit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from app.show.drawings import style
from app.show.drawings.style import PALETTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from analytics.estimate import Estimate


def height(names: Sequence[str], bits: Sequence[int], grid: object) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    return (0.8 + 0.2 * len(names)) / style.WIDTH_INCHES


def draw(
    figure: Figure, names: Sequence[str], bits: Sequence[int], grid: Sequence[Sequence[Estimate]]
) -> None:
    """A cell an indicator and bit, the darker the more flips are seen."""
    axes = style.axes(figure, grid="none")
    shares = np.array([[100.0 * (cell.value or 0.0) for cell in row] for row in grid])
    colours = LinearSegmentedColormap.from_list("seen", [PALETTE.background, PALETTE.series])
    edges = np.arange(len(bits) + 1) - 0.5, np.arange(len(names) + 1) - 0.5
    cells = axes.pcolormesh(
        *edges, shares, cmap=colours, vmin=0, vmax=100, rasterized=True, zorder=0.5
    )  # one picture in place of hundreds of shapes
    for at in range(1, len(names)):
        axes.axhline(at - 0.5, color=PALETTE.background, linewidth=1.5)
    for at in range(1, len(bits)):
        axes.axvline(at - 0.5, color=PALETTE.background, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=PALETTE.text)
    shown = [at for at, bit in enumerate(bits) if bit in (30, 23, 16, 8, 0)]
    axes.set_xticks(shown, [str(bits[at]) for at in shown])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("Bit of the float32 (31 sign, 30 to 23 exponent, 22 to 0 mantissa)")
    bar = figure.colorbar(cells, ax=axes, pad=0.01, fraction=0.03)
    bar.set_label("Flips seen (%)")
    bar.outline.set_visible(False)
