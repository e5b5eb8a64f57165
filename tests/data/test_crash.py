"""A writer killed anywhere leaves the last good snapshot, and only one writes at a time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from app.actions import Options, annotate, ingest_files
from data.backup import MANIFEST, backup, checked
from data.errors import StoreBusyError, StoreError
from data.metrics_files import METRICS, NAMED
from data.publish import writer
from data.state import State
from data.store import Store
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from data.uploads import remove_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
HEADER = "JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList"


def _file(path: Path, first: int, n: int) -> str:
    lines = [
        f"{first + i}|COMPLETED|{'|'.join(f'2024-01-01T0{hour}:00:00' for hour in range(3))}"
        "|1|gres/gpu=8|n1"
        for i in range(n)
    ]
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return str(path)


def _count(root: Path) -> int:
    store = Store.open(root)
    try:
        ((n,),) = store.rows("SELECT count(*) FROM jobs")
        return int(n)
    finally:
        store.close()


def _trace(path: Path) -> None:
    forward = np.full((3, 2, 2, 1, 4), 0.1)
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2, 5), tp=4)
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    arrow_csv.write_csv(pa.table({name: pa.array(each) for name, each in columns.items()}), path)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, a backup of another one, and files to come."""
    folder = tmp_path_factory.mktemp("before")
    for name, first in (("other", 500), ("store", 0)):
        ingest_files(folder / name, "sacct", [_file(folder / "a.txt", first, 1000)], Options())
        annotate(folder / name, "node:cluster/n1", "note", f"of {name}")
    backup(folder / "other", folder / "kept")
    (folder / "store" / "site.toml").write_text('[cluster.c]\ngpu_model = "H100"\n', "utf-8")
    _file(folder / "b.txt", 1000, 3000)
    _trace(folder / "trace.csv")
    return folder


OF_ONE_PUBLISH = {
    "ingests": "DISTINCT * EXCLUDE (ingest_id, ingested_at, brought, command)",
    "rejected_rows": "DISTINCT * EXCLUDE (ingest_id)",
}
"""Table -> what does not tell one publish from another of the same records."""


def contents(root: Path) -> dict[str, Any]:
    """All that a store holds: rows, whatever their order, what people said, files beside them."""
    with closing(Store.open(root)) as store:
        tables = [name for (name,) in store.rows("SELECT table_name FROM duckdb_tables()")]
        rows = store.rows(
            " UNION ALL ".join(
                f"SELECT '{name}', count(*), sum(hash(t)) FROM "
                f"(SELECT {OF_ONE_PUBLISH.get(name, '*')} FROM {name}) t"
                for name in tables
                if name != "store_meta"
            )
        )
        named = [root / METRICS / path for (path,) in store.rows(NAMED)]
    said = {(made.target, made.field, made.value) for made in State(root).history()}
    beside = {
        str(path.relative_to(root)): path.read_bytes()
        for path in [root / "site.toml", *named]
        if path.exists()
    }
    return {"rows": sorted(rows), "said": said, "beside": beside}


def names(root: Path) -> set[str]:
    """Files of a store without their numbers, but for those that SQLite keeps itself and the folder
    that the next writer empties.
    """
    found = (re.sub(r"\d\w*", "N", str(path.relative_to(root))) for path in root.rglob("*"))
    return set(found) - {"state.sqlite-wal", "state.sqlite-shm", "scratch"}


KILLED = {
    "ingest": ["ingest", "sacct", "b.txt", "--store", "store"],
    "ingest-trace": ["ingest", "straggler-trace", "trace.csv", "--job-id", "7", "--store", "store"],
    "stages": ["ledger", "--store", "store"],
    "annotate": ["annotate", "node:cluster/n1", "--status", "open", "--store", "store"],
    "backup": ["backup", "out", "--store", "store"],
    "restore": ["restore", "kept", "--force", "--store", "store"],
}
"""What is killed -> the command, whose files lie in one folder."""


def asked_in(folder: Path, what: str) -> dict[str, Any]:
    """The request that does it in a folder."""
    doing = {"argv": KILLED[what]} if what in KILLED else {"upload": "b.txt", "store": "store"}
    return doing | {"folder": str(folder)}


def is_a_backup(folder: Path) -> bool:
    """Whether it can be restored."""
    try:
        return checked(folder).n_bytes > 0
    except StoreError:
        return False


def killed(
    ended: Callable[..., dict[str, Any]], before: Path, place: Path, what: str, *, few: bool
) -> int:
    """Kills it at many moments; each time the store is as it was or as it would be, the same again
    makes it so, and nothing stays. How many times it was killed.
    """
    whole = place / "whole"
    shutil.copytree(before, whole)
    old = contents(whole / "store")
    done = ended(**asked_in(whole, what))
    assert done["code"] == 0
    new, left = contents(whole / "store"), names(whole / "store")
    n_killed = 0
    for number, moment in enumerate(moments(what, done, few=few)):
        folder = place / str(number)
        shutil.copytree(before, folder)
        store = folder / "store"
        told = ended(**asked_in(folder, what), **moment)
        n_killed += "killed" in told
        remove_abandoned(store, older_than_s=0)  # as a server does that starts
        found = contents(store)
        assert found in (old, new), (what, moment)
        if what == "backup":
            assert is_a_backup(folder / "out") == (folder / "out" / MANIFEST).exists(), moment
        if is_a_backup(folder / "out"):  # what is less, the next one clears
            shutil.rmtree(folder / "out")
        if not few or number % 2:
            assert ended(**asked_in(folder, what)).get("code") == 0, (what, moment)
            assert contents(store) == new, (what, moment)
            assert names(store) == left, (what, moment)
            assert what != "backup" or is_a_backup(folder / "out")
        shutil.rmtree(folder)
    return n_killed


def moments(what: str, done: dict[str, Any], *, few: bool) -> list[dict[str, Any]]:
    """When it is killed: before each step that changes files, and after so much processor time."""
    n_times = 1 if few else 20
    seconds = [(2 * n + 1) / (2 * n_times) * done["seconds"] for n in range(n_times)]
    if what in KILLED:
        steps = list(range(done["steps"]))
        steps = steps[-2 :: -len(steps) // 2] if few else steps
        return [{"step": step} for step in steps] + [{"seconds": each} for each in seconds]
    return [{"ends": what.partition(" ")[0], "seconds": each} for each in seconds]


def test_kill_9_leaves_a_good_store(
    ended: Callable[..., dict[str, Any]], before: Path, tmp_path: Path
) -> None:
    assert killed(ended, before, tmp_path, "ingest", few=True) > 0


@pytest.mark.slow
@pytest.mark.parametrize("what", [*KILLED, "reader of an upload", "dashboard of an upload"])
def test_kill_9_anywhere_leaves_a_good_store(
    ended: Callable[..., dict[str, Any]], before: Path, tmp_path: Path, what: str
) -> None:
    n_killed = killed(ended, before, tmp_path, what, few=False)
    print(f"{what}: killed {n_killed} times")
    assert n_killed >= 10


@pytest.mark.slow
def test_sigterm_ends_an_ingest_cleanly(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 10)], Options())
    before = {path.name: path.read_bytes() for path in root.glob("*.duckdb")}
    more = _file(tmp_path / "b.txt", 10, 200_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "ingest", "sacct", more, "--store", str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(root.glob("building-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    assert err.splitlines()[-1] == "faultline ingest: ended by SIGTERM"
    assert {path.name: path.read_bytes() for path in root.glob("*.duckdb")} == before
    assert not list(root.glob("building-*"))
    assert not (root / "scratch").exists()
    assert _count(root) == 10


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    root = tmp_path / "store"
    busy = pytest.raises(StoreBusyError, match=r"is being written by process \d+")
    with writer(root), busy, writer(root):
        pass


def test_a_reader_keeps_its_snapshot_while_another_is_published(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 3)], Options())
    old = Store.open(root)
    ingest_files(root, "sacct", [_file(tmp_path / "b.txt", 3, 2)], Options())
    assert old.rows("SELECT count(*) FROM jobs") == [(3,)]
    old.close()
    assert _count(root) == 5


def test_a_failed_ingest_leaves_the_store_untouched(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 3)], Options())
    before = (root / "CURRENT").read_bytes()
    broken = tmp_path / "broken.txt"
    broken.write_text(f"{HEADER}\nx|y|z\n", encoding="utf-8")
    with pytest.raises(Exception, match="1 of 1 records rejected"):
        ingest_files(root, "sacct", [str(broken)], Options())
    assert (root / "CURRENT").read_bytes() == before


def test_a_store_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no store: `faultline ingest` or `faultline demo`"):
        Store.open(tmp_path)


@pytest.mark.slow
def test_a_store_that_lost_its_current_is_taken_up_again(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for n in (1, 2):
        ingest_files(root, "sacct", [_file(tmp_path / f"{n}.txt", 10 * n, 3)], Options())
    (root / "CURRENT").unlink()
    ingest_files(root, "sacct", [_file(tmp_path / "3.txt", 30, 3)], Options())
    assert _count(root) == 9
