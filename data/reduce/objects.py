"""Objects of a storage, named by addresses as s3://bucket/key: pyarrow lists and reads them.

An address says a bucket and a key as they are, with nothing encoded in it. Credentials and
endpoints come from the environment.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from threading import local
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from data.errors import DataError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SCHEMES = ("s3", "gs", "abfss", "hdfs")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How s3://bucket begins, also as a path, of which two slashes are one."""
_SECRET = re.compile(r"(?<=://)[^/]*:[^/@]*@|\?[^/]*=.*")
"""A password before the storage's name, and options behind it."""
_WILD = re.compile(r"[*?\[]")
_AT_ONCE = 1 << 22
"""Bytes that are read at once where all are read."""
_CONNECT_S, _SILENT_S, _TRIES = 10, 30, 3
"""How long a connection may take and stay silent, and how often it is tried."""
_REQUEST = re.compile(r" \(Request ID: [^)]*\)")
_UNREACHED = re.compile(
    r"NETWORK_CONNECTION|curlCode|SLOW_DOWN|INTERNAL_FAILURE|UNAVAILABLE|[Tt]imed? ?out"
    r"|HTTP status 5\d\d|[Cc]onnection"
)
_DENIED = re.compile(r"DENIED|ACCESS_KEY|SIGNATURE|TOKEN|HTTP status 40[13]|[Cc]redential")


class Found(NamedTuple):
    """An object as it is now."""

    address: str
    size: int
    modified_ns: int
    """Of whole seconds: a listing and a look at one object tell parts of them differently."""


def is_address(name: str) -> bool:
    """Whether a name is an address and no path."""
    return _ADDRESS.match(name) is not None


def objects(name: str) -> list[Found]:
    """What an address names: an object, those below a folder of keys, or those of a pattern.

    Raises
    ------
    DataError
        Where the storage does not answer.
    SourceError
        Where there is none, it is denied, or the address is of another kind.
    """
    begin, parts = _parted(name)
    found = [*_below("/".join((begin, *parts)))]
    wild = next((k for k, part in enumerate(parts) if _WILD.search(part)), None)
    if not found and wild is not None:
        above = "/".join((begin, *parts[:wild]))
        found = [
            one
            for one in _below(above)
            if _fits(one.address[len(above) + 1 :].split("/"), parts[wild:])
        ]
    if not found:
        raise SourceError(f"{name}: names no object, folder or pattern of objects: check it")
    return found


def now(address: str) -> Found | None:
    """An object as it is now; None where there is none."""
    from pyarrow.fs import FileType

    with _reached(address):
        filesystem, path = _placed(address)
        told = filesystem.get_file_info(path)
    return _found(address, told) if told.type == FileType.File else None


def stream(address: str) -> BinaryIO:
    """The bytes of an object, to be read one after the other."""
    return cast("BinaryIO", io.BufferedReader(Bytes(address), _AT_ONCE))


def copy(address: str, path: Path) -> None:
    """Writes an object to a file."""
    try:
        with stream(address) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, _AT_ONCE)
    except OSError as error:  # of the file: what the storage says is told otherwise
        raise DataError(
            f"{address}: cannot be copied to {path.parent} ({error.strerror}): make room there, "
            "and run it again"
        ) from None


class Bytes(io.RawIOBase):
    """The bytes of an object. Each thread has a place of its own in them, the first at the begin:
    several of DuckDB's go to a place and read there at the same time.
    """

    def __init__(self, address: str, opened: Any = None) -> None:
        self._address, self._opened, self._here = address, opened, local()
        self._here.at = 0
        if opened is None:
            with _reached(address):
                filesystem, path = _placed(address)
                self._opened = filesystem.open_input_file(path)
        self.size = int(self._opened.size())

    def again(self) -> Bytes:
        """The same bytes from their begin."""
        return Bytes(self._address, self._opened)

    def readable(self) -> bool:
        """They are."""
        return True

    def seekable(self) -> bool:
        """They are."""
        return True

    def tell(self) -> int:
        """Where the next byte is."""
        return int(self._here.at)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a byte."""
        begin = self._here.at if whence == io.SEEK_CUR else (0, 0, self.size)[whence]
        self._here.at = begin + offset
        return self.tell()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        with _reached(self._address):
            read = bytes(self._opened.read_at(self.size if size < 0 else size, self._here.at))
        self._here.at += len(read)
        return read

    def readinto(self, buffer: Any) -> int:
        """Writes the next bytes into a buffer; how many."""
        read = self.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)


def _below(address: str) -> Iterator[Found]:
    """The object of an address, else those below it."""
    from pyarrow.fs import FileSelector, FileType

    with _reached(address):
        filesystem, path = _placed(address)
        told = filesystem.get_file_info(path)
        held = [told]
        if told.type == FileType.Directory:
            held = filesystem.get_file_info(FileSelector(path, recursive=True))
    for one in held:
        if one.type == FileType.File:
            yield _found(address + one.path[len(path) :], one)


def _found(address: str, told: Any) -> Found:
    return Found(address, told.size, told.mtime_ns // 1_000_000_000 * 1_000_000_000)


def _fits(key: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a key fit a pattern.

    >>> _fits(["day=1", "a.csv"], ["day=*", "*.csv"]), _fits(["day=1", "a.csv"], ["*.csv"])
    (True, False)
    >>> _fits(["day=1", "a.csv"], ["**", "a.*"])
    True
    """
    if not pattern:
        return not key
    if pattern[0] == "**":
        return _fits(key, pattern[1:]) or (bool(key) and _fits(key[1:], pattern))
    return bool(key) and fnmatchcase(key[0], pattern[0]) and _fits(key[1:], pattern[1:])


def _parted(name: str) -> tuple[str, list[str]]:
    """The begin of an address, as s3://bucket, and the parts of its key.

    Raises
    ------
    SourceError
        Where it is of no storage that is read, or holds a password.
    """
    told = _SECRET.sub("***", name)
    if told != name:
        raise SourceError(
            f"{told}: holds a password or options: leave them out, the environment says them, as "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL do"
        )
    scheme, _, rest = name.partition("://")
    storage, *parts = rest.rstrip("/").split("/")
    if scheme not in SCHEMES or not storage:
        raise SourceError(
            f"{name}: is no address that is read, which begin with "
            f"{', '.join(f'{one}://' for one in SCHEMES)} and a bucket: give one, or a path"
        )
    return f"{scheme}://{storage}", parts


def _placed(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path of its object there."""
    begin, parts = _parted(address)
    said = os.environ
    endpoint = said.get("AWS_ENDPOINT_URL_S3") or said.get("AWS_ENDPOINT_URL")
    filesystem, root = _storage(begin, endpoint, said.get("AWS_CA_BUNDLE"))
    return filesystem, "/".join((root, *parts))


@cache
def _storage(begin: str, endpoint: str | None, authorities: str | None) -> tuple[Any, str]:
    """The file system of a bucket, and the bucket's path there."""
    from pyarrow import fs

    scheme, _, bucket = begin.partition("://")
    if scheme == "gs":
        limit = timedelta(seconds=_SILENT_S * _TRIES)
        return fs.GcsFileSystem(retry_time_limit=limit), bucket
    if scheme != "s3":
        filesystem, root = fs.FileSystem.from_uri(f"{begin}/")
        return filesystem, root.rstrip("/")
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        region=None if endpoint else fs.resolve_s3_region(bucket),
        tls_ca_file_path=authorities,
        connect_timeout=_CONNECT_S,
        request_timeout=_SILENT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    ), bucket


@contextmanager
def _reached(address: str) -> Iterator[None]:
    """Says what to do where a storage is not reached, or an object is denied or gone."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{address}: is gone: run it again without it") from None
    except (OSError, pa.ArrowException) as error:
        reason = _REQUEST.sub("", (str(error) or type(error).__name__).splitlines()[0])[:200]
        fault = reason.partition("AWS Error ")[2] or reason  # what stands before it names the key
        if _UNREACHED.search(fault):
            raise DataError(
                f"{address}: its storage does not answer ({reason}): check the network, for s3:// "
                "AWS_ENDPOINT_URL too, and run it again"
            ) from None
        if _DENIED.search(fault):
            raise SourceError(
                f"{address}: is denied ({reason}): check the credentials of the environment and "
                "what they may read"
            ) from None
        raise SourceError(f"{address}: cannot be read ({reason}): check it") from None
