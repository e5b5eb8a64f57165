"""Which harmful flips does a mitigation survive?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.show.drawings import style
from app.show.drawings.style import PALETTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from analytics.estimate import Estimate

SERIES = (
    ("no harm any more", PALETTE.series, "o", -0.14),
    ("at least kept finite", PALETTE.reference, "D", 0.14),
)


def height(names: Sequence[str], survived: object, finite: object) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    return (1.1 + 0.36 * len(names)) / style.WIDTH_INCHES


def draw(
    figure: Figure, names: Sequence[str], survived: Sequence[Estimate], finite: Sequence[Estimate]
) -> None:
    """Shares with their intervals, a row a mitigation."""
    axes = style.axes(figure, grid="x")
    for (title, colour, mark, lift), rates in zip(SERIES, (survived, finite), strict=True):
        for at, rate in enumerate(rates):
            if rate.value is None or rate.lower is None or rate.upper is None:
                continue
            axes.hlines(at + lift, 100 * rate.lower, 100 * rate.upper, color=colour, linewidth=1.2)
            axes.plot([100 * rate.value], [at + lift], mark, color=colour, markersize=5,
                      label=title if at == 0 else None)  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=PALETTE.text)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("Share of the flips that are harmful without it (%)")
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
