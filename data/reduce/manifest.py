"""What a reduction has read and written: a file of its folder that is replaced at once.

It alone says which files count: what it does not name was left by a run that ended early.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from data.current import replace_file
from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = "manifest.json"
FORMAT = 1
BEGINS = '{"faultline_reduction": '
"""How a manifest begins, by which it is recognised."""
_CUT = 80


@dataclass(frozen=True)
class Surveyed:
    """What an input holds."""

    identity: list[int]
    """Its size and time, as it was read."""
    rows: int
    skipped: dict[str, int]
    rejected: dict[str, int]
    local: int
    """Kept rows whose time names no zone."""
    hours: dict[str, int]
    """Begin of an hour, in microseconds since 1970 -> kept rows."""
    metrics: list[str]
    columns: list[str] = field(default_factory=list)
    """Of accounting those that it has."""
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    """Cluster as the rows state it -> day -> time of the last kept row."""

    @property
    def kept(self) -> int:
        """Rows that are neither skipped nor rejected."""
        return self.rows - sum(self.skipped.values()) - sum(self.rejected.values())

    @property
    def is_clean(self) -> bool:
        """Whether all rows are kept."""
        return self.kept == self.rows


@dataclass(frozen=True)
class Done:
    """A partition of the reduction: what was made of the samples of a day (UTC)."""

    inputs: dict[str, list[int]]
    """Path -> identity of what it was made from."""
    files: dict[str, list[str]]
    """minutes, hours, changes, windows, kept -> files, below the folder."""
    rows_in: int
    repeated: int
    """Samples of a series and time of which another one counts."""
    rows_out: dict[str, int]
    """minutes, hours, changes -> rows."""
    before: str
    """Hash of the counters' last samples of the day before, as they were counted on."""
    last: str
    """The same of this day."""
    superseded: dict[str, int] = field(default_factory=dict)
    """Records that gave way to another one, by reason."""
    windows: dict[str, Any] = field(default_factory=dict)
    """Of the raw samples that are kept: `mark` of the jobs, `jobs` with samples, `jobs_left_out`
    and `samples_left_out`, for they are too many."""


@dataclass
class Manifest:
    """The state of a reduction."""

    kind: str
    zone: str
    cluster: str | None
    of_jobs: bool = False
    """Whether raw samples around jobs are kept."""
    inputs: dict[str, Surveyed] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Path -> why it could not be read at all."""
    partitions: dict[str, Done] = field(default_factory=dict)
    """Day -> what was made of it."""

    def save(self, folder: Path) -> None:
        """Replaces the file at once."""
        text = json.dumps({"faultline_reduction": FORMAT} | asdict(self), indent=1)
        replace_file(folder / NAME, BEGINS + text.partition(": ")[2] + "\n")

    def total(self, of: str) -> Counter[str]:
        """`skipped` or `rejected` rows of all inputs by reason; superseded ones are skipped."""
        found: Counter[str] = Counter()
        for one in self.inputs.values():
            found.update(getattr(one, of))
        for done in self.partitions.values() if of == "skipped" else ():
            found.update(done.superseded)
        return found

    def rows_out(self, kind: str) -> int:
        """Rows of minutes, hours or changes."""
        return sum(done.rows_out.get(kind, 0) for done in self.partitions.values())

    def files(self, kind: str) -> list[str]:
        """Files of minutes, hours or changes, by day."""
        return [
            name for _, done in sorted(self.partitions.items()) for name in done.files.get(kind, ())
        ]


def load(folder: Path) -> Manifest | None:
    """The manifest of a folder; None where there is none.

    Raises
    ------
    SourceError
        Where it is none of this version.
    """
    path = folder / NAME
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read ({error}): check the path") from None
    try:
        return _parsed(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"[:_CUT]
        raise SourceError(
            f"{path}: is no manifest of `faultline reduce` ({told}): reduce into another folder"
        ) from None


def _parsed(said: Mapping[str, Any]) -> Manifest:
    """A manifest as it was saved."""
    if said["faultline_reduction"] != FORMAT:
        raise ValueError(f"format {said['faultline_reduction']!r}")
    return Manifest(
        said["kind"],
        said["zone"],
        said["cluster"],
        bool(said.get("of_jobs")),
        {path: Surveyed(**one) for path, one in said["inputs"].items()},
        dict(said["refused"]),
        {day: Done(**one) for day, one in said["partitions"].items()},
    )
