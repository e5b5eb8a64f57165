"""Stores that many tests look at."""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import shutil
import sys
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from app.actions import build_demo
from data.current import read_current
from data.publish import writer
from data.store import Store
from data.synthetic import DemoSpec
from tests.parts import in_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xdist.remote import Producer

    from data.synthetic import DemoTruth

settings.register_profile("quick", max_examples=6, deadline=None)
settings.register_profile("thorough", max_examples=60, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
"""Examples of each property that names no number of its own."""

gc.set_threshold(50_000, 20, 100)
"""Of all time that tests took, one twentieth went into looking through thousands of other tests."""
MAIN = sys.modules["__main__"]
DEMO_JOBS = 8_000
DEMO_NODES = 64


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what they hold (a time, say) may change with each run."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A page that ran stays behind as the main module, which processes of later tests would run."""
    sys.modules["__main__"] = MAIN


def pytest_collection_finish() -> None:
    """What was imported stays: it is not looked through for rubbish again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """At the end all of it is let go, as ever."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part 3/6` runs the slow tests of the third of six parts."""
    parser.addoption("--part", metavar="K/N", help="only tests of files in this part")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Browsers come first, then the folders of most tests: none is waited for alone at the end."""
    part = config.getoption("--part")
    if part is not None:
        file_of = {item: item.nodeid.partition("::")[0] for item in items}
        files = in_part(set(file_of.values()), part)
        config.hook.pytest_deselected(items=[item for item in items if file_of[item] not in files])
        items[:] = [item for item in items if file_of[item] in files]
    of_folder = Counter(item.path.parent for item in items)
    items.sort(key=lambda item: ("browser" not in item.keywords, -of_folder[item.path.parent]))


class _ByFolder(LoadScopeScheduling):
    """One process takes a folder, so that its stores are built and its pages asked once.

    Not `--dist loadgroup`: xdist 3.8 sets its groups where pytest 9.2 looks no more, and spreads
    the tests of a folder over all processes without a word.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].rpartition("/")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Parallel processes share out folders, in the order of the tests, however they were asked."""
    config.option.loadscopereorder = False
    return _ByFolder(config, log)


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small demo store; only to be read. Held open: DuckDB serves who opens it again at once."""
    root = tmp_path_factory.mktemp("demo") / "store"
    shutil.copytree(_built_demo(tmp_path_factory), root)
    with closing(Store.open(root)):
        yield root
    current = read_current(root)
    assert current is not None
    assert current.snapshot == 1, "a test wrote to the store of all"


@pytest.fixture(scope="session")
def demo_truth(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> DemoTruth:
    """What was planted in it."""
    truth: DemoTruth = pickle.loads(
        (of_all_processes(tmp_path_factory) / "demo-truth").read_bytes()
    )
    return truth


def of_all_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run, which all processes that run tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def _built_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo store, built once for all processes that run tests: each copies it."""
    folder = of_all_processes(tmp_path_factory)
    built = folder / "built-demo"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            demo = build_demo(folder / "demo-to-be", DemoSpec.of(DEMO_JOBS, DEMO_NODES, None, 0))
            (folder / "demo-truth").write_bytes(pickle.dumps(demo.truth))
            (folder / "demo-to-be").rename(built)
    return built


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store into which nothing was read; held open too."""
    root = tmp_path_factory.mktemp("empty") / "store"
    with writer(root) as building:
        building.publish()
    with closing(Store.open(root)):
        yield root
