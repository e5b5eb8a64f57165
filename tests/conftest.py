"""Stores that many tests look at."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from app.actions import build_demo
from data.current import read_current
from data.publish import writer
from data.store import Store
from data.synthetic import DemoSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

settings.register_profile("quick", max_examples=10, deadline=None)
settings.register_profile("thorough", max_examples=60, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
"""Examples of each property that names no number of its own."""

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process takes a file, so that its stores are built once; one takes the browser, first."""
    items.sort(key=lambda item: "browser" not in item.keywords)
    for item in items:
        group = "browser" if "browser" in item.keywords else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


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


def _built_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo store, built once for all processes that run tests: each copies it."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    built = folder / "built-demo"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            build_demo(folder / "demo-to-be", DemoSpec.of(DEMO_JOBS, DEMO_NODES, None, 0))
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
