"""Labels of many rows, placed at once: one by one Plotly checks all of them again for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Label:
    """A text beside the row `y` of a figure, right of its plot."""

    text: str
    y: float
    colour: str
    place: dict[str, object] = field(default_factory=dict)
    """Further properties of the annotation, in Plotly's words."""

    def annotation(self) -> dict[str, object]:
        """As Plotly wants it."""
        return {
            "text": self.text,
            "x": 1.0,
            "y": self.y,
            "xref": "paper",
            "yanchor": "middle",
            "xanchor": "left",
            "align": "left",
            "showarrow": False,
            "font": {"color": self.colour},
            **self.place,
        }


def add(chart: go.Figure, labels: list[Label]) -> None:
    """Places the labels of a figure that has none yet."""
    chart.update_layout(annotations=[label.annotation() for label in labels])
