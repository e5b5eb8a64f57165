"""Writes a report as one HTML file that opens offline: no script, and nothing to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.answers.content import Chart, Table

if TYPE_CHECKING:
    from app.reports.report import Report


def render(report: Report) -> str:
    """The page; every text is escaped."""
    environment = Environment(
        loader=PackageLoader("app.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests |= {
        "table": lambda block: isinstance(block, Table),
        "chart": lambda block: isinstance(block, Chart),
    }
    return environment.get_template("report.html").render(report=report, svg=_svg).lstrip()


def _svg(chart: Chart) -> Markup:
    """A chart as it stands in the page; matplotlib escapes its texts."""
    from app.show.drawings import style  # takes a second to load, and not every page has charts

    return Markup(style.svg(chart))
