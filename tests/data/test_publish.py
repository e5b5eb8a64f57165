"""Snapshots are built aside and published at once, under one schema."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from data.current import SCHEMA_VERSION, read_current
from data.errors import StoreBusyError, StoreError
from data.publish import StoreWriter, migrate, writer
from data.publish.schema import update
from data.store import Store
from data.tables import tables
from tests.written_current import as_earlier

DATA_MODEL = Path(__file__).resolve().parents[2] / "../shared/design/data-model.md"
ELSEWHERE = {
    *("node_metrics", "node_metrics_hourly", "node_metrics_kept", "node_metrics_reduced"),
    *("annotations", "saved_queries", "alerts", "mutes", "audit"),
}
"""Node metrics, which nothing reads yet, and the tables of state.sqlite."""


def job(job_id: str) -> pd.DataFrame:
    return pd.DataFrame({"cluster": ["a"], "attempt_key": [job_id], "job_id": [job_id]})


def publish(root: Path, job_id: str | None = None) -> None:
    with writer(root) as building:
        if job_id is not None:
            building.merge({"jobs": job(job_id)})
        building.publish()


def ids(root: Path) -> list[str]:
    store = Store.open(root)
    try:
        return [row[0] for row in store.rows("SELECT job_id FROM jobs ORDER BY 1")]
    finally:
        store.close()


def test_a_publish_carries_forward_what_is_untouched(tmp_path: Path) -> None:
    for number in ("1", "2", "3"):
        publish(tmp_path, number)
    assert ids(tmp_path) == ["1", "2", "3"]
    store = Store.open(tmp_path)
    assert store.snapshot == 3
    assert store.rows("SELECT snapshot, schema_version, synthetic FROM store_meta") == [
        (3, SCHEMA_VERSION, False)
    ]
    store.close()


def test_a_folder_may_have_any_name_and_a_snapshot_is_one_file(tmp_path: Path) -> None:
    root = tmp_path / 'it\'s; one "store"'
    publish(root, "1")
    with writer(root) as building:
        building.merge({"jobs": job("2")})
        assert [path.name for path in root.glob("building-*")] == ["building-2.duckdb"]
        building.publish()
    assert ids(root) == ["1", "2"]
    written = {path.name for path in root.iterdir() if "state" not in path.name}
    assert written == {
        *("warehouse-1.duckdb", "warehouse-1.json", "warehouse-2.duckdb"),
        *("CURRENT", "writer.lock"),
    }


def failing(building: StoreWriter) -> None:
    """Merges something, then fails."""
    building.merge({"jobs": job("2")})
    building.connection.execute("SELECT error('no such table')")


def test_what_is_not_published_is_thrown_away(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    with pytest.raises(StoreError, match="no such table"), writer(tmp_path) as building:
        failing(building)
    with writer(tmp_path) as building:
        building.merge({"jobs": job("3")})
    assert ids(tmp_path) == ["1"]
    assert not list(tmp_path.glob("building-*"))
    assert not (tmp_path / "scratch").exists()


def test_a_failed_merge_leaves_no_part_of_its_tables(tmp_path: Path) -> None:
    with writer(tmp_path) as building:
        broken = pd.DataFrame({"cluster": ["a"], "node": ["n1"], "start_at": ["no time"]})
        with pytest.raises(duckdb.Error, match="no time"):
            building.merge({"jobs": job("1"), "node_events": broken})
        building.merge({"jobs": job("2")})
        building.publish()
    assert ids(tmp_path) == ["2"]


def test_a_fresh_writer_starts_from_nothing_but_counts_on(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    with writer(tmp_path, fresh=True) as building:
        building.load({"jobs": job("9")})
        building.publish()
    assert ids(tmp_path) == ["9"]
    current = read_current(tmp_path)
    assert current is not None
    assert current.snapshot == 2


def test_as_many_snapshots_stay_before_the_published_one_as_the_site_says(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text("[retention]\nkeep_snapshots = 2\n")
    for number in range(5):
        publish(tmp_path, str(number))
    assert sorted(path.name for path in tmp_path.glob("warehouse-*")) == [
        *("warehouse-3.duckdb", "warehouse-3.json", "warehouse-4.duckdb", "warehouse-4.json"),
        "warehouse-5.duckdb",
    ]


def contents(root: Path) -> dict[str, bytes]:
    """What is published: snapshots and CURRENT."""
    return {path.name: path.read_bytes() for path in (*root.glob("*.duckdb"), root / "CURRENT")}


def test_a_flipped_byte_is_never_copied_nor_stamped_as_sound(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    publish(tmp_path, "2")
    path = tmp_path / "warehouse-2.duckdb"
    sound = path.read_bytes()
    path.write_bytes(sound[:70_000] + bytes([sound[70_000] ^ 1]) + sound[70_001:])
    before = contents(tmp_path)
    way_back = "remove it and CURRENT to go back to snapshot 1, and ingest again what came since"
    with pytest.raises(StoreError, match=rf"warehouse-2\.duckdb: is damaged .*{way_back}"):
        publish(tmp_path, "3")
    assert contents(tmp_path) == before
    path.unlink()
    (tmp_path / "CURRENT").unlink()
    publish(tmp_path, "3")
    assert ids(tmp_path) == ["1", "3"]


def test_what_does_not_read_back_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, "1")
    publish(tmp_path, "2")
    before = contents(tmp_path)
    module = import_module("data.publish.writer")
    with monkeypatch.context() as patched:
        patched.setattr(module, "sync", lambda path: path.write_bytes(b"torn" * 4_000))
        with pytest.raises(StoreError, match="the next snapshot cannot be made"):
            publish(tmp_path, "3")
    assert contents(tmp_path) == before
    assert ids(tmp_path) == ["1", "2"]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    for name in ("building-2.duckdb", "building-2.duckdb.wal", "warehouse-2.duckdb"):
        (tmp_path / name).write_bytes(b"half a snapshot")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/input").touch()
    (tmp_path / "CURRENT.new").write_text("{", encoding="utf-8")
    publish(tmp_path, "2")
    assert ids(tmp_path) == ["1", "2"]
    assert not list(tmp_path.glob("building-*"))
    assert not (tmp_path / "scratch").exists()


KILLED = """
import os, pathlib, signal, sys
from app.actions import Options, ingest_files
at, seen = int(sys.argv[3]), 0
def progress(message):
    global seen
    seen += 1
    if seen == at:
        os.kill(os.getpid(), signal.SIGKILL)
ingest_files(pathlib.Path(sys.argv[1]), "sacct", [sys.argv[2]], Options(progress=progress))
print(seen)
"""


@pytest.mark.slow
def test_a_writer_killed_at_any_step_leaves_the_last_good_snapshot(tmp_path: Path) -> None:
    root, path = tmp_path / "store", tmp_path / "sacct.txt"
    path.write_text("JobID|State\n2|FAILED\n3|a|FAILED\n", encoding="utf-8")
    publish(root, "1")
    command = [sys.executable, "-c", KILLED, str(root), str(path)]
    for step in itertools.count(1):
        run = subprocess.run([*command, str(step)], check=False, capture_output=True, text=True)
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        assert ids(root) == ["1"]
        current = read_current(root)
        assert current is not None
        assert hashlib.sha256((root / current.file).read_bytes()).hexdigest() == current.sha256
    assert step > 4  # reading, mending, storing, deriving, publishing
    assert ids(root) == ["1", "2"]
    assert not list(root.glob("building-*"))


def test_the_checksum_in_current_is_that_of_the_file(tmp_path: Path) -> None:
    command = (
        "import sys, pathlib, pandas as pd; from data.publish import writer\n"
        "with writer(pathlib.Path(sys.argv[1])) as building:\n"
        "    building.merge({'jobs': pd.DataFrame({'cluster': ['a'], 'attempt_key': ['1']})})\n"
        "    building.publish()\n"
    )
    subprocess.run([sys.executable, "-c", command, str(tmp_path)], check=True)
    store = Store.open(tmp_path)
    assert hashlib.sha256(store.path.read_bytes()).hexdigest() == store.current.sha256
    assert not store.path.with_suffix(".duckdb.wal").exists()
    store.close()


def test_a_second_writer_is_told_since_when_the_first_writes(tmp_path: Path) -> None:
    message = rf"is being written by process {os.getpid()} since 2\d\d\d-.* UTC: wait until it"
    with writer(tmp_path), pytest.raises(StoreBusyError, match=message), writer(tmp_path):
        pass
    publish(tmp_path, "1")
    assert ids(tmp_path) == ["1"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match=r"file: cannot be written \(.*\)"),
        writer(tmp_path / "file"),
    ):
        pass


def test_every_table_and_column_has_a_comment(tmp_path: Path) -> None:
    publish(tmp_path)
    store = Store.open(tmp_path)
    for kind in ("table", "column"):
        silent = f"SELECT {kind}_name FROM duckdb_{kind}s() WHERE comment IS NULL AND NOT internal"
        assert store.rows(silent) == []
    found = {
        (table, column)
        for table, column in store.rows("SELECT table_name, column_name FROM duckdb_columns()")
        if table in tables()
    }
    assert found == {(name, column) for name, table in tables().items() for column in table.columns}
    store.close()


def test_every_time_is_a_timestamp_with_zone() -> None:
    for table in tables().values():
        for name, column in table.columns.items():
            if name.endswith("_at"):
                assert column.type == "TIMESTAMPTZ", (table.name, name)


def test_every_table_of_the_data_model_has_its_columns() -> None:
    if not DATA_MODEL.is_file():
        pytest.skip("../shared/design/data-model.md is absent")
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in DATA_MODEL.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    missing, n_stated = [], 0
    for names, _, keys, columns, *_ in rows:
        for name in set(re.findall(r"`(\w+)`", names)) - ELSEWHERE:
            one_table = "," not in names
            text = re.sub(r"\([^()]*\)", "", f"{keys}, {columns}" if one_table else "")
            stated = {word for word in re.split(r"[,;]\s*", text) if re.fullmatch(r"[a-z_]+", word)}
            n_stated += len(stated)
            known = set(tables()[name].columns) if name in tables() else set()
            missing += [f"{name}.{column}" for column in sorted(stated - known)]
            missing += [] if name in tables() else [name]
    assert missing == []
    assert n_stated > 100


def age(root: Path, *statements: str, schema_version: int = 0) -> None:
    """Makes the published snapshot look as an older version left it."""
    current = json.loads((root / "CURRENT").read_text())
    with duckdb.connect(str(root / current["file"])) as connection:
        for statement in statements:
            connection.execute(statement)
    as_earlier(root, schema_version)


def test_an_older_store_is_migrated_when_it_is_opened(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    age(
        tmp_path,
        "DROP TABLE gpu_time",
        "ALTER TABLE jobs DROP COLUMN preempted_by",
        "COMMENT ON TABLE jobs IS NULL",
    )
    store = Store.open(tmp_path)
    assert (store.snapshot, store.current.schema_version) == (2, SCHEMA_VERSION)
    assert store.rows("SELECT job_id, preempted_by FROM jobs") == [("1", None)]
    assert store.rows("SELECT count(*) FROM gpu_time") == [(0,)]
    assert store.rows("SELECT comment IS NULL FROM duckdb_tables() WHERE table_name = 'jobs'") == [
        (False,)
    ]
    store.close()


def test_a_table_that_is_gone_leaves_an_older_store_when_it_is_migrated(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    age(
        tmp_path,
        "DROP TABLE node_metrics_hourly",
        "CREATE TABLE node_metrics_hourly (cluster VARCHAR, value DOUBLE)",
        "INSERT INTO node_metrics_hourly VALUES ('a', 1.5)",
        schema_version=4,
    )
    store = Store.open(tmp_path)
    assert store.current.schema_version == SCHEMA_VERSION
    names = {name for (name,) in store.rows("SELECT table_name FROM duckdb_tables()")}
    assert names == tables().keys()
    assert store.rows("SELECT job_id FROM jobs") == [("1",)]
    assert store.rows("SELECT node, hour_at, mean FROM node_metrics_hourly") == []
    store.close()


def test_an_older_store_can_be_written_without_opening_it_first(tmp_path: Path) -> None:
    publish(tmp_path, "1")
    age(tmp_path, "DROP TABLE incidents", "ALTER TABLE node_events DROP COLUMN planned")
    publish(tmp_path, "2")
    assert ids(tmp_path) == ["1", "2"]
    assert migrate(tmp_path).schema_version == SCHEMA_VERSION


def test_statements_of_the_versions_passed_run_in_their_order() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE tickets (cluster VARCHAR, number VARCHAR)")
        steps = {
            0: ["SELECT error('long past')"],
            1: ["ALTER TABLE tickets RENAME COLUMN number TO ticket_id"],
        }
        update(connection, from_version=0, migrations=steps)
        names = [row[0] for row in connection.execute("DESCRIBE tickets").fetchall()]
    assert set(names) == set(tables()["tickets"].columns)
    assert "number" not in names


def test_where_nothing_was_published_nothing_is_left(tmp_path: Path) -> None:
    root = tmp_path / "new/store"
    with pytest.raises(StoreError, match="no such table"), writer(root) as building:
        failing(building)
    assert not list(tmp_path.iterdir())
    with writer(root):
        pass
    assert not list(tmp_path.iterdir())


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text("")
    with writer(tmp_path) as building:
        building.merge({"jobs": job("1")})
    assert [path.name for path in tmp_path.iterdir()] == ["site.toml"]


def test_what_somebody_put_there_meanwhile_stays(tmp_path: Path) -> None:
    with writer(tmp_path / "store"):
        (tmp_path / "store/site.toml").write_text("")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["site.toml"]


ENTERED = """
import os, pathlib, sys
from data.errors import StoreBusyError
from data.publish import lock
root, inside = map(pathlib.Path, sys.argv[1:])
entered = 0
while entered < 50:
    try:
        with lock.locked(root):
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another one is inside
            entered += 1
            inside.unlink()
    except StoreBusyError:
        pass
"""


@pytest.mark.slow
def test_of_writers_that_come_and_leave_one_is_inside_at_a_time(tmp_path: Path) -> None:
    paths = (tmp_path / "a/store", tmp_path / "in")
    command = [sys.executable, "-c", ENTERED, *map(str, paths)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[1] for process in writers] == [""] * 3
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
