"""Lines of one log: numbered as in the file, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from data.errors import SourceError
from data.ingest.formats.log_lines import LONGEST_LINE, read_log_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\r\ntwo\xff\n\nfour")
    found = read_log_lines(str(path))
    assert found.lines == ("one", "two\ufffd", "", "four")
    assert (found.numbers, found.n_lines) == ((1, 2, 3, 4), 4)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r")
    assert read_log_lines(str(path)).lines == ("one", "two")


def test_parquet_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1" + bytes(range(256)) * 16 + b"PAR1")
    with pytest.raises(SourceError, match="is Parquet, and this reads text: give the log itself"):
        read_log_lines(str(path))


def test_of_a_long_log_the_first_and_last_part_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.ingest.formats.log_lines.FIRST_LINES", 2)
    monkeypatch.setattr("data.ingest.formats.log_lines.LAST_LINES", 3)
    path = tmp_path / "log"
    path.write_text("\n".join(map(str, range(1, 11))), encoding="utf-8")
    found = read_log_lines(str(path))
    assert found.lines == ("1", "2", "8", "9", "10")
    assert (found.numbers, found.n_lines) == ((1, 2, 8, 9, 10), 10)


def test_of_a_progress_bar_without_line_ends_the_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("start\n" + "10%\r" * 100_000 + "out of memory\nend\n", encoding="utf-8")
    found = read_log_lines(str(path))
    assert found.n_lines == 3
    assert found.lines[1].endswith("out of memory")
    assert len(found.lines[1]) <= LONGEST_LINE
