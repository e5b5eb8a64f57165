"""Opens an input: plain, .gz, .xz, .zst or standard input, as a plain UTF-8 file on local disk."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import lzma
import os
import re
import sys
import zlib
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

from data.errors import EmptySourceError, SourceError
from data.ingest.formats.event_files import is_event_file
from data.ingest.formats.unsupported import told_binary
from data.ingest.reader import RAW_LIMIT, Rejections, Source
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 22
ZSTD_CHUNK = 1 << 11
"""Compressed bytes a step: zstd may unfold one byte to 32,768, so 64 MB at most."""
RATIO_FROM = 10_000_000
"""Unpacked bytes below which the ratio does not matter: they do no harm, whatever they are."""
XZ_CHUNK = 1 << 13
"""Packed bytes a step: where one is damaged, what it would have unfolded to is lost."""
XZ_MEMORY = 256_000_000
"""Bytes that unpacking .xz may take; `xz -9` needs 65 million, a header may ask for 4 billion."""
SAMPLED = 1 << 16
BINARY_RATIO = 0.05
"""Ratio of control characters at which a file counts as binary; in random bytes it is 0.1."""
_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_TAR, _TAR_AT = b"ustar", 257
PARQUET = b"PAR1"
_PICKLE = re.compile(rb"\x80[\x00-\x05]")
"""How a pickle of protocol 2 and later begins, and no UTF-8."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NULS = re.compile("\0+")
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\v\f\r\x1b"))
_BREAKS = (EOFError, OSError, lzma.LZMAError, zlib.error, zstandard.ZstdError)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    with path.open("rb") as stream:
        return stream.read(len(PARQUET)) == PARQUET


def is_pickle(data: bytes) -> bool:
    """Whether bytes begin as a pickle of protocol 2 and later does."""
    return _PICKLE.match(data) is not None


def is_packed(path: Path) -> bool:
    """Whether a file begins as one of the archives that are unpacked here does."""
    with path.open("rb") as stream:
        return _kind(stream.read(max(map(len, _MAGIC)))) is not None


def broken_parquet(name: str, error: Exception) -> SourceError:
    """What to say of Parquet that cannot be read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceError(f"{name}: is broken Parquet ({reason}): copy or write it again")


def broken_csv(name: str, error: Exception) -> SourceError:
    """What to say of CSV that Arrow cannot read; of its blocks of 1 MB each holds a line's end."""
    reason = str(error).splitlines()[0]
    if "straddl" in reason:
        return SourceError(f"{name}: has a line longer than the limit of 1 MB: leave the line out")
    return SourceError(f"{name}: is broken CSV ({reason}): write it again")


@contextmanager
def opened(
    name: str,
    workdir: Path,
    progress: Callable[[str], None] = lambda message: None,
    *,
    called: str | None = None,
    partial: bool | None = None,
    limits: Limits = DEFAULTS,
    pickled: bool = False,
) -> Iterator[Source]:
    """The input called `name` (`-` for standard input), readable until the block is left.

    `called` is its name for people, where it lies under another one (an upload does). Of an
    archive that is cut off or damaged, what precedes the break is read where `partial` says so;
    None where nobody can say it. A pickle is let through where `pickled` says so.

    The bytes are hashed and checked in one pass. A plain UTF-8 file is read where it lies; any
    other is written to `workdir`: decompressed, with U+FFFD for bytes that are not UTF-8 and a
    space for a run of NUL bytes. Lines may be of any length there: see `without_long_lines`.

    Raises
    ------
    SourceError
        Where the input is absent, unreadable, empty, binary, an archive that ends early or
        unfolds to more than a log would, or the block reads Parquet as text.
    """
    raw, modified_at = _stream(name)
    copy = workdir / "input"
    try:
        with nullcontext(raw) if name == "-" else raw:
            opened_input = _scan(
                raw,
                copy,
                text=_TextCheck(called or name, limits.line_bytes, pickled=pickled),
                path=Path(name) if name != "-" else None,
                modified_at=modified_at,
                limits=limits,
                progress=progress,
            )
        if opened_input.truncated and not partial:
            otherwise = "unpack what came before (e.g. by zcat) and give that"
            if partial is not None:
                otherwise = "read what came before with --partial"
            told = f"{opened_input.name}: {opened_input.truncated}"
            raise SourceError(f"{told}: copy it again, or {otherwise}")
        yield opened_input
    except UnicodeDecodeError:  # all but what is binary is valid UTF-8 here
        what = "Parquet" if is_parquet(opened_input.path) else "an event file of TensorBoard"
        raise SourceError(
            f"{called or name}: is {what}, and this reads text: give the log itself"
        ) from None
    finally:
        copy.unlink(missing_ok=True)
        copy.with_suffix(".utf8").unlink(missing_ok=True)


def _stream(name: str) -> tuple[BinaryIO, datetime]:
    """The bytes of the input and when it was last modified."""
    if name == "-":
        return sys.stdin.buffer, datetime.now(UTC)
    path = Path(name)
    try:
        if path.is_dir():
            raise SourceError(f"{name}: is a folder, not a file: name the files in it")
        modified_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return path.open("rb"), modified_at
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file: check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"{name}: cannot be opened ({reason}): check access") from None


class _Hashed:
    """A stream that hashes what is read through it."""

    def __init__(self, stream: BinaryIO, head: bytes) -> None:
        self._stream, self._head, self.digest = stream, head, hashlib.sha256(head)
        self.n_bytes = len(head)

    def read(self, size: int = CHUNK) -> bytes:
        """The next bytes; the peeked head first."""
        size = CHUNK if size < 0 else size
        head, self._head = self._head[:size], self._head[size:]
        block = self._stream.read(size - len(head)) if len(head) < size else b""
        self.digest.update(block)
        self.n_bytes += len(block)
        return head + block

    def readable(self) -> bool:
        """Streams wrap this one and ask."""
        return True


def _scan(
    raw: BinaryIO,
    copy: Path,
    *,
    text: _TextCheck,
    path: Path | None,
    modified_at: datetime,
    limits: Limits,
    progress: Callable[[str], None],
) -> Source:
    """Hashes, decompresses and checks the whole input; writes a copy only where it must."""
    name = text.name
    head = raw.read(8)
    if not head:
        raise EmptySourceError(f"{name}: is empty: nothing to read")
    hashed = _Hashed(raw, head)
    kind = _kind(head)
    in_place = path if kind is None and path is not None and path.is_file() else None  # no pipe
    with Path(os.devnull if in_place else copy).open("wb") as target:
        truncated = _pass_on(_unpacked(name, hashed, kind, limits), text, target, progress)
    while truncated and hashed.read(CHUNK):  # what lies behind the break belongs to the hash
        pass
    if truncated:
        truncated = f"{kind or 'file'} data ends early or is broken ({truncated})"
    if text.n_bytes == 0:
        empty = SourceError if truncated else EmptySourceError
        raise empty(f"{name}: holds nothing: {truncated or 'copy it again'}")
    text_path = in_place or copy
    n_replaced = n_nuls = 0
    if not text.is_plain():
        text_path, n_replaced, n_nuls = _replaced(text_path, copy.with_suffix(".utf8"))
    sha256 = hashed.digest.hexdigest()
    return Source(
        text_path, name, modified_at, n_replaced, truncated, sha256, n_nuls, n_bytes=text.n_bytes,
        has_long_lines=text.has_long_lines,
    )  # fmt: skip


def _kind(head: bytes) -> str | None:
    """How a file is packed, by its first bytes, of which a cut may have left a few only."""
    found = (
        kind
        for magic, kind in _MAGIC.items()
        if head.startswith(magic) or (len(head) > 1 and magic.startswith(head))
    )
    return next(found, None)


def _pass_on(
    blocks: Iterator[bytes], text: _TextCheck, target: BinaryIO, progress: Callable[[str], None]
) -> str | None:
    """Checks and writes every block; why they end early, None where they do not."""
    while True:
        try:
            block = next(blocks, b"")
        except _BREAKS as error:
            return str(error)
        if not block:
            return None
        text.feed(block)
        target.write(block)
        progress(f"reading {text.name}: {text.n_bytes / 1e6:,.0f} MB")


def _unpacked(name: str, hashed: _Hashed, kind: str | None, limits: Limits) -> Iterator[bytes]:
    """The bytes of an input; refuses an archive that unfolds to more than a log would."""
    n_unpacked = 0
    for block in _blocks(hashed, kind):
        n_unpacked += len(block)
        if kind is not None:
            _refuse_bomb(name, n_unpacked, hashed.n_bytes, limits)
        yield block


def _refuse_bomb(name: str, n_unpacked: int, n_packed: int, limits: Limits) -> None:
    """Refuses more bytes than an archive may hold, or far more than it is large."""
    if n_unpacked > limits.unpacked_gb * 1e9:
        found = f"holds more than the limit of {limits.unpacked_gb:g} GB"
    elif n_unpacked > max(RATIO_FROM, limits.unpacked_ratio * n_packed):
        found = f"unfolds to more than {limits.unpacked_ratio:g} times its size, the limit"
    else:
        return
    raise SourceError(
        f"{name}: {found}, as a decompression bomb does: if it is a log, unpack it and give the "
        "plain file"
    )


def _blocks(hashed: _Hashed, kind: str | None) -> Iterator[bytes]:
    """The decompressed bytes."""
    stream = cast("BinaryIO", hashed)
    if kind == "zstd":
        yield from _zstd_blocks(stream)
    elif kind == "gzip":
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield from iter(lambda: unpacked.read1(CHUNK), b"")  # read1 keeps what precedes a break
    elif kind == "xz":
        yield from _xz_blocks(stream)
    else:
        yield from iter(lambda: stream.read(CHUNK), b"")


def _xz_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Stream by stream: the library's own file knows no limit of memory."""
    unpacking, packed = lzma.LZMADecompressor(memlimit=XZ_MEMORY), stream.read(XZ_CHUNK)
    while True:
        if block := unpacking.decompress(packed, CHUNK):
            yield block
        packed = b""
        if unpacking.eof:
            packed = unpacking.unused_data.lstrip(b"\0")  # streams are padded
            while not packed:
                if not (more := stream.read(XZ_CHUNK)):
                    return
                packed = more.lstrip(b"\0")
            unpacking = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
        elif unpacking.needs_input and not (packed := stream.read(XZ_CHUNK)):
            raise EOFError("the last stream is cut")


def _zstd_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Frame by frame: the library's own stream ends without a word where a frame is cut."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    while chunk := stream.read(ZSTD_CHUNK):
        while chunk:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            if block := frame.decompress(chunk):
                yield block
            chunk = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise EOFError("the last frame is cut")


class _TextCheck:
    """Watches whether the blocks of an input are UTF-8 text without NUL, and how long lines are."""

    def __init__(self, name: str, longest: int, *, pickled: bool) -> None:
        self.name, self._binary, self._plain = name, False, True
        self._pickled = pickled
        self._longest, self._n_begun = longest, 0
        self.has_long_lines = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self.n_bytes = 0

    def feed(self, block: bytes) -> None:
        """Takes the next bytes; refuses a binary file at its first block."""
        if self.n_bytes == 0:
            self._binary = block.startswith(PARQUET) or is_event_file(block)
            self._binary |= self._pickled and is_pickle(block)
            if not self._binary:
                _refuse_binary(self.name, block[:SAMPLED])
        if self._plain and not self._binary:
            ascii_only = block.isascii() and self._decoder.getstate()[0] == b""
            self._plain = b"\0" not in block and (ascii_only or self._decodes(block))
        if not self._binary and not self.has_long_lines:
            self._measure(block)
        self.n_bytes += len(block)

    def _measure(self, block: bytes) -> None:
        """Notes whether a line is longer than it may be; one search a block, mostly."""
        begin = -self._n_begun
        while len(block) - begin > self._longest:
            end = block.rfind(b"\n", max(begin, 0), begin + self._longest + 1)
            if end < 0:
                self.has_long_lines = True
                return
            begin = end + 1
        last = block.rfind(b"\n")
        self._n_begun = len(block) - (begin if last < 0 else max(begin, last + 1))

    def is_plain(self) -> bool:
        """Whether all of it was such text (or a binary format that a reader takes)."""
        return self._binary or (self._plain and self._decodes(b"", final=True))

    def _decodes(self, block: bytes, *, final: bool = False) -> bool:
        try:
            self._decoder.decode(block, final)
        except UnicodeDecodeError:
            return False
        return True


def _refuse_binary(name: str, sample: bytes) -> None:
    """Refuses what is not text: many control characters, a run of NUL bytes counted as one."""
    if sample.startswith(_UTF16):
        raise SourceError(f"{name}: is UTF-16 text: convert it (iconv -f UTF-16 -t UTF-8)")
    if sample[_TAR_AT:].startswith(_TAR):
        raise SourceError(f"{name}: is a tar archive: unpack it and give the files in it")
    if (told := told_binary(sample)) is not None:
        raise SourceError(f"{name}: {told}")
    shrunk = re.sub(rb"\0+", b"\0", sample)
    n_control = len(shrunk) - len(shrunk.translate(None, _CONTROL))
    if n_control > BINARY_RATIO * len(shrunk):
        raise SourceError(
            f"{name}: is binary, not text: give the text itself (.gz, .xz and .zst are read)"
        )


def _replaced(path: Path, copy: Path) -> tuple[Path, int, int]:
    """A copy with U+FFFD for what is not UTF-8 and a space for NULs, and how many of each."""
    n_replaced = n_nuls = 0
    with (
        path.open(encoding="utf-8", errors="replace", newline="") as text,
        copy.open("w", encoding="utf-8", newline="") as target,
    ):
        while block := text.read(CHUNK):
            n_replaced += block.count("\ufffd")
            n_nuls += block.count("\0")
            target.write(_NULS.sub(" ", block))
    return copy, n_replaced, n_nuls


@contextmanager
def without_long_lines(found: Source, limits: Limits, workdir: Path) -> Iterator[Source]:
    """The input with an empty line in place of each that is longer than the limit allows.

    Those lines are its `too_long`. No reader meets them, so that none holds more than a line may
    be; numbers of lines stay.
    """
    if not found.has_long_lines:
        yield found
        return
    copy = workdir / "lines"
    try:
        too_long = _copied_without_long_lines(found.path, copy, limits)
        yield replace(found, path=copy, too_long=too_long)
    finally:
        copy.unlink(missing_ok=True)


KEPT_WHOLE, BEGIN_KEPT = 1_000, 200
"""Of so many lines that are too long as much is kept as of any record, of the others some bytes to
find them by: all of it would cost more than to read them."""


def _copied_without_long_lines(path: Path, copy: Path, limits: Limits) -> Rejections:
    """Writes all other lines to a copy; the long ones."""
    longest, reason, too_long = limits.line_bytes, limits.line_reason, Rejections()
    with path.open("rb") as text, copy.open("wb") as target:
        lines = iter(lambda: text.readline(longest + 1), b"")
        for number, line in enumerate(lines, 1):
            if len(line) > longest and not line.endswith(b"\n"):
                kept = line[: RAW_LIMIT if len(too_long) < KEPT_WHOLE else BEGIN_KEPT]
                too_long.reject(number, reason, kept.decode("utf-8", "ignore"))
                while line and not line.endswith(b"\n"):
                    line = text.readline(longest)
                line = b"\n"
            target.write(line)
    return too_long
