"""What makes a machine faulty on a site, as learnt from its own samples: a small JSON file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from analytics.nodes.machines.detection import Settings
from data.disk_full import disk_full
from data.errors import DataError

MOST_BYTES = 100_000


def read_settings(path: str) -> Settings:
    """The settings in a file; what it does not name is as shipped.

    Raises
    ------
    DataError
        Where it cannot be read, or holds what is no setting.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as stream:
            found: Any = json.loads(stream.read(MOST_BYTES))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: is no file of settings ({error}): write one with --learn"
        ) from None
    known = {field.name for field in dataclasses.fields(Settings)}
    if not isinstance(found, dict) or not set(found) <= known:
        raise DataError(
            f"{path}: must be an object of {', '.join(sorted(known))}: write one with --learn"
        )
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise DataError(f"{path}: {name} must be a number above 0, got {value!r:.60}")
    return Settings(**found)


def write_settings(path: str, settings: Settings) -> None:
    """Writes them.

    Raises
    ------
    DataError
        Where the file cannot be written.
    """
    try:
        Path(path).write_text(json.dumps(dataclasses.asdict(settings), indent=1) + "\n")
    except OSError as error:
        raise disk_full(error, Path(path).parent) or DataError(
            f"{path}: cannot be written ({error.strerror}): name another"
        ) from None
