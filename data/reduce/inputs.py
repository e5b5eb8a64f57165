"""Partitions that are given: files, folders and globs, each told apart by size and time."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import zstandard

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PARQUET, CSV, JSON, TEXT = "parquet", "csv", "json", "text"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How s3://bucket begins, also as a path, of which two slashes are one."""
_PACKED = (".gz", ".zst")


class Forms(NamedTuple):
    """The forms of files that a reduction reads."""

    by_ending: Mapping[str, str]
    told: str
    """What they are, in words."""
    otherwise: str | None = None
    """The form of a file that is named and ends otherwise; None where it is refused."""


TABLES = Forms(
    {".parquet": PARQUET, ".pq": PARQUET, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON,
     ".ndjson": JSON},
    "Parquet, CSV or JSON lines (.parquet, .csv, .tsv, .jsonl, .ndjson; .gz and .zst of texts)",
)  # fmt: skip
LOGS = Forms(
    {**TABLES.by_ending, ".log": TEXT, ".txt": TEXT},
    f"logs (.log, .txt) nor {TABLES.told}",
    otherwise=TEXT,
)
ACCOUNTING = Forms(
    {**TABLES.by_ending, ".txt": TEXT, ".log": TEXT, ".psv": TEXT, ".sacct": TEXT, ".out": TEXT},
    "accounting (.txt, .log, .psv, .sacct and .out as sacct -P writes them; .parquet; .csv; .tsv; "
    ".jsonl; .ndjson; .gz and .zst of texts)",
    otherwise=TEXT,
)


class Partition(NamedTuple):
    """A file that is read, as it is now."""

    path: str
    form: str
    size: int
    modified_ns: int

    @property
    def identity(self) -> list[int]:
        """What changes where the file does."""
        return [self.size, self.modified_ns]


def partitions(names: Sequence[str], out: Path, forms: Forms = TABLES) -> list[Partition]:
    """All files that the names mean, each once, in the order of their paths; none of `out`.

    Raises
    ------
    SourceError
        Where a name means no file, or is an address, or a file is of another form.
    """
    for name in (*names, str(out)):
        refuse_address(name)
    found = {path for name in names for path in _files(name, forms)}
    found = {path for path in found if not path.is_relative_to(out.absolute())}
    if not found:
        raise SourceError(f"{names[0]}: lies in the folder of the reduction: give the raw records")
    return [_partition(path, forms) for path in sorted(found)]


def refuse_address(name: str) -> None:
    """Refuses what names object storage: files are told apart by size and time, and renamed."""
    if _ADDRESS.match(name):
        raise SourceError(
            f"{name}: is an address: mount the storage as a folder, or copy it to disk, and give "
            "that path"
        )


def unpacked(partition: Partition, packed: BinaryIO) -> Any:
    """The bytes of a text, which may be packed, as a stream."""
    suffix = Path(partition.path).suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=packed)
    if suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(packed)
    return packed


def _files(name: str, forms: Forms) -> Iterator[Path]:
    """Absolute paths of the files of one name; in a folder those of known forms."""
    path = Path(name)
    if path.is_dir():
        held = [
            each
            for each in path.rglob("*")
            if each.is_file() and _form(each, forms) is not None and not _is_hidden(each, path)
        ]
        if not held:
            raise SourceError(f"{name}: the folder holds no {forms.told}: give another")
    elif path.is_file():
        held = [path]
    else:
        held = [each for each in _matching(path) if each.is_file()]
        if not held:
            raise SourceError(f"{name}: is no file, folder or pattern of files: check the path")
    for each in held:
        yield each.absolute()


def _matching(pattern: Path) -> Iterator[Path]:
    """Paths that a pattern fits."""
    parts = pattern.parts
    first = next((k for k, part in enumerate(parts) if any(c in part for c in "*?[")), None)
    if first is not None:
        yield from Path(*parts[:first]).glob("/".join(parts[first:]))


def _is_hidden(path: Path, folder: Path) -> bool:
    """Whether it is what an engine keeps to itself, as `_SUCCESS` and `.part-0.crc`."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _form(path: Path, forms: Forms) -> str | None:
    stem = path.stem if path.suffix.lower() in _PACKED else path.name
    return forms.by_ending.get(Path(stem).suffix.lower())


def _partition(path: Path, forms: Forms) -> Partition:
    form = _form(path, forms) or forms.otherwise
    if form is None:
        raise SourceError(f"{path}: its name ends in no known form: give {forms.told}")
    told = path.stat()
    return Partition(str(path), form, told.st_size, told.st_mtime_ns)
