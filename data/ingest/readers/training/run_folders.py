"""Folders of a run's metrics: the files of one logger below them, each opened in turn."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.source import opened
from data.ingest.reader import Source
from data.inside import Inside, LeftOutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from data.ingest.readers.training.step_records import StepRecords


class RunFolder:
    """The files below a folder.

    Links that lead out of it are left out, files that cannot be read are rejected.
    """

    def __init__(self, folder: Path, shown: str) -> None:
        self._inside, self._digest = Inside(folder), hashlib.sha256()
        self.folder, self.shown = folder, shown
        self.n_files = 0

    def files(
        self, is_wanted: Callable[[str], bool], records: StepRecords, workdir: Path, *, none: str
    ) -> Iterator[tuple[str, Source]]:
        """Path below the folder and content of each wanted file, in the order of paths.

        Raises
        ------
        SourceError
            At the end, where there was none: `none` says so.
        """
        for found in self._wanted(is_wanted, records, workdir):
            yield found
            records.options.progress(f"{self.shown}: {self.n_files:,} files")
        if not self.n_files:
            raise SourceError(f"{self.shown}: {none}")

    def _wanted(
        self, is_wanted: Callable[[str], bool], records: StepRecords, workdir: Path
    ) -> Iterator[tuple[str, Source]]:

        def refuse(error: OSError) -> None:
            place = os.path.relpath(error.filename, self.folder)
            records.rejected.reject(1, f"cannot be read ({error.strerror})", place)

        for path in self._inside.files(refuse):
            relative = path.relative_to(self.folder).as_posix()
            if not is_wanted(relative):
                records.skipped["other_file"] += 1
                continue
            try:
                held = self._inside.take(path)
            except LeftOutError:
                continue
            except OSError as error:
                refuse(error)
                continue
            with held:
                if held.told.st_size == 0:
                    records.skipped["empty_file"] += 1
                elif not self._inside.is_again(path, held):
                    yield from self._opened(held.path, relative, records, workdir)
        for reason, names in self._inside.left_out.items():
            records.skipped[reason] += len(names)
        records.notices += self._inside.notices()

    def _opened(
        self, path: Path, relative: str, records: StepRecords, workdir: Path
    ) -> Iterator[tuple[str, Source]]:
        options = records.options
        try:
            with opened(
                str(path), workdir, called=relative, partial=options.partial, limits=options.limits
            ) as found:
                self.n_files += 1
                self._digest.update(f"{relative}\0{found.sha256}".encode(errors="replace"))
                yield relative, found
        except SourceError as error:
            records.rejected.reject(1, str(error).removeprefix(f"{relative}: "), relative)

    def source(self) -> Source:
        """What was read, as one input."""
        modified_at = datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)
        return Source(self.folder, self.shown, modified_at, sha256=self._digest.hexdigest())
