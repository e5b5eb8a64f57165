"""Writes a report as one HTML file that opens offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.reports.incident import IncidentReport
from app.reports.timeline_svg import picture

if TYPE_CHECKING:
    from pathlib import Path

    from app.reports.fleet import FleetReport


def render(report: FleetReport | IncidentReport) -> str:
    """The page; every text is escaped."""
    environment = Environment(
        loader=PackageLoader("app.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    if isinstance(report, IncidentReport):
        drawn = picture(report.timeline)
        return environment.get_template("incident.html").render(report=report, picture=drawn)
    return environment.get_template("fleet.html").render(report=report)


def write(report: FleetReport | IncidentReport, folder: Path) -> Path:
    """Writes the page to `folder`/fleet.html or incident-<id>.html; the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    incident = isinstance(report, IncidentReport)
    path = folder / (f"incident-{report.incident_id}.html" if incident else "fleet.html")
    path.write_text(render(report), encoding="utf-8")
    return path
