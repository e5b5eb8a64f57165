"""The command line, called in this process: what it prints, and how it ends."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import main
from data.current import read_current
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
SACCT = """JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|gpu|x|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1
2|c|gpu|x|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-07T00:00:00|2|gres/gpu=16|n[2-3]
2.batch|c|gpu|x|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-07T00:00:00|1||n2
3|c|cpu|y|RUNNING|2026-01-05T12:00:00|2026-01-06T12:00:00|Unknown|1|gres/gpu=4|n1
"""


@dataclass
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def faultline(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs one command."""

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse ends the process itself
            code = int(end.code or 0)
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def refused(faultline: Callable[..., Said]) -> Callable[..., str]:
    """Runs a command that must be refused: exit 2, one line on stderr, nothing on stdout."""

    def run(*arguments: object) -> str:
        said = faultline(*arguments)
        assert said.code == 2, said
        assert said.out == ""
        assert said.err.count("\n") == 1, said.err
        assert said.err.startswith("faultline"), said.err
        return said.err.strip()

    return run


@pytest.fixture(scope="session")
def sacct_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of three real-looking attempts; only to be read, and held open."""
    folder = tmp_path_factory.mktemp("sacct")
    (folder / "sacct.txt").write_text(SACCT, encoding="utf-8")
    root = folder / "store"
    assert main(["ingest", "sacct", str(folder / "sacct.txt"), "--store", str(root)]) == 0
    with closing(Store.open(root)):
        yield root
    current = read_current(root)
    assert current is not None
    assert current.snapshot == 1, "a test wrote to the store of all"


@pytest.fixture(scope="session")
def lanl_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The failures of Los Alamos; only to be read, and held open."""
    folder = SHARED / "lanl"
    if not folder.is_dir():
        pytest.skip(f"real data are not at {folder}")
    root = tmp_path_factory.mktemp("lanl") / "store"
    (path,) = folder.glob("*.csv")
    command = ["ingest", "failure-log", str(path), "--mapping", "lanl", "--store", str(root)]
    assert main(command) == 0
    with closing(Store.open(root)):
        yield root


@pytest.fixture
def shared() -> Path:
    """The folder of real data; skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"real data are not at {SHARED}")
    return SHARED
