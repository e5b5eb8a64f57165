"""Writes a report as one HTML file that opens offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

if TYPE_CHECKING:
    from pathlib import Path

    from app.reports.fleet import FleetReport


def render(report: FleetReport) -> str:
    """The page; every text is escaped."""
    environment = Environment(
        loader=PackageLoader("app.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("fleet.html").render(report=report)


def write(report: FleetReport, folder: Path) -> Path:
    """Writes the page to `folder`/fleet.html; the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fleet.html"
    path.write_text(render(report), encoding="utf-8")
    return path
