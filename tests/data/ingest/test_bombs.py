"""Every command that reads a file ends on every bomb: little memory, little time, a clear refusal."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from tests.data.ingest import bombs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.data.ingest.bombs import Bomb

ROOT = Path(__file__).parents[3]
MOST_MB, MOST_SECONDS = 1_000, 60
TABLES = ("job-table", "failure-log", "tickets", "node-facts", "node-inventory", "straggler-trace")
COMMANDS: dict[str, tuple[str, ...]] = {
    "links": ("links", "{file}"),
    "links --groups": ("links", "{delays}", "--groups", "{file}"),
    "machines": ("machines", "{file}"),
    "stragglers": ("stragglers", "{file}"),
    "classify": ("classify", "{file}"),
    "classify train": (
        "classify", "train", "{file}", "--text", "text", "--label", "state", "--store", "{store}",
    ),
    "validate-plan": ("validate-plan", "{file}"),
}  # fmt: skip
READERS = {
    ".parquet": (*TABLES, "links", "links --groups", "machines", "stragglers", "classify train"),
    ".csv": (*TABLES, "sacct", "training-metrics", *COMMANDS),
    ".csv.gz": ("job-table", "sacct", "job-log", *COMMANDS),
    ".csv.xz": ("job-table", "sacct", "job-log", *COMMANDS),
    ".csv.zst": ("job-table", "sacct", "job-log", *COMMANDS),
    ".json": (
        "sacct-json", "gcm-health", "k8s-pods", "prometheus-json", "redfish", "machines",
        "classify", "validate-plan",
    ),
    ".prom": ("dcgm", "machines", "classify", "links"),
}  # fmt: skip
"""How a file's name ends -> what takes such a file: sources of `ingest`, and commands."""
ONE_READER_EACH = ("job-table", "straggler-trace", "links", "machines", "classify train")
DEFAULT = [("parquet-list-texts", "links")]
"""What is tried at each run of the tests; the others are slow."""
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.stdout.decode())
print(done.returncode, used.ru_maxrss // 1024, used.ru_utime + used.ru_stime, end="")
"""
"""Runs a command from a small process: a child inherits the most that its parent ever took."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    bomb: Bomb
    surface: str
    code: int
    mb: int
    seconds: float
    said: str

    def row(self) -> str:
        """A row of the table."""
        said = self.said.replace("|", "\\|")
        return (
            f"| {self.bomb.format}: {self.bomb.name} | {self.surface} | {self.mb} | "
            f"{self.seconds:.1f} | {said} |"
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds something."""
    folder = tmp_path_factory.mktemp("bombs")
    (folder / "slurm-1.out").write_bytes(b"begun\n")
    (folder / "delays.csv").write_text("source,destination,delay_us\na,b,1\nb,a,2\n")
    ingest_files(folder / "store", "job-log", [str(folder / "slurm-1.out")], Options())
    return folder / "store"


def published(store: Path) -> dict[str, bytes]:
    """What a reader of the store sees."""
    return {
        path.name: path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and (path.name == "CURRENT" or path.suffix == ".duckdb")
    }


def ended(bomb: Bomb, surface: str, store: Path) -> Ended:
    """Gives the file to a command, as a process of its own."""
    path = store.parent / f"bomb{bomb.suffix}"
    path.write_bytes(bomb.content)
    if surface in COMMANDS:
        places = {"file": path, "store": store, "delays": store.parent / "delays.csv"}
        words = [word.format(**places) for word in COMMANDS[surface]]
    else:
        words = ["ingest", surface, "--store", str(store), str(path)]
        if surface == "job-log":
            path = path.rename(path.with_name(f"slurm-7.out{path.suffixes[-1]}"))
            words[-1] = str(path)
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "app.cli", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    text, _, measured = done.stdout.rpartition("\n")
    code, mb, seconds = measured.split()
    path.unlink()
    lines = [line for line in text.splitlines() if line.strip()]
    told = " ".join((lines or [""])[-1].replace(str(path), bomb.name).split())
    assert "Traceback" not in text, text
    return Ended(
        bomb,
        surface,
        int(code),
        int(mb),
        float(seconds),
        re.sub(r"^faultline [a-z -]+: ", "", told)[:160],
    )


def tried(bomb: Bomb, surfaces: tuple[str, ...], store: Path) -> Iterator[Ended]:
    """How each of some commands ended, and that none harmed the store."""
    before = published(store)
    for surface in surfaces:
        end = ended(bomb, surface, store)
        print(end.row(), flush=True)
        assert end.mb <= MOST_MB, end.row()
        assert end.seconds <= MOST_SECONDS, end.row()
        if end.code:
            assert end.code == 2, end.row()
            assert published(store) == before
        yield end


def assert_refused(end: Ended) -> None:
    """Too large where the file is well formed, else broken."""
    assert end.code == 2, end.row()
    assert ("is too large: " if end.bomb.valid else "is broken Parquet (") in end.said, end.row()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "surface"), DEFAULT)
def test_a_command_refuses_a_bomb_within_a_gigabyte(name: str, surface: str, store: Path) -> None:
    (end,) = tried(bombs.bomb(name), (surface,), store)
    assert_refused(end)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in bombs.names() if n.startswith(("parquet", "lie"))])
def test_each_reader_of_parquet_refuses_each_bomb(name: str, store: Path) -> None:
    for end in tried(bombs.bomb(name), ONE_READER_EACH, store):
        assert_refused(end)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet-dictionary", "parquet-map", "parquet-zstd", "lie-rows"])
def test_each_command_that_takes_parquet_refuses_a_bomb(name: str, store: Path) -> None:
    bomb = bombs.bomb(name)
    others = tuple(each for each in READERS[bomb.suffix] if each not in ONE_READER_EACH)
    for end in tried(bomb, others, store):
        assert_refused(end)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in bombs.names() if not n.startswith(("parquet", "lie"))])
def test_each_command_that_takes_text_ends_within_a_gigabyte(name: str, store: Path) -> None:
    bomb = bombs.bomb(name)
    for end in tried(bomb, READERS[bomb.suffix], store):
        assert "is broken" not in end.said, end.row()
        if name in ("gz", "xz", "zst"):
            assert end.code == 2
            assert "unfolds to more than 200 times its size, the limit" in end.said
