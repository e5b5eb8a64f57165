"""faultline backup and restore: what is restored answers as the store did, or nothing changes."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from app import actions
from app.cli import main
from data import backup as backups
from data.backup import manifest
from data.current import read_current, replace_file
from data.errors import DataError, StoreError
from data.site import ClusterSite, load_site
from data.state import Annotation, State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADER = "JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList"
QUESTIONS = (["failures", "--list"], ["mttf"], ["incidents"])
CAUSES = ("pcie", "nic", "gpu_memory")


@pytest.fixture(scope="module")
def originals(sacct_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that holds something of everything, and its backup."""
    folder = tmp_path_factory.mktemp("originals")
    root = folder / "store"
    shutil.copytree(sacct_store, root)
    (root / "site.toml").write_text('[cluster.c]\ngpu_model = "H100"\n', encoding="utf-8")
    (root / "models").mkdir()
    (root / "models" / "CURRENT").write_text(f"{'0' * 64}.json\n", encoding="utf-8")
    (root / "models" / f"{'0' * 64}.json").write_text("{}", encoding="utf-8")
    trace = root / "metrics" / "straggler_traces" / "a.parquet"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(bytes(range(256)))
    with closing(Store.open(root)) as store:
        ((key,),) = store.rows("SELECT attempt_key FROM failures")
    actions.annotate(root, f"attempt:c/{key}", "cause", "pcie")
    State(root).redaction_key()
    assert main(["backup", str(folder / "backup"), "--store", str(root)]) == 0
    return folder


@pytest.fixture
def store(tmp_path: Path, originals: Path) -> Path:
    """The store, to be written to."""
    shutil.copytree(originals / "store", tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def backup(tmp_path: Path, originals: Path) -> Path:
    """Its backup, to be damaged."""
    shutil.copytree(originals / "backup", tmp_path / "backup")
    return tmp_path / "backup"


def answers(
    faultline: Callable[..., Any], root: Path, questions: Sequence[list[str]] = QUESTIONS[:1]
) -> list[str]:
    """What the questions print of a store."""
    return [faultline(*question, "--store", root).out for question in questions]


def held(root: Path) -> tuple[str, list[Annotation], dict[str, ClusterSite]] | None:
    """Snapshot, annotations and configuration of a store, which all answers follow from; None where
    there is no store.
    """
    if not (root / "CURRENT").exists() and not (root / "restored").exists():
        return None
    with closing(Store.open(root)) as store:
        return store.current.sha256, State(root).history(), load_site(root).clusters


def contents(folder: Path) -> dict[str, bytes]:
    """Files -> what they hold, but for those that SQLite and the locks keep themselves."""
    kept = ("state.sqlite-wal", "state.sqlite-shm", "writer.lock", "evaluating.lock")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in kept
    }


def test_a_restored_store_answers_the_same(
    faultline: Callable[..., Any], store: Path, backup: Path
) -> None:
    told = json.loads((backup / "manifest.json").read_text(encoding="utf-8"))
    assert sorted(told["files"]) == [
        "CURRENT", "metrics/straggler_traces/a.parquet", f"models/{'0' * 64}.json",
        "models/CURRENT", "site.toml", "state.sqlite", "warehouse-1.duckdb",
    ]  # fmt: skip
    restored = store.with_name("restored")
    said = faultline("restore", backup, "--store", restored).json
    assert (said["snapshot"], said["files"], said["store"]) == (1, 7, str(restored))
    assert said["manifest"] == str(backup / "manifest.json")
    assert answers(faultline, restored) == answers(faultline, store)
    assert State(restored).history() == State(store).history()
    assert State(restored).redaction_key() == State(store).redaction_key()
    before, after = contents(store), contents(restored)
    for name in ("site.toml", "models/CURRENT", "CURRENT", "warehouse-1.duckdb"):
        assert before[name] == after[name]
    assert set(before) == set(after)
    assert [row[2:] for row in State(restored).audit(1)] == [
        ("restore", json.dumps({"path": str(backup), "made_at": told["made_at"]}))
    ]


def test_what_a_killed_backup_left_is_cleared_and_one_that_runs_is_left_alone(
    store: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"

    def killed(text: str) -> None:
        if text.startswith("writing"):
            os.kill(os.getpid(), signal.SIGKILL)

    def meanwhile(text: str) -> None:
        if text.startswith("writing"):
            with pytest.raises(StoreError, match="another backup is being written there"):
                backups.backup(store, folder)

    pid = os.fork()
    if pid == 0:
        backups.backup(store, folder, killed)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert (folder / "warehouse-1.duckdb").exists()
    (folder / "metrics" / "stale").write_text("of the killed one")
    told: list[str] = []
    backups.backup(store, folder, lambda text: (told.append(text), meanwhile(text))[0])
    assert told[0] == "removing what a backup left that was killed"
    found = {path.name for path in folder.rglob("*")}
    assert not found & {"stale", ".unfinished"}
    assert backups.checked(folder).n_bytes > 0


def test_a_backup_is_a_store_that_can_be_read(
    faultline: Callable[..., Any], store: Path, backup: Path
) -> None:
    assert answers(faultline, backup) == answers(faultline, store)
    checked = faultline("restore", backup, "--check", "--format", "table")
    assert checked.code == 0
    assert "files      7" in checked.out


@pytest.mark.slow
def test_a_store_is_replaced_by_force_alone_under_the_next_number(
    faultline: Callable[..., Any], refused: Callable[..., str], store: Path, backup: Path
) -> None:
    before = answers(faultline, store)
    more = store.with_name("more.txt")
    more.write_text(f"{HEADER}\n9|c|gpu|x|NODE_FAIL{'|2026-01-09T00:00:00' * 3}|1||n9\n", "utf-8")
    faultline("ingest", "sacct", more, "--store", store)
    faultline("annotate", "node:c/n9", "--note", "since then", "--store", store)
    (store / "site.toml").write_text("", encoding="utf-8")
    now = contents(store)
    assert "holds a store: name another --store, or replace it by --force" in refused(
        "restore", backup, "--store", store
    )
    assert contents(store) == now
    assert faultline("restore", backup, "--store", store, "--force").json["snapshot"] == 3
    assert answers(faultline, store) == before
    assert sorted(path.name for path in store.glob("warehouse-*.duckdb")) == [
        "warehouse-1.duckdb", "warehouse-2.duckdb", "warehouse-3.duckdb",
    ]  # fmt: skip
    assert "H100" in (store / "site.toml").read_text("utf-8")
    (aside,) = store.glob("replaced-*-state.sqlite")
    aside.rename(backup / "state.sqlite")
    assert [made.value for made in State(backup).history()] == ["since then", "pcie"]
    assert faultline("ingest", "sacct", more, "--store", store).code == 0


def test_what_the_backup_lacks_goes_and_a_broken_store_can_be_replaced(
    faultline: Callable[..., Any], sacct_store: Path, store: Path
) -> None:
    faultline("backup", store.with_name("plain"), "--store", sacct_store)
    (store / "CURRENT").write_text("{", encoding="utf-8")
    (store / "state.sqlite").write_bytes(b"this is no database, however long it is" * 50)
    assert faultline("restore", store.with_name("plain"), "--store", store, "--force").code == 0
    assert answers(faultline, store) == answers(faultline, sacct_store)
    assert not (store / "site.toml").exists()
    assert not (store / "models" / "CURRENT").exists()
    assert list(store.glob("damaged-*-state.sqlite"))


def test_a_backup_or_store_of_the_wrong_kind_is_refused(
    refused: Callable[..., str], store: Path, backup: Path, tmp_path: Path
) -> None:
    assert "is not empty: a backup needs a folder of its own" in refused(
        "backup", backup, "--store", store
    )
    assert "lies in the store" in refused("backup", store / "backup", "--store", store)
    assert "holds no store" in refused("backup", tmp_path / "a" / "b", "--store", tmp_path / "no")
    assert not (tmp_path / "a").exists()
    assert "manifest.json: is missing: name the folder of a finished backup" in refused(
        "restore", store, "--store", tmp_path / "new"
    )
    assert "holds other things than a store" in refused(
        "restore", backup, "--store", "/usr", "--force"
    )
    assert "holds the backup itself" in refused("restore", backup, "--store", tmp_path, "--force")
    assert not (tmp_path / "new").exists()


def test_a_backup_refuses_a_store_that_lost_something(
    refused: Callable[..., str], store: Path
) -> None:
    target = store.with_name("backup")
    warehouse = store / "warehouse-1.duckdb"
    sound = warehouse.read_bytes()
    warehouse.write_bytes(sound[:-1] + b"x")
    assert "is damaged" in refused("backup", target, "--store", store)
    warehouse.write_bytes(sound)
    (store / "state.sqlite").write_bytes(b"this is no database, however long it is" * 50)
    assert "state.sqlite: cannot be read" in refused("backup", target, "--store", store)
    assert not target.exists()


def damaged_anywhere(
    faultline: Callable[..., Any], backup: Path, store: Path, places: list[tuple[str, int]]
) -> int:
    """One bit of a backup flips at each place; how often it is refused, and the store stays."""
    before, n_refused = contents(store), 0
    for name, place in places:
        path = backup / name
        sound = path.read_bytes()
        path.write_bytes(
            sound[:place] + bytes([sound[place] ^ 1 << place % 8]) + sound[place + 1 :]
        )
        said = faultline("restore", backup, "--store", store, "--force")
        assert (said.code, said.out) == (2, ""), (name, place, said)
        assert said.err.count("\n") == 1, (name, place, said)
        n_refused += "is damaged" in said.err or "is missing" in said.err
        path.write_bytes(sound)
    assert contents(store) == before
    assert not (store / "scratch").exists()
    assert faultline("restore", backup, "--store", store, "--force").code == 0
    return n_refused


def test_a_damaged_byte_is_refused(
    faultline: Callable[..., Any], store: Path, backup: Path
) -> None:
    chosen = random.Random(7)
    places = [
        (name, chosen.randrange(len(content)))
        for name, content in contents(backup).items()
        for _ in range(6)
    ]
    assert damaged_anywhere(faultline, backup, store, places) == len(places)


@pytest.mark.slow
def test_each_byte_of_the_small_files_and_a_thousand_of_the_others(
    faultline: Callable[..., Any], store: Path, backup: Path
) -> None:
    chosen = random.Random(7)
    places = [
        (name, place)
        for name, content in contents(backup).items()
        for place in (
            range(len(content))
            if len(content) < 5_000
            else sorted(chosen.sample(range(len(content)), 500))
        )
    ]
    assert damaged_anywhere(faultline, backup, store, places) == len(places)


def test_a_file_that_is_cut_or_gone_or_foreign_is_refused(
    refused: Callable[..., str], store: Path, backup: Path
) -> None:
    forced = ("restore", backup, "--store", store, "--force")
    warehouse = backup / "warehouse-1.duckdb"
    sound = warehouse.read_bytes()
    for wrong in (sound[:-1], sound + b"\0", b""):
        warehouse.write_bytes(wrong)
        assert "warehouse-1.duckdb: is damaged" in refused(*forced)
    warehouse.unlink()
    assert "warehouse-1.duckdb: is missing from the backup" in refused(*forced)
    made = manifest.read(backup)
    made.files["../elsewhere"] = made.files["CURRENT"]
    (backup / "manifest.json").write_text(made.to_json(), encoding="utf-8")
    assert "names '../elsewhere', which is no file of a store" in refused(*forced)
    said = json.loads((backup / "manifest.json").read_text("utf-8")) | {"format": 2}
    del said["sha256"]
    own = hashlib.sha256(manifest._text(said).encode()).hexdigest()
    (backup / "manifest.json").write_text(manifest._text(said | {"sha256": own}), "utf-8")
    assert "was made by a newer Faultline: upgrade Faultline" in refused(*forced)


@pytest.mark.parametrize(
    "force", [pytest.param(True, id="over"), pytest.param(False, id="new", marks=pytest.mark.slow)]
)
def test_a_restore_killed_anywhere_leaves_the_old_store_or_the_new_one(
    faultline: Callable[..., Any],
    store: Path,
    backup: Path,
    sacct_store: Path,
    monkeypatch: pytest.MonkeyPatch,
    force: bool,
) -> None:
    class Killed(BaseException):
        pass

    names = ("replace", "rename", "unlink", "rmdir")
    real = {name: getattr(Path, name) for name in names}
    take_over = State.take_over
    left = 0

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return act(*arguments, **options)

        return counting

    new, old = held(store), held(sacct_store) if force else None
    outcomes = []
    for survived in range(100):
        target = store.with_name(f"target-{survived}")
        if force:
            shutil.copytree(sacct_store, target)
        left = survived
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(Path, name, counted(real[name]))
            patched.setattr(State, "take_over", counted(take_over))
            try:
                finished = faultline("restore", backup, "--store", target, "--force").code == 0
            except Killed:
                finished = False
        found = held(target)
        assert found in (old, new)
        outcomes.append("new" if found == new else "old")
        if finished:
            break
        shutil.rmtree(target, ignore_errors=True)
    assert outcomes[0] == "old"
    assert outcomes[-1] == "new"
    assert outcomes == sorted(outcomes, reverse=True), outcomes


def test_a_backup_that_is_overtaken_begins_again(
    faultline: Callable[..., Any], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from data.backup import making

    current = read_current(store)
    assert current is not None
    copied = making.copy_store

    def overtaken(root: Path, *arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(making, "copy_store", copied)
        newer = replace(current, snapshot=5, file="warehouse-5.duckdb")
        (root / "warehouse-1.duckdb").rename(root / "warehouse-5.duckdb")
        replace_file(root / "CURRENT", newer.to_json())
        copied(root, *arguments, **options)

    monkeypatch.setattr(making, "copy_store", overtaken)
    assert faultline("backup", store.with_name("b"), "--store", store).json["snapshot"] == 5


class Writers:
    """People and cron jobs that write to a store all the time, and what they were told."""

    def __init__(self, root: Path, references: Path) -> None:
        self.root, self.references = root, references
        self.said: list[tuple[str, str, str]] = []
        """Annotations about to be made, each with its place in the order."""
        self.n_acknowledged = 0
        self.failure = State(root).history()[0].target
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._published = threading.Event()
        self._keep()
        self._threads = [
            threading.Thread(target=self._until_stopped, args=[act])
            for act in (self._ingest, self._annotate)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _until_stopped(self, act: Callable[[int], None]) -> None:
        n = 0
        try:
            while not self._stop.is_set():
                n += 1
                act(n)
        except (DataError, OSError, AssertionError) as error:
            self.errors.append(error)

    def _ingest(self, n: int) -> None:
        """Another failure each time, so that every snapshot answers differently."""
        path = self.root.with_name("more.txt")
        times = "|".join(f"2026-02-{n // 24 + 1:02}T{n % 24:02}:00:00" for _ in range(2))
        end = f"2026-02-{n // 24 + 1:02}T{n % 24:02}:30:00"
        path.write_text(f"{HEADER}\n{100 + n}|c|gpu|x|NODE_FAIL|{times}|{end}|1|gres/gpu=8|n{n}\n")
        actions.ingest_files(self.root, "sacct", [str(path)], actions.Options())
        self._keep()
        self._published.set()

    def wait_for_a_publish(self) -> None:
        """Until another snapshot has been published."""
        self._published.clear()
        assert self._published.wait(60), self.errors

    def _annotate(self, n: int) -> None:
        cause = CAUSES[n % len(CAUSES)]
        said = (self.failure, "cause", cause) if n % 2 else ("node:c/n2", "note", f"{n}")
        self.said.append(said)
        State(self.root).annotate(*said, author="ada")
        self.n_acknowledged += 1
        self._stop.wait(0.03)

    def _keep(self) -> None:
        """Keeps the snapshot that was just published, however many follow."""
        current = read_current(self.root)
        assert current is not None
        folder = self.references / str(current.snapshot)
        folder.mkdir(parents=True)
        (folder / current.file).hardlink_to(self.root / current.file)
        (folder / "CURRENT").write_text(current.to_json(), encoding="utf-8")


def under_constant_writing(
    faultline: Callable[..., Any], root: Path, n_backups: int, n_asked: int
) -> int:
    """Backups while others write; how many, restored, are the store as it was at one moment.

    The last `n_asked` are asked too.
    """
    n_true = 0
    place = root.parent
    references, own = place / "references", place / "reference"
    own.mkdir()
    shutil.copy(root / "state.sqlite", own)
    shutil.copy(root / "site.toml", own)
    (root / "metrics" / "straggler_traces" / "a.parquet").unlink(missing_ok=True)
    with Writers(root, references) as writers:
        taken = []
        for number in range(n_backups):
            n_before = writers.n_acknowledged
            said = faultline("backup", place / f"backup-{number}", "--store", root)
            assert said.code == 0, said
            taken.append((number, n_before, len(writers.said), said.json["snapshot"]))
            if number < n_backups - 1:
                writers.wait_for_a_publish()
    assert not writers.errors, writers.errors
    assert len({snapshot for *_, snapshot in taken}) == n_backups
    for number, n_before, n_begun, snapshot in taken:
        restored, backup = place / f"restored-{number}", place / f"backup-{number}"
        assert faultline("restore", backup, "--store", restored).code == 0
        made = [(each.target, each.field, each.value) for each in State(restored).history()]
        n_held = len(made) - 1
        assert n_before <= n_held <= n_begun
        assert made[:-1][::-1] == writers.said[:n_held]
        shutil.copytree(references / str(snapshot), own, dirs_exist_ok=True)
        for target, field, value in writers.said[len(State(own).history()) - 1 : n_held]:
            State(own).annotate(target, field, value, author="ada")
        contents_agree = read_current(restored) == read_current(own)
        if number >= n_backups - n_asked:
            asked = QUESTIONS[: 1 if n_asked < n_backups else None]
            assert answers(faultline, restored, asked) == answers(faultline, own, asked)
        n_true += contents_agree
        shutil.rmtree(restored)
        shutil.rmtree(backup)
    return n_true


@pytest.mark.slow
def test_backups_under_constant_writing(faultline: Callable[..., Any], store: Path) -> None:
    assert under_constant_writing(faultline, store, 2, 1) == 2


@pytest.mark.slow
def test_forty_backups_under_constant_writing(faultline: Callable[..., Any], store: Path) -> None:
    assert under_constant_writing(faultline, store, 40, 40) == 40


def test_a_restore_that_cannot_finish_what_people_said_changes_nothing(
    refused: Callable[..., str], store: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(self: State, copy: Path) -> None:
        raise StoreError("state.sqlite: cannot be written (database or disk is full)")

    before = contents(store)
    monkeypatch.setattr(State, "take_over", no_room)
    assert "disk is full" in refused("restore", backup, "--store", store, "--force")
    assert contents(store) == before
    assert not (store / "restored").exists()
