"""Inputs of every kind become plain UTF-8 text on disk."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import random
import sys
import tarfile
import threading
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

import pytest
import zstandard

from data.errors import SourceError
from data.ingest.formats.source import opened
from data.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = "".join(f"line {number} of a log with \u00e9 in it\n" for number in range(5000)).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lambda text: lzma.compress(text, preset=0),  # a higher one costs seconds
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def written(folder: Path, content: bytes, name: str = "input.log") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def work(folder: Path) -> Path:
    (folder / "work").mkdir(exist_ok=True)
    return folder / "work"


@cache
def bomb(kind: str) -> bytes:
    return PACK[kind](b"a line of a log\n" * 4_000_000)


@cache
def noise(n: int) -> bytes:
    return random.Random(0).randbytes(n)


def test_a_plain_text_is_read_where_it_lies(tmp_path: Path) -> None:
    name = written(tmp_path, TEXT)
    os.utime(name, (0, 1_700_000_000))
    with opened(name, work(tmp_path)) as found:
        assert str(found.path) == name
        assert found.path.read_bytes() == TEXT
        assert found.modified_at == datetime.fromtimestamp(1_700_000_000, UTC)
        assert found.sha256 == hashlib.sha256(TEXT).hexdigest()
        assert (found.truncated, found.n_replaced, found.n_nuls) == (None, 0, 0)


@pytest.mark.parametrize("kind", PACK)
def test_a_packed_text_is_unpacked_and_its_own_bytes_are_hashed(tmp_path: Path, kind: str) -> None:
    packed = PACK[kind](TEXT)
    name = written(tmp_path, packed)  # recognised by its bytes, whatever its name
    with opened(name, work(tmp_path)) as found:
        assert found.path.read_bytes() == TEXT
        assert found.sha256 == hashlib.sha256(packed).hexdigest()
        assert found.truncated is None
    assert not list(work(tmp_path).iterdir())


@pytest.mark.parametrize("kind", PACK)
def test_several_packed_parts_in_one_file_are_read_on(tmp_path: Path, kind: str) -> None:
    name = written(tmp_path, PACK[kind](TEXT) + PACK[kind](b"the end\n"))
    with opened(name, work(tmp_path)) as found:
        assert found.path.read_bytes() == TEXT + b"the end\n"


@pytest.mark.parametrize("kind", PACK)
def test_of_a_cut_archive_what_precedes_the_cut_is_read(tmp_path: Path, kind: str) -> None:
    text = noise(400_000).hex().encode()
    packed = PACK[kind](text)[:-100_000]
    with opened(written(tmp_path, packed), work(tmp_path), partial=True) as found:
        read = found.path.read_bytes()
        assert 100_000 < len(read) < len(text)
        assert text.startswith(read)
        assert found.truncated is not None
        assert "ends early or is broken" in found.truncated
        assert f": {len(read):,} bytes before it were read" in found.notices()[0]
        assert found.sha256 == hashlib.sha256(packed).hexdigest()


@pytest.mark.parametrize("kind", PACK)
def test_of_a_damaged_archive_what_precedes_the_damage_is_read(tmp_path: Path, kind: str) -> None:
    text = noise(400_000).hex().encode()
    packed = bytearray(PACK[kind](text))
    at = len(packed) // 2
    packed[at : at + 5000] = bytes(5000)
    with opened(written(tmp_path, bytes(packed)), work(tmp_path), partial=True) as found:
        assert found.truncated is not None
        assert found.sha256 == hashlib.sha256(packed).hexdigest()


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize(
    ("partial", "remedy"),
    [(False, "read what came before with --partial"), (None, "unpack what came before")],
)
@pytest.mark.parametrize("at", [-1, -5000, "damaged"])
def test_a_broken_archive_is_refused_unless_what_precedes_is_asked_for(
    tmp_path: Path, kind: str, partial: bool | None, remedy: str, at: int | str
) -> None:
    packed = bytearray(PACK[kind](noise(200_000).hex().encode()))
    if isinstance(at, int):
        del packed[at:]
    else:
        packed[100_000:105_000] = bytes(5000)
    with (
        pytest.raises(SourceError, match=rf"input\.log: \w+ data ends early .*{remedy}") as refused,
        opened(written(tmp_path, bytes(packed)), work(tmp_path), partial=partial),
    ):
        pass
    assert "\n" not in str(refused.value)
    assert not list(work(tmp_path).iterdir())


@pytest.mark.parametrize("head", [b"\x1f\x8b", b"\xfd7zX", b"\x28\xb5\x2f"])
def test_an_archive_cut_within_its_first_bytes_is_told_as_one(tmp_path: Path, head: bytes) -> None:
    with (
        pytest.raises(SourceError, match=r"holds nothing: .* data ends early"),
        opened(written(tmp_path, head), work(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("name", ["log.gz", "log.xz", "log.zst"])
def test_plain_text_named_as_an_archive_is_read_by_its_content(tmp_path: Path, name: str) -> None:
    with opened(written(tmp_path, TEXT, name), work(tmp_path)) as found:
        assert found.path.read_bytes() == TEXT


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("partial", [False, True])
def test_a_decompression_bomb_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, partial: bool
) -> None:
    monkeypatch.setattr("data.ingest.formats.source.RATIO_FROM", 5_000_000)
    name = written(tmp_path, bomb(kind))
    read: list[str] = []
    with (
        pytest.raises(
            SourceError, match=r"unfolds to more than 200 times its size, the limit, .* plain file"
        ),
        opened(name, work(tmp_path), read.append, partial=partial),
    ):
        pass
    assert len(read) < 10  # blocks; it goes on to 64 MB
    assert not list(work(tmp_path).iterdir())


@pytest.mark.parametrize("kind", PACK)
def test_an_archive_of_too_many_bytes_is_refused(tmp_path: Path, kind: str) -> None:
    limits = Limits(unpacked_gb=0.001)
    packed = PACK[kind](noise(1_000_000).hex().encode())
    with (
        pytest.raises(
            SourceError,
            match=r"holds more than the limit of 0\.001 GB, as a decompression bomb does",
        ),
        opened(written(tmp_path, packed), work(tmp_path), limits=limits),
    ):
        pass


def test_a_small_archive_may_unfold_as_far_as_it_likes(tmp_path: Path) -> None:
    text = b"the same line again\n" * 200_000
    with opened(written(tmp_path, lzma.compress(text)), work(tmp_path)) as found:
        assert found.path.stat().st_size == len(text)


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_archive_is_refused_with_the_remedy(tmp_path: Path, packed: bool) -> None:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz" if packed else "w") as archive:
        member = tarfile.TarInfo("slurm-1.out")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    with (
        pytest.raises(SourceError, match="is a tar archive: unpack it and give the files in it"),
        opened(written(tmp_path, held.getvalue()), work(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("kind", PACK)
def test_an_archive_that_holds_nothing_is_refused(tmp_path: Path, kind: str) -> None:
    for packed in (PACK[kind](b""), PACK[kind](TEXT)[:8]):
        with (
            pytest.raises(SourceError, match=r"input\.log: holds nothing: .*") as refused,
            opened(written(tmp_path, packed), work(tmp_path)),
        ):
            pass
        assert "\n" not in str(refused.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(SourceError, match=r"input\.log: is empty: nothing to read"),
        opened(written(tmp_path, b""), work(tmp_path)),
    ):
        pass


@pytest.mark.parametrize(
    "content",
    [
        noise(100_000),
        noise(300),
        bytes(range(256)) * 20,
        b"\x00\x01\x02\x03" * 100,
        b"\x7fELF\x02\x01\x01" + bytes(100) + b"\x03\x00\x3e\x00\x01\x00\x00\x00" * 50,
        b"PK\x03\x04\x14\x00\x08\x08" + noise(500),
        b"BZh9" + noise(500),
        bytes(1000),
    ],
    ids=["noise", "little noise", "all bytes", "codes", "ELF", "zip", "bzip2", "NUL"],
)
def test_a_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    for name, packed in (("plain", content), ("packed", gzip.compress(content))):
        with (
            pytest.raises(SourceError, match=rf"{name}: is (binary|a program|a zip)[\w ,]*: \w+"),
            opened(written(tmp_path, packed, name), work(tmp_path)),
        ):
            pass


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_refused_with_the_remedy(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffJobID|State\n".encode(encoding).removeprefix(b"\xff\xfe")
    content = content if encoding == "utf-16-be" else b"\xff\xfe" + content[2:]
    with (
        pytest.raises(SourceError, match=r"is UTF-16 text: convert it \(iconv"),
        opened(written(tmp_path, content), work(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("place", [0, 100, 70_000, 5_000_000])
def test_nul_bytes_in_a_log_are_read_as_one_blank(tmp_path: Path, place: int) -> None:
    long = TEXT * 30
    content = long[:place] + bytes(4096) + long[place:]
    with opened(written(tmp_path, content), work(tmp_path)) as found:
        assert found.path.read_bytes() == long[:place] + b" " + long[place:]
        assert found.n_nuls == 4096
        assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_colours_and_form_feeds_are_text(tmp_path: Path) -> None:
    content = b"\x1b[31mred\x1b[0m\x0c\r\n" * 100
    with opened(written(tmp_path, content), work(tmp_path)) as found:
        assert found.path.read_bytes() == content


@pytest.mark.parametrize("size", [0, (1 << 22) - 1])
def test_bytes_that_are_not_utf8_become_replacement_characters(tmp_path: Path, size: int) -> None:
    content = b"x" * size + "caf\u00e9".encode("latin-1") + b" \xff\xfe \xe2\x82\n"
    with opened(written(tmp_path, content), work(tmp_path)) as found:
        assert found.path.read_bytes().decode() == "x" * size + "caf\ufffd \ufffd\ufffd \ufffd\n"
        assert found.n_replaced == 4


def test_a_character_across_two_blocks_is_kept(tmp_path: Path) -> None:
    content = b"x" * ((1 << 22) - 1) + "\u20ac".encode()
    name = written(tmp_path, content)
    with opened(name, work(tmp_path)) as found:
        assert str(found.path) == name
        assert found.n_replaced == 0


def test_a_character_cut_at_the_end_is_replaced(tmp_path: Path) -> None:
    with opened(written(tmp_path, b"x\n\xe2\x82"), work(tmp_path)) as found:
        assert found.path.read_bytes().decode() == "x\n\ufffd"


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    content = b"a\r\nb\rc\xff\n"
    with opened(written(tmp_path, content), work(tmp_path)) as found:
        assert found.path.read_bytes() == content.replace(b"\xff", b"\xef\xbf\xbd")


@pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT), b"abc"])
def test_standard_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with opened("-", work(tmp_path)) as found:
        assert found.path.read_bytes() in (TEXT, b"abc")
        assert (found.name, found.sha256) == ("-", hashlib.sha256(content).hexdigest())
    with pytest.raises(SourceError, match="-: is empty"), opened("-", work(tmp_path)):
        pass


def test_a_pipe_with_a_name_is_read_once(tmp_path: Path) -> None:
    name = tmp_path / "pipe"
    os.mkfifo(name)
    feeder = threading.Thread(target=name.write_bytes, args=(TEXT,))
    feeder.start()
    with opened(str(name), work(tmp_path)) as found:
        assert found.path.read_bytes() == TEXT
    feeder.join()


def test_parquet_is_left_to_its_reader(tmp_path: Path) -> None:
    content = b"PAR1" + noise(1000)
    name = written(tmp_path, content)
    with opened(name, work(tmp_path)) as found:
        assert str(found.path) == name


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    for name, message in (("", "is a folder"), ("none", "no such file"), ("a\0b", "cannot be")):
        with (
            pytest.raises(SourceError, match=message),
            opened(str(tmp_path / name), work(tmp_path)),
        ):
            pass
