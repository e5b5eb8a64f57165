"""The badge that stands on every page that shows generated data."""

from __future__ import annotations

LABEL = "synthetic data"


def markdown() -> str:
    """The badge as part of a line of text."""
    return f":violet-badge[:material/science: {LABEL}]"
