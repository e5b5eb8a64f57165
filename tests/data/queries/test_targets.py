"""Keys of attempts, incidents and nodes: which there are, and which was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from data.publish import writer
from data.queries import targets
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("targets")
    jobs = pd.DataFrame(
        {"cluster": ["a", "a", "b/c"], "attempt_key": ["s1XYZ0001", "s1XYZ0002", "f00d"],
         "job_id": ["4711", "4711", "9"]}
    )  # fmt: skip
    nodes = pd.DataFrame({"cluster": ["a", "a"], "node": ["gpu0001", "gpu0002"]})
    with writer(root) as building:
        building.merge({"jobs": jobs, "nodes": nodes})
        building.publish()
    opened = Store.open(root)
    yield opened
    opened.close()


def test_a_key_names_cluster_and_attempt_or_node(store: Store) -> None:
    assert targets.known(store, "attempt", "a/s1XYZ0001")
    assert targets.known(store, "attempt", "b/c/f00d")
    assert targets.known(store, "node", "a/gpu0002")
    assert not targets.known(store, "node", "b/gpu0002")
    assert not targets.known(store, "attempt", "s1XYZ0001")
    assert not targets.known(store, "incident", "a' OR true")


@pytest.mark.parametrize(
    ("kind", "key", "meant"),
    [
        ("attempt", "a/4711", ["a/s1XYZ0001", "a/s1XYZ0002"]),
        ("attempt", "4711", ["a/s1XYZ0001", "a/s1XYZ0002"]),
        ("attempt", "f00d", ["b/c/f00d"]),
        ("attempt", "a/s1XYZ", ["a/s1XYZ0001", "a/s1XYZ0002"]),
        ("node", "gpu0001", ["a/gpu0001"]),
        ("node", "x/gpu0001", ["a/gpu0001"]),
        ("node", "a/gpo0001", ["a/gpu0001"]),
        ("node", "a/elsewhere", []),
        ("incident", "none", []),
    ],
)
def test_what_was_probably_meant(
    store: Store, kind: targets.TargetKind, key: str, meant: list[str]
) -> None:
    assert targets.nearest(store, kind, key) == meant
