"""A reduction by `faultline reduce`: those of its days that are new, or were made anew."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from data.collect.source import Fetched, Input, ReadFile, Window
from data.errors import SourceError
from data.reduce.manifest import NAME, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.collect.source import Asking, Settings
    from data.reduce.manifest import Done, Manifest

AT_ONCE = 50
"""Days that are read before what they brought is published."""


class Reduction:
    """The folder of a reduction: a day is read again once the manifest names other files of it.

    It is collected until the manifest was written last.
    """

    of_slurm = False

    def __init__(self, settings: Settings, folder: str) -> None:
        self.settings, self._folder = settings, Path(folder)

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """What is new, some days at a time; the last answer says until when."""
        manifest = load(self._folder)
        if manifest is None:
            raise SourceError(f"{self._folder}: holds no {NAME} of `faultline reduce`: check it")
        known = {} if asking.since is not None else {one.path: one for one in asking.known.files}
        days = [self._read(day, done) for day, done in sorted(manifest.partitions.items())]
        inputs = []
        for read in days:
            if read == known.get(read.path):
                continue
            inputs.append(self._input(manifest, read, asking.folder))
            if len(inputs) >= AT_ONCE:
                yield Fetched(tuple(inputs), None, str(self._folder))
                inputs = []
        there = tuple(read.path for read in days)
        yield Fetched(tuple(inputs), self._window(asking), str(self._folder), there=there)

    def _read(self, day: str, done: Done) -> ReadFile:
        """A day as it is, by its files."""
        names = hashlib.sha256(json.dumps(done.files, sort_keys=True).encode()).hexdigest()
        return ReadFile(f"{self._folder}/{day}", 0, sum(done.rows_out.values()), 0, names)

    def _input(self, manifest: Manifest, read: ReadFile, place: Path) -> Input:
        """A manifest of one day, beside ways to the folder's files."""
        day = Path(read.path).name
        folder = place / day
        folder.mkdir()
        for kind in manifest.partitions[day].files:
            (folder / kind).symlink_to((self._folder / kind).absolute())
        replace(manifest, partitions={day: manifest.partitions[day]}).save(folder)
        return Input(folder / NAME, read.path, read)

    def _window(self, asking: Asking) -> Window | None:
        """Until when the manifest tells; None where it tells nothing new."""
        written_at = datetime.fromtimestamp((self._folder / NAME).stat().st_mtime, UTC)
        margin = timedelta(seconds=self.settings.timing.margin_s)
        until = min(written_at.replace(microsecond=0), asking.now - margin)
        before = asking.known.until_at
        if before is not None and until <= before:
            return None
        return Window(before if asking.since is None else asking.since, until)
