"""Retention: what is too old is gone for good, what is not stays, and it is known what was there."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, forget, ingest_files, to_forget
from app.answers.fleet import coverage
from app.ask import of_store
from data.audit import Audit
from data.errors import DataError
from data.filters import Selection
from data.publish import plan
from data.snapshots import kept_snapshots
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

AS_OF = datetime(2026, 2, 1, 15, tzinfo=UTC)
SACCT = """\
JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|olduser|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T23:59:59|1|gres/gpu=8|n1
2|c|u|NODE_FAIL|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n2
3|c|u|COMPLETED|2026-01-20T00:00:00|2026-01-20T00:00:00|2026-01-21T00:00:00|1|gres/gpu=8|n1
4|c|u|COMPLETED|olduser|2026-01-20T00:00:00|2026-01-21T00:00:00|1|gres/gpu=8|n1
"""
KERNEL = "{}n2 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two publishes; a job that ended a second before 2 January, and an event without a time."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "sacct.txt").write_text(SACCT)
    (folder / "kernel.txt").write_text(KERNEL.format("2026-01-01T23:59:00 ") + KERNEL.format(""))
    root = folder / "store"
    ingest_files(root, "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    ingest_files(root, "kernel-log", [str(folder / "kernel.txt")], Options(cluster="c", node="n2"))
    return root


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    root = shutil.copytree(built, tmp_path / "store")
    (root / "site.toml").write_text("[retention]\njobs = 30\nhealth_events = 30\n")
    return root


@pytest.fixture(scope="module")
def forgotten(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same once what is too old is gone; only to be read."""
    root = shutil.copytree(built, tmp_path_factory.mktemp("forgotten") / "store")
    (root / "site.toml").write_text("[retention]\njobs = 30\nhealth_events = 30\n")
    forget(root, AS_OF, author="ann")
    return root


def rows(root: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(Store.open(root)) as store:
        return store.rows(sql)


def test_what_would_go_is_counted_by_table_before_midnight(store: Path) -> None:
    events, jobs = to_forget(store, AS_OF)
    assert (jobs.table, jobs.days, jobs.n_rows) == ("jobs", 30, 1)
    assert jobs.before_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert jobs.first_at == jobs.last_at == datetime(2026, 1, 1, 23, 59, 59, tzinfo=UTC)
    assert (events.table, events.n_rows) == ("health_events", 1)
    assert rows(store, "SELECT count(*) FROM jobs") == [(3,)]


def test_rows_go_with_their_nodes_and_the_rest_is_derived_from_what_stays(
    forgotten: Path,
) -> None:
    assert rows(forgotten, "SELECT job_id FROM jobs ORDER BY 1") == [("2",), ("3",)]
    assert rows(forgotten, "SELECT count(*) FROM job_nodes") == [(2,)]
    assert rows(forgotten, "SELECT observed_at FROM health_events") == [
        (None,)
    ]  # unknown is not old
    assert rows(forgotten, "SELECT n_rows FROM coverage WHERE source = 'jobs' ORDER BY day") == [
        (1,), (1,),
    ]  # fmt: skip
    assert rows(forgotten, "SELECT count(*) FROM failures") == [(1,)]
    assert rows(forgotten, "SELECT timezone FROM clusters") == [("UTC",)]


def test_no_byte_of_it_stays_in_the_store_nor_a_way_back(store: Path) -> None:
    (store / "site.toml").write_text("[retention]\njobs = 30\nrejected_rows = 1\n")
    _, current, _ = forget(store, datetime(2126, 1, 1, tzinfo=UTC))
    assert current is not None
    assert [kept.current for kept in kept_snapshots(store)] == [current]
    held = [path for path in store.rglob("*") if path.is_file() and b"olduser" in path.read_bytes()]
    assert held == []
    assert plan(store, ingest_id="1.1").base is None  # an empty store alone
    with pytest.raises(DataError, match=r"before ingest 2\.2 is gone"):
        plan(store, ingest_id="2.2")


def test_it_is_remembered_what_was_forgotten_and_by_whom(forgotten: Path) -> None:
    at = "strftime(before_at, '%Y-%m-%d')"
    assert rows(forgotten, f"SELECT table_name, {at}, n_rows FROM forgotten ORDER BY 1") == [
        ("health_events", "2026-01-02", 1), ("jobs", "2026-01-02", 1),
    ]  # fmt: skip
    with closing(Store.open(forgotten)) as opened:
        answer = coverage.answer(of_store(opened), Selection())
        assert any(
            "jobs before 2 Jan 2026 (UTC) were removed by the site's" in note
            for note in answer.notes
        )
        assert (
            "forgotten"
            in coverage.of_store(of_store(opened), datetime(2026, 2, 1, tzinfo=UTC)).record
        )
    (entry, *_) = Audit(forgotten).entries()
    assert (entry.person, entry.action, entry.target) == ("ann", "forget", "health_events, jobs")
    assert entry.detail["rows"] == {"health_events": 1, "jobs": 1}


def test_what_is_read_again_is_there_again_until_it_is_forgotten_again(
    forgotten: Path, built: Path, tmp_path: Path
) -> None:
    store = shutil.copytree(forgotten, tmp_path / "store")
    path = str(built.parent / "sacct.txt")
    (result,), _ = ingest_files(store, "sacct", [path], Options(timezone="UTC"))
    assert result.tables["jobs"] == 1
    told = "1 rows of jobs before 2026-01-02, which had been forgotten, are in the store again: "
    assert any(note.startswith(told) for note in result.notices)
    gone, _, _ = forget(store, AS_OF)
    assert [each.n_rows for each in gone] == [0, 1]


def test_nothing_too_old_publishes_nothing(store: Path) -> None:
    gone, current, _ = forget(store, datetime(2026, 1, 3, tzinfo=UTC))
    assert (sum(each.n_rows for each in gone), current) == (0, None)
    assert len(kept_snapshots(store)) == 2


def test_a_site_that_states_no_retention_is_told_how(store: Path) -> None:
    (store / "site.toml").write_text("[retention]\nkeep_snapshots = 3\n")
    with pytest.raises(DataError, match=r"says of no table how long to keep it: write e\.g\. jobs"):
        to_forget(store, AS_OF)


def test_a_damaged_snapshot_is_not_copied(store: Path) -> None:
    path = store / "warehouse-2.duckdb"
    flipped = bytearray(path.read_bytes())
    flipped[-9] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(DataError, match=r"warehouse-2\.duckdb: is damaged"):
        forget(store, AS_OF)
    assert len(kept_snapshots(store)) == 2
