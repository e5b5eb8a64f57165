"""The command that reads a file again, for whoever takes an ingest back."""

from __future__ import annotations

import shlex
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from data.ingest.reader import Options
from data.ingest.readers.schedulers.sacct_fields import PRESETS

if TYPE_CHECKING:
    from data.ingest.reader import MappingFile

_OF_THE_STORE = (
    "default_cluster",
    "default_stated",
    "timezones",
    "remembered",
    "limits",
    "own_zone",
    "progress",
)
"""Options that a command does not take."""


def command(source: str, name: str, options: Options) -> str:
    """The command line that reads an input as it was read; a relative path becomes a whole one.

    >>> command("sacct", "/logs/week 1.txt", Options(cluster="a", partial=True))
    "faultline ingest sacct --cluster a --partial '/logs/week 1.txt'"
    """
    words = ["faultline", "ingest", source]
    for field in fields(Options):
        value = getattr(options, field.name)
        if value is None or value is False or field.name in _OF_THE_STORE:
            continue
        preset = next((name for name, columns in PRESETS.items() if columns == value), None)
        if preset is not None:
            words += ["--preset", preset]
            continue
        own = field.name == "timezone" and options.own_zone
        words.append(f"--{'file-' * own}{field.name.replace('_', '-')}")
        if value is not True:
            words.append(_written(value))
    words.append(name if name == "-" else str(Path(name).absolute()))
    return shlex.join(words)


def _written(value: str | float | tuple[str, ...] | datetime | MappingFile) -> str:
    """A value as the command takes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(getattr(value, "name", value))
    return str(Path(text).absolute()) if Path(text).is_file() else text
