"""The forms that a report can be written in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from app.reports.report import Report

MODULES = {"html": "html", "pdf": "pdf", "xlsx": "xlsx", "md": "markdown", "json": "document"}
"""Ending of the file -> writer. One is loaded when it is first asked for."""
MIME = {
    "html": "text/html",
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "md": "text/markdown",
    "json": "application/json",
}


def render(report: Report, form: str) -> bytes:
    """The file's content."""
    content = import_module(f"app.show.{MODULES[form]}").render(report)
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def write(report: Report, form: str, folder: Path) -> Path:
    """Writes one file into `folder`, replacing an earlier one at once; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.stem}.{form}"
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_bytes(render(report, form))
    return unfinished.replace(path)
