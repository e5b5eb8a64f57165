"""The published snapshot: what CURRENT may say, and who may read it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from data.current import SCHEMA_VERSION, read_current, said_of
from data.errors import StoreError
from data.publish import writer
from data.store import Store
from tests.written_current import as_earlier, saying

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, empty_store: Path) -> Path:
    return shutil.copytree(empty_store, tmp_path / "store")


def test_current_says_what_was_published(root: Path) -> None:
    current = read_current(root)
    assert current is not None
    assert (current.snapshot, current.file) == (1, "warehouse-1.duckdb")
    assert (current.schema_version, current.synthetic) == (SCHEMA_VERSION, False)
    assert current.published_at.endswith("+00:00")
    assert current == said_of(current.to_json())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b'"text"', b'{"snapshot": 1}',
        b'{"snapshot": 1, "file": "warehouse-1.duckdb"',
    ],
)  # fmt: skip
def test_a_damaged_current_is_told_in_one_line(root: Path, content: bytes) -> None:
    (root / "CURRENT").write_bytes(content)
    message = r"CURRENT: is not what a publish writes .*restore it from a backup"
    with pytest.raises(StoreError, match=message) as refused:
        Store.open(root)
    assert "\n" not in str(refused.value)
    with pytest.raises(StoreError, match=message), writer(root):
        pass


@pytest.mark.parametrize(
    "values",
    [
        {"file": None}, {"file": ""}, {"file": "../other.duckdb"}, {"file": 3},
        {"snapshot": "1"}, {"snapshot": None}, {"schema_version": "1"}, {"schema_version": True},
        {"snapshot": 7}, {"sha256": None}, {"sha256": ""}, {"sha256": "0" * 63}, {"sha256": 5},
    ],
)  # fmt: skip
def test_a_current_with_impossible_values_is_refused(root: Path, values: dict[str, object]) -> None:
    saying(root, **values)
    with pytest.raises(StoreError, match=r"CURRENT: is not what a publish writes"):
        read_current(root)


DEEP = b'{"snapshot": ' + b"[" * 9_000
"""As deep as a file of its size can be nested."""


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (DEEP, "nested too deeply|no object"), (b"[" * 200_000, "larger than 10,000 bytes"),
        (b"\0", "is not what"), (b"[[1, 2]]", "says more or less"), (b"[[[], 1]]", "no object"),
        (b"3", "no object"), (b'{"a": 1, "a": 1}', "says something twice"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "is not what"), (b"\xef\xbb\xbf{}", "is not what"),
    ],
)  # fmt: skip
def test_content_that_breaks_readers_of_json_is_told_in_one_line(
    root: Path, content: bytes, told: str
) -> None:
    (root / "CURRENT").write_bytes(content)
    with pytest.raises(StoreError, match=rf"CURRENT: .*({told}).*restore it from a") as refused:
        read_current(root)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        {"synthetic": "yes"}, {"synthetic": 1}, {"published_at": "yesterday"},
        {"published_at": "2026-01-05T00:00:00"}, {"published_at": 3}, {"published_at": "\ud800"},
        {"schema_version": 10**400}, {"snapshot": -1, "file": "warehouse--1.duckdb"},
        {"snapshot": True, "file": "warehouse-True.duckdb"}, {"size": "1"}, {"sample": []},
        {"more": 1}, {"format": "2"}, {"format": 1}, {"format": [2]}, {"store_id": ""},
    ],
)  # fmt: skip
def test_a_current_that_no_publish_writes_is_refused_whatever_its_hash(
    root: Path, values: dict[str, object]
) -> None:
    saying(root, **values)
    with pytest.raises(StoreError, match=r"CURRENT: is not what a publish writes \(it") as refused:
        read_current(root)
    assert len(str(refused.value)) < 400


def test_a_current_of_a_newer_format_is_told_as_newer(root: Path) -> None:
    saying(root, format=3)
    with pytest.raises(StoreError, match="its format is 3, this Faultline reads 2: upgrade"):
        read_current(root)


def test_no_bit_of_current_can_turn_without_a_word(root: Path) -> None:
    path = root / "CURRENT"
    sound = path.read_bytes()
    before, n_told = read_current(root), 0
    for bit in range(8 * len(sound)):
        turned = bytearray(sound)
        turned[bit // 8] ^= 1 << bit % 8
        path.write_bytes(turned)
        try:
            assert read_current(root) == before  # of the line's end alone
        except StoreError:
            n_told += 1
    assert n_told >= 8 * (len(sound) - 1)


def test_what_a_version_wrote_that_knew_no_hash_is_read_but_not_of_this_schema(root: Path) -> None:
    as_earlier(root, 11)
    current = read_current(root)
    assert current is not None
    assert (current.schema_version, current.sample, current.store_id) == (11, "", "")
    assert current.to_json().strip() == (root / "CURRENT").read_text()
    as_earlier(root, SCHEMA_VERSION)
    with pytest.raises(StoreError, match=r"CURRENT: .*it lost its hash"):
        read_current(root)


def test_a_pipe_in_place_of_current_is_not_waited_for(root: Path) -> None:
    (root / "CURRENT").unlink()
    os.mkfifo(root / "CURRENT")
    with pytest.raises(StoreError, match=r"CURRENT: cannot be read \(it is no file\)"):
        read_current(root)


def test_a_current_that_is_no_file_is_told(root: Path) -> None:
    (root / "CURRENT").unlink()
    (root / "CURRENT").mkdir()
    with pytest.raises(StoreError, match=r"CURRENT: cannot be read \(Is a directory\)"):
        read_current(root)


def test_a_missing_snapshot_is_told(root: Path) -> None:
    (root / "warehouse-1.duckdb").unlink()
    with pytest.raises(StoreError, match=r"warehouse-1\.duckdb: is missing: restore it from a"):
        Store.open(root)


@pytest.mark.parametrize("content", [b"", b"no database" * 1000])
def test_a_damaged_snapshot_is_told_in_one_line(root: Path, content: bytes) -> None:
    (root / "warehouse-1.duckdb").write_bytes(content)
    message = r"warehouse-1\.duckdb: is damaged \(.*\): restore it from a backup"
    with pytest.raises(StoreError, match=message) as refused:
        Store.open(root)
    assert "\n" not in str(refused.value)
    if content:
        with pytest.raises(StoreError, match=message), writer(root):
            pass


@pytest.mark.parametrize("place", ["", "nothing/here", "file"])
def test_where_nothing_was_published_there_is_no_store(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="holds no store: `faultline ingest` or `faultline demo`"):
        Store.open(tmp_path / place)


def test_a_newer_schema_is_refused_by_reader_and_writer(root: Path) -> None:
    saying(root, schema_version=SCHEMA_VERSION + 1)
    message = rf"newer Faultline \(schema {SCHEMA_VERSION + 1}, this one reads {SCHEMA_VERSION}\)"
    with pytest.raises(StoreError, match=message):
        Store.open(root)
    with pytest.raises(StoreError, match=message), writer(root):
        pass
    assert (root / "warehouse-1.duckdb").is_file()


def test_queries_bind_the_parameters_they_name(root: Path) -> None:
    store = Store.open(root)
    assert store.rows("SELECT $a + 1", {"a": 1, "unused": 2}) == [(2,)]
    assert store.frame("SELECT $a AS a", {"a": "x'y"})["a"].tolist() == ["x'y"]
    assert store.rows("SELECT current_setting('TimeZone')") == [("UTC",)]
    store.close()


def test_a_parameter_is_not_taken_for_one_whose_name_begins_so(root: Path) -> None:
    store = Store.open(root)
    given = {"first": 1, "first_day": 2, "day": 3, "First": 4}
    assert store.rows("SELECT $first_day", given) == [(2,)]
    assert store.rows("SELECT $first + $first_day", given) == [(3,)]
    assert store.rows("SELECT $first_day||$day||$first", given) == [("231",)]
    store.close()


def test_a_long_query_draws_no_progress_on_standard_output(root: Path) -> None:
    asked = "SELECT current_setting('enable_progress_bar')"
    with closing(Store.open(root)) as store:
        assert store.rows(asked) == [(False,)]
    with writer(root) as building:
        assert building.connection.execute(asked).fetchall() == [(False,)]


def test_a_published_snapshot_cannot_be_written(root: Path) -> None:
    store = Store.open(root)
    with pytest.raises(Exception, match="read-only"):
        store.rows("DELETE FROM jobs")
    store.close()


def test_what_writes_a_store_needs_nothing_that_reads_one() -> None:
    code = "import sys, data.publish; sys.exit('data.store' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
