"""The forms that a report can be written in."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from data.disk_full import disk_full
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.reports.report import Report

MODULES = {
    "html": "html", "pdf": "pdf", "xlsx": "xlsx", "md": "markdown", "slack": "slack",
    "json": "document",
}  # fmt: skip
"""Form -> writer. One is loaded when it is first asked for."""
ENDINGS = {"slack": "slack.json"}
"""Ending of a file, where it is not its form."""
MIME = {
    "html": "text/html",
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "md": "text/markdown",
    "slack": "application/json",
    "json": "application/json",
}


def name(report: Report, form: str) -> str:
    """Name of the file, from page and command alike."""
    return f"{report.file_stem}.{ENDINGS.get(form, form)}"


def render(report: Report, form: str) -> bytes:
    """The file's content."""
    content = import_module(f"app.show.{MODULES[form]}").render(report)
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def write(report: Report, forms: Sequence[str], folder: Path) -> list[Path]:
    """Writes a report into `folder` in each form, replacing earlier ones; the paths.

    All of them or none: where one cannot be written, those before it and the folder made for them
    go too.
    """
    rendered = {name(report, form): render(report, form) for form in forms}
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    unfinished = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, content in rendered.items():
            unfinished.append(folder / f".{file_name}.part")
            unfinished[-1].write_bytes(content)
    except BaseException:
        for path in unfinished:
            path.unlink(missing_ok=True)
        for one in made:
            with suppress(OSError):
                one.rmdir()
        raise
    return [path.replace(folder / each) for path, each in zip(unfinished, rendered, strict=True)]


def write_file(path: Path, content: bytes) -> None:
    """Writes one file that a person named: all of it or nothing, and then an earlier one stays.

    A device or a pipe is written as it is.

    Raises
    ------
    DataError
        Where it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        target = path.resolve()  # of a link, what it leads to is replaced
        unfinished = target.with_name(f".{target.name}.part")
        try:
            unfinished.write_bytes(content)
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise disk_full(error, path.parent) or DataError(
            f"{path}: cannot be written ({error.strerror}): name another"
        ) from None
