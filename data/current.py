"""The file CURRENT of a store: which snapshot is published, and whether this version reads it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.access import access_of, make_file
from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 10_000
"""Of CURRENT and of the notes of earlier snapshots: a publish writes 500."""
MOST_TOLD = 200
"""Characters of the reason why it cannot be read."""
SCHEMA_VERSION = 21
"""Version of what data.tables declares."""
FORMAT = 2
"""Version of what CURRENT and the notes of earlier snapshots say; 1 had no key of that name."""
FORMAT_SINCE_SCHEMA = 12
"""Schema from which on they are of format 2: one without it has lost it."""
LARGEST = 10**9
"""Number of a snapshot, or of a schema."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FICLONE = 0x40049409
"""Linux: shares the blocks of another file, on btrfs, XFS and others."""
CORRUPT = "Corrupt database file"
"""How DuckDB begins what it says of a block whose checksum does not hold."""
SMALL_BYTES = 16_000_000
"""Of a snapshot: up to there a second thread costs a query more than it saves."""
_CHUNK = 1 << 18
"""Bytes copied at once: as many as stay in the processor's cache until they are written."""


@dataclass(frozen=True)
class Current:
    """What the file CURRENT says."""

    snapshot: int
    file: str
    sha256: str
    """SHA-256 of the snapshot's file."""
    schema_version: int
    published_at: str
    """ISO time in UTC."""
    synthetic: bool
    """Whether `faultline demo` generated it."""
    size: int = 0
    """Bytes of the snapshot's file; this and what follows are absent in format 1."""
    sample: str = ""
    """SHA-256 of a little of that file (`data.sampled`)."""
    store_id: str = ""
    """Which store it is, wherever its folder is: state.sqlite and the snapshot say it too."""

    @property
    def facts(self) -> dict[str, Any]:
        """What it says, by key: of a snapshot of format 1 what that said."""
        facts = asdict(self)
        return facts if self.store_id else {key: facts[key] for key in _FORMAT_1}

    def to_json(self) -> str:
        """The file's content: one line of JSON, whose last key is a hash of the others."""
        if not self.store_id:
            return json.dumps(self.facts) + "\n"
        facts = {"format": FORMAT, **self.facts}
        check = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        return json.dumps(facts | {"check": check}) + "\n"


_FORMAT_1 = ("snapshot", "file", "sha256", "schema_version", "published_at", "synthetic")


def read_current(root: Path) -> Current | None:
    """The published snapshot of a store; None where nothing was published yet.

    Raises
    ------
    StoreError
        Where CURRENT is not what a publish wrote, or names a snapshot that is gone.
    """
    path = root / "CURRENT"
    text = None
    while True:
        try:
            before, text = text, small_text(path)
            current = said_of(text)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror}): check access") from None
        except ValueError as error:
            reason = str(error)[:MOST_TOLD]
            raise StoreError(
                f"{path}: is not what a publish writes ({reason}): restore it from a backup"
            ) from None
        if (root / current.file).is_file():
            return current
        if text == before:  # else another snapshot was published meanwhile
            raise StoreError(f"{root / current.file}: is missing: restore it from a backup")


def small_text(path: Path) -> str:
    """Content of CURRENT or of a note; ValueError where it is none, OSError if it is unreadable."""
    content = read_small(path, MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES:,} bytes")
    return content.decode()


@lru_cache(maxsize=8)  # each question of a page reads it
def said_of(text: str) -> Current:
    """What a line that a publish wrote says of a snapshot; ValueError where it is none."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
        said = dict(pairs)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except TypeError:
        raise ValueError("it is no object of JSON") from None
    if len(said) != len(pairs):
        raise ValueError("it says something twice")
    form = said.pop("format", 1)
    if type(form) is int and FORMAT < form < LARGEST:
        raise ValueError(f"its format is {form}, this Faultline reads {FORMAT}: upgrade Faultline")
    check = said.pop("check", "")
    fields = _FORMAT_1 if form == 1 else tuple(Current.__dataclass_fields__)
    if set(said) != set(fields):
        raise ValueError("it says more or less than a publish does")
    current = Current(**said)
    _refuse_impossible(current)
    if form != 1 and (not current.store_id or current.to_json().rstrip() != text.rstrip()):
        raise ValueError("its hash is not the one of what it says")
    if form == 1 and (check or current.schema_version >= FORMAT_SINCE_SCHEMA):
        raise ValueError("it lost its hash")
    return current


def _refuse_impossible(current: Current) -> None:
    """Refuses values that no publish writes."""
    numbers = (current.snapshot, current.schema_version)
    texts = (current.sha256, current.published_at, current.sample, current.store_id)
    if not all(type(one) is int and 0 <= one < LARGEST for one in numbers):
        raise ValueError("its numbers are none")
    if type(current.synthetic) is not bool or type(current.size) is not int:
        raise ValueError("its values are of the wrong kind")
    if not all(isinstance(one, str) for one in texts) or not _DIGEST.fullmatch(current.sha256):
        raise ValueError("its values are of the wrong kind")
    if current.file != f"warehouse-{current.snapshot}.duckdb":
        raise ValueError("its values contradict one another")
    if not _is_moment(current.published_at):
        raise ValueError("its published_at is no time")


def _is_moment(text: str) -> bool:
    """Whether a text is an ISO time that names its zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def read_small(path: Path, most: int) -> bytes:
    """What a file holds, `most` + 1 bytes of it at most.

    Raises
    ------
    OSError
        Where it is none: a pipe in its place would be waited for without end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:  # noqa: PTH123  of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        return stream.read(most + 1)


def snapshot_numbers(root: Path) -> list[int]:
    """Numbers of the snapshots that lie in a store, least first, whatever CURRENT says."""
    names = (path.stem.removeprefix("warehouse-") for path in root.glob("warehouse-*.duckdb"))
    return sorted(int(name) for name in names if name.isdigit())


def replace_file(path: Path, text: str, store: Path | None = None) -> None:
    """Replaces a small file of a store (the folder it lies in, where nothing is said) at once:
    readers see the old or the new one, never a part.
    """
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")
    try:
        make_file(aside, access_of(store or path.parent))
        aside.write_text(text, encoding="utf-8")
        sync(aside)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_newer(root: Path, current: Current | None) -> None:
    """Refuses a store whose schema this version does not know."""
    if current is not None and current.schema_version > SCHEMA_VERSION:
        raise StoreError(
            f"{root}: was written by a newer Faultline (schema {current.schema_version}, "
            f"this one reads {SCHEMA_VERSION}): upgrade Faultline"
        )


def copy_published(
    root: Path,
    current: Current,
    target: Path,
    progress: Callable[[int], None] = lambda n_bytes: None,
) -> None:
    """Copies a snapshot, and refuses one that is not what was published.

    Where the file system can, the copy shares its blocks until it is written to.

    Raises
    ------
    StoreError
        Where its SHA-256 is not the one that CURRENT states; the copy is removed.
    """
    source = root / current.file
    make_file(target, access_of(root))
    copied = (target, Path(os.devnull)) if _shared(source, target) else (source, target)
    if copy_hashed(*copied, progress) != current.sha256:
        target.unlink()
        raise damaged(source, "its SHA-256 is not the one that CURRENT stated")


def _shared(source: Path, target: Path) -> bool:
    """Whether a file could be copied by sharing its blocks, which costs neither time nor room."""
    with source.open("rb") as original, target.open("wb") as copy:
        try:
            fcntl.ioctl(copy, _FICLONE, original.fileno())
        except OSError:
            return False
    return True


def copy_hashed(
    source: Path, target: Path, progress: Callable[[int], None] = lambda n_bytes: None
) -> str:
    """Copies a file; SHA-256 of what was read. `progress` is told the bytes of each piece."""
    digest = hashlib.sha256()
    chunk = memoryview(bytearray(_CHUNK))
    with (
        source.open("rb", buffering=0) as original,
        target.open("wb", buffering=0) as copy,
    ):
        while n_read := original.readinto(chunk):
            digest.update(chunk[:n_read])
            n_written = 0
            while n_written < n_read:  # a file without a buffer may take less at once
                n_written += copy.write(chunk[n_written:n_read])
            progress(n_read)
    return digest.hexdigest()


def damaged(path: Path, reason: str) -> StoreError:
    """The error of a snapshot that is not as it was published: what is wrong, and the ways back."""
    number = int(path.stem.rpartition("-")[2])
    ways = "restore it from a backup"
    if path.with_name(f"warehouse-{number - 1}.duckdb").is_file():
        ways += (
            f", or remove it and CURRENT to go back to snapshot {number - 1}, and ingest again "
            "what came since"
        )
    return StoreError(f"{path}: is damaged ({reason}): {ways}")


def threads_for(snapshot: Path) -> dict[str, int]:
    """Configuration of the database that opens a snapshot: one thread where it is small."""
    with suppress(OSError):  # DuckDB says what is the matter with it
        if snapshot.stat().st_size <= SMALL_BYTES:
            return {"threads": 1}
    return {}
