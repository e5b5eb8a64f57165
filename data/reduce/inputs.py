"""Partitions that are given: files, folders and globs, each told apart by size and time.

Each is a file on disk or an object of a storage: what else reads partitions asks here for bytes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import zstandard

from data.errors import SourceError
from data.reduce import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PARQUET, CSV, JSON, TEXT = "parquet", "csv", "json", "text"
PACKED = (".gz", ".zst")


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
    """A file or object that is read, as it is now."""

    path: str
    """Absolute, or an address."""
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
    DataError
        Where a storage does not answer.
    SourceError
        Where a name means no file, or a file is of another form, or `out` is an address.
    """
    if objects.is_address(str(out)):
        raise SourceError(
            f"{out}: is an address: the reduction is written to a folder, on disk or mounted: "
            "give its path"
        )
    addresses = {name for name in names if objects.is_address(name)}
    found = {path for name in names if name not in addresses for path in _files(name, forms)}
    found = {path for path in found if not path.is_relative_to(out.absolute())}
    held = {one for name in names if name in addresses for one in _objects(name, forms)}
    if not found and not held:
        raise SourceError(f"{names[0]}: lies in the folder of the reduction: give the raw records")
    told = [(path, path.stat()) for path in sorted(found)]
    return [
        *(_partition(str(path), forms, now.st_size, now.st_mtime_ns) for path, now in told),
        *(_partition(one.address, forms, one.size, one.modified_ns) for one in sorted(held)),
    ]


def identity_now(partition: Partition) -> list[int] | None:
    """What would tell a partition apart as it is now; None where it is gone."""
    if objects.is_address(partition.path):
        found = objects.now(partition.path)
        return None if found is None else [found.size, found.modified_ns]
    try:
        told = Path(partition.path).stat()
    except FileNotFoundError:
        return None
    return [told.st_size, told.st_mtime_ns]


@contextmanager
def bytes_of(partition: Partition) -> Iterator[BinaryIO]:
    """The bytes of a partition, to be read one after the other.

    Raises
    ------
    DataError
        Where its storage does not answer.
    SourceError
        Where they cannot be read, or not be unpacked in the block.
    """
    try:
        with (
            objects.stream(partition.path)
            if objects.is_address(partition.path)
            else Path(partition.path).open("rb")
        ) as packed:
            yield packed
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise SourceError(
            f"{partition.path}: cannot be read ({error}): copy or write it again"
        ) from None


def first_lines(partition: Partition, n: int, path: Path) -> Partition:
    """The first lines of a text, written to a file."""
    with (
        bytes_of(partition) as packed,
        io.BufferedReader(unpacked(partition, packed)) as lines,
        path.open("wb") as first,
    ):
        first.writelines(islice(lines, n))
    told = path.stat()
    return Partition(str(path), partition.form, told.st_size, told.st_mtime_ns)


@contextmanager
def on_disk(partition: Partition, folder: Path) -> Iterator[Path]:
    """A partition as a file: of an object a copy in `folder`, until the block is left."""
    if objects.is_address(partition.path):
        copy = folder / "object"
        try:
            objects.copy(partition.path, copy)
            yield copy
        finally:
            copy.unlink(missing_ok=True)
    else:
        yield Path(partition.path)


def unpacked(partition: Partition, packed: BinaryIO) -> Any:
    """The bytes of a text, which may be packed, as a stream."""
    suffix = PurePath(partition.path).suffix.lower()
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
            if each.is_file() and form_of(each, forms) is not None and not _is_hidden(each, path)
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


def _objects(address: str, forms: Forms) -> Iterator[objects.Found]:
    """Objects of one address; below a folder of keys those of known forms."""
    found = objects.objects(address)
    folder = address.rstrip("/")
    if all(one.address.startswith(f"{folder}/") for one in found):
        found = [
            one
            for one in found
            if form_of(PurePath(one.address), forms) is not None
            and not _is_hidden(PurePath(one.address), PurePath(folder))
        ]
        if not found:
            raise SourceError(f"{address}: the folder holds no {forms.told}: give another")
    yield from found


def _matching(pattern: Path) -> Iterator[Path]:
    """Paths that a pattern fits."""
    parts = pattern.parts
    first = next((k for k, part in enumerate(parts) if any(c in part for c in "*?[")), None)
    if first is not None:
        yield from Path(*parts[:first]).glob("/".join(parts[first:]))


def _is_hidden(path: PurePath, folder: PurePath) -> bool:
    """Whether it is what an engine keeps to itself, as `_SUCCESS` and `.part-0.crc`."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def form_of(path: PurePath, forms: Forms) -> str | None:
    """The form of a file by its name; None where it is none that is known."""
    stem = path.stem if path.suffix.lower() in PACKED else path.name
    return forms.by_ending.get(PurePath(stem).suffix.lower())


def _partition(path: str, forms: Forms, size: int, modified_ns: int) -> Partition:
    form = form_of(PurePath(path), forms) or forms.otherwise
    if form is None:
        raise SourceError(f"{path}: its name ends in no known form: give {forms.told}")
    return Partition(path, form, size, modified_ns)
