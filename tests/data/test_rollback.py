"""Going back: what an ingest brought is taken back, whatever else happened, and nothing else."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, annotate, ingest_files, undo
from data import publish
from data.audit import Audit
from data.current import read_current
from data.errors import StoreError
from data.publish import StoreWriter, plan, roll_back, undoable, writer
from data.snapshots import kept_snapshots
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"


def line(job: int, day: int, state: str = "COMPLETED") -> str:
    return (
        f"{job}|c|u|{state}|2026-01-{day:02}T00:00:00|2026-01-{day:02}T00:0{job % 10}:00|"
        f"2026-01-{day:02}T05:00:00|1|gres/gpu=8|n{job}\n"
    )


def read(root: Path, *days: int) -> None:
    """One publish; a file of one job for each day."""
    files = [root.parent / f"day {day}.txt" for day in days]
    for file, day in zip(files, days, strict=True):
        file.write_text(HEADER + line(day, day, "NODE_FAIL"))
    ingest_files(root, "sacct", [str(file) for file in files], Options(timezone="UTC"))


def jobs(root: Path) -> list[str]:
    with closing(Store.open(root)) as store:
        return [row[0] for row in store.rows("SELECT job_id FROM jobs ORDER BY job_id")]


def content(root: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table that records decide."""
    aside = {"store_meta", "stage_runs", "annotations"}
    with closing(Store.open(root)) as store:
        names = [row[0] for row in store.rows("SELECT table_name FROM duckdb_tables()")]
        return {name: store.rows(f"SELECT * FROM {name} ORDER BY ALL") for name in {*names} - aside}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingests 1.1; 2.2 and 2.3 together; 3.4. Only to be copied."""
    root = tmp_path_factory.mktemp("built") / "store"
    read(root, 1)
    read(root, 2, 3)
    read(root, 4)
    return root


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "store")


def test_an_ingest_is_taken_back_with_all_that_came_with_it_and_after_it(
    store: Path, built: Path
) -> None:
    planned = plan(store, ingest_id="2.3")
    assert [each["ingest_id"] for each in planned.undone] == ["2.2", "2.3", "3.4"]
    repeat = planned.to_repeat("2.3")
    folder = built.parent
    assert [each["command"] for each in repeat] == [
        f"faultline ingest sacct --timezone UTC '{folder}/day 2.txt'",
        f"faultline ingest sacct --timezone UTC '{folder}/day 4.txt'",
    ]
    done, current = roll_back(store, ingest_id="2.3")
    assert (done, current.snapshot) == (planned, 4)
    assert jobs(store) == ["1"]
    assert read_current(store) == current
    with closing(Store.open(store)) as opened:  # what is derived follows
        assert opened.rows("SELECT attempt_key FROM failures") == opened.rows(
            "SELECT attempt_key FROM jobs"
        )


@pytest.mark.slow
def test_reading_again_what_was_named_gives_the_store_of_before(store: Path, built: Path) -> None:
    before = content(built)
    roll_back(store, ingest_id="2.2")
    read(store, 2, 3)
    read(store, 4)
    after = content(store)
    assert {name for name in before if before[name] != after[name]} == {"ingests"}


def test_a_rollback_is_taken_back_by_the_number_that_it_names(store: Path) -> None:
    before = content(store)
    done, _ = roll_back(store, ingest_id="3.4")
    again, current = roll_back(store, snapshot=done.published)
    assert [each["ingest_id"] for each in again.brought_back] == ["3.4"]
    assert (again.undone, current.snapshot) == ((), 5)
    assert content(store) == before
    roll_back(store, ingest_id="3.4")  # and once more
    assert jobs(store) == ["1", "2", "3"]


def test_the_first_ingest_leaves_an_empty_store_whose_next_one_has_another_id(
    store: Path,
) -> None:
    planned, _ = roll_back(store, ingest_id="1.1")
    assert planned.base is None
    assert jobs(store) == []
    read(store, 1)
    with closing(Store.open(store)) as opened:
        assert opened.rows("SELECT ingest_id FROM ingests") == [("5.1",)]


@pytest.mark.slow
def test_what_people_said_stays_also_of_an_attempt_that_is_gone(store: Path) -> None:
    with closing(Store.open(store)) as opened:
        keys = dict(opened.rows("SELECT job_id, attempt_key FROM jobs"))
    kept, gone = (f"attempt:c/{keys[job]}" for job in ("1", "4"))
    annotate(store, kept, "cause", "cuda_oom")
    said = annotate(store, gone, "cause", "cuda_oom")
    State(store).record("ann", "query", {"sql": "SELECT 1"})
    roll_back(store, ingest_id="3.4")
    assert [each.target for each in State(store).history()] == [gone, kept]
    assert [each.action for each in Audit(store).entries()][:2] == ["query", "annotate"]
    with closing(Store.open(store)) as opened:  # what was said since counts in what is derived
        assert opened.rows("SELECT cause, method FROM failures WHERE attempt_key = $key",
                           {"key": keys["1"]}) == [("cuda_oom", "human")]  # fmt: skip
    assert undo(store, said.annotation_id).undone_at is not None
    read(store, 4)
    assert jobs(store) == ["1", "2", "3", "4"]


def test_a_snapshot_that_is_gone_is_told_with_those_that_are_kept(store: Path) -> None:
    (store / "site.toml").write_text("[retention]\nkeep_snapshots = 2\n")
    read(store, 5)
    assert [kept.current.snapshot for kept in kept_snapshots(store)] == [2, 3, 4]
    message = (
        r"the snapshot before ingest 2\.2 is gone or damaged \(keep_snapshots of \[retention\] .*\): kept are "
        r"3, 2, which `faultline rollback --to N` goes back to"
    )
    with pytest.raises(StoreError, match=message):
        roll_back(store, ingest_id="2.2")
    assert undoable(store) == {"1.1", "3.4", "4.5"}  # nothing is needed before the first one
    for wanted, why in ((1, "is not kept"), (4, "is the published one"), (9, "is not kept")):
        with pytest.raises(StoreError, match=f"snapshot {wanted} {why}: kept are 3, 2"):
            plan(store, snapshot=wanted)
    with pytest.raises(StoreError, match=r"no ingest '7\.1': the latest are 4\.5, 3\.4, 2\.3"):
        plan(store, ingest_id="7.1")
    assert jobs(store) == ["1", "2", "3", "4", "5"]


def test_a_store_that_changed_since_somebody_agreed_is_left_alone(store: Path) -> None:
    agreed = plan(store, ingest_id="3.4")
    read(store, 5)
    with pytest.raises(StoreError, match="snapshot 4 was published meanwhile"):
        roll_back(store, ingest_id="3.4", expected=agreed.published)
    assert jobs(store) == ["1", "2", "3", "4", "5"]


def test_a_damaged_earlier_snapshot_is_never_published_again(store: Path) -> None:
    path = store / "warehouse-2.duckdb"
    sound = path.read_bytes()
    for place, why in ((70_000, "is gone or damaged"), (-9, r"is (gone or )?damaged")):
        flipped = bytearray(sound)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(StoreError, match=why):
            roll_back(store, ingest_id="3.4")
    assert jobs(store) == ["1", "2", "3", "4"]
    assert not list(store.glob("building-*"))


def test_a_snapshot_of_another_store_is_no_earlier_state_of_this_one(
    store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    read(other, 7)
    read(other, 8)
    for name in ("warehouse-1.duckdb", "warehouse-1.json"):
        shutil.copy(other / name, store / name)
    with pytest.raises(StoreError, match=r"the snapshot before ingest 2\.2 is gone or damaged"):
        plan(store, ingest_id="2.2")


def test_readers_of_an_earlier_snapshot_are_not_disturbed(store: Path) -> None:
    with closing(Store.open(store)) as reader:
        (store / "site.toml").write_text("[retention]\nkeep_snapshots = 1\n")
        roll_back(store, ingest_id="2.2")
        read(store, 5)
        assert not reader.path.exists()
        assert reader.rows("SELECT count(*) FROM jobs") == [(4,)]


def test_a_rollback_that_fails_or_is_killed_leaves_the_store_as_it_was(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(store)
    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "_land", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            roll_back(store, ingest_id="3.4")
    assert content(store) == before
    assert plan(store, ingest_id="3.4").published == 3
    (store / "warehouse-3.json").write_text("{")  # cut off: the snapshot beside it is not trusted
    read(store, 5)
    (store / "warehouse-3.json").write_text("{")
    assert undoable(store) == {"1.1", "2.2", "2.3", "3.4"}


def test_a_copy_that_shares_blocks_is_checked_like_any_other(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cloned(copy: object, _: int, original: int) -> int:
        with open(original, "rb", closefd=False) as stream:
            copy.write(stream.read())  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr(fcntl, "ioctl", cloned)
    read(store, 5)
    assert jobs(store) == ["1", "2", "3", "4", "5"]
    path = store / "warehouse-4.duckdb"
    sound = path.read_bytes()
    path.write_bytes(sound[:70_000] + bytes([sound[70_000] ^ 1]) + sound[70_001:])
    with pytest.raises(StoreError, match="is damaged"):
        read(store, 6)


def test_a_store_without_records_has_nothing_to_take_back(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no store"):
        plan(tmp_path, ingest_id="1.1")
    with pytest.raises(StoreError, match="holds no store"):
        roll_back(tmp_path / "new", ingest_id="1.1")
    assert not (tmp_path / "new").exists()
    with writer(tmp_path) as building:
        building.publish()
    with pytest.raises(StoreError, match=r"no ingest '1\.1': the latest are none"):
        publish.plan(tmp_path, ingest_id="1.1")
