"""Writes a report as one HTML file that opens offline: no script, and nothing to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.reports.content import Chart, Drawing, Table

if TYPE_CHECKING:
    from app.reports.content import Report


def render(report: Report) -> str:
    """The page; every text is escaped."""
    environment = Environment(
        loader=PackageLoader("app.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests |= {
        "table": lambda block: isinstance(block, Table),
        "chart": lambda block: isinstance(block, Chart),
        "drawing": lambda block: isinstance(block, Drawing),
    }
    return environment.get_template("report.html").render(report=report, svg=_svg).lstrip()


def _svg(chart: Chart) -> Markup:
    """A chart as it stands in the page; matplotlib escapes its texts."""
    from app.reports.charts import drawing  # takes a second to load, and not every page has charts

    return Markup(drawing.svg(chart))
