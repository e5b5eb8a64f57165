"""The published snapshot: what CURRENT may say, and who may read it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from data.current import SCHEMA_VERSION, Current, read_current
from data.errors import StoreError
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, empty_store: Path) -> Path:
    return shutil.copytree(empty_store, tmp_path / "store")


def rewrite(root: Path, **values: object) -> None:
    """Changes what CURRENT says."""
    path = root / "CURRENT"
    path.write_text(json.dumps(json.loads(path.read_text()) | values), encoding="utf-8")


def test_current_says_what_was_published(root: Path) -> None:
    current = read_current(root)
    assert current is not None
    assert (current.snapshot, current.file) == (1, "warehouse-1.duckdb")
    assert (current.schema_version, current.synthetic) == (SCHEMA_VERSION, False)
    assert current.published_at.endswith("+00:00")
    assert current == Current(**json.loads(current.to_json()))


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
    rewrite(root, **values)
    with pytest.raises(StoreError, match=r"CURRENT: is not what a publish writes"):
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
    rewrite(root, schema_version=SCHEMA_VERSION + 1)
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
