"""Stores that many tests look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from app.actions import build_demo
from data.current import read_current
from data.publish import writer
from data.synthetic import DemoSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

settings.register_profile("quick", max_examples=30)
settings.register_profile("thorough", max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
"""Examples of each property that names no number of its own."""

DEMO_JOBS = 8_000
DEMO_NODES = 64


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what they hold (a time, say) may change with each run."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small demo store; only to be read."""
    root = tmp_path_factory.mktemp("demo") / "store"
    build_demo(root, DemoSpec.of(DEMO_JOBS, DEMO_NODES, None, 0))
    yield root
    current = read_current(root)
    assert current is not None
    assert current.snapshot == 1, "a test wrote to the store of all"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store into which nothing was read."""
    root = tmp_path_factory.mktemp("empty") / "store"
    with writer(root) as building:
        building.publish()
    return root
