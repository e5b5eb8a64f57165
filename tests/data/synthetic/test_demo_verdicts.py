"""Verdicts on the demo cluster find what was planted, also with clocks that differ and gaps."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from app.actions import build_demo
from data.filters import Selection
from data.publish import writer
from data.queries import failures
from data.store import Store
from data.synthetic import DemoSpec

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SKEWS = {
    "as collected": None,
    "clocks 60 s ahead": "60000000",
    "clocks 60 s behind": "-60000000",
    "each node's clock up to 60 s off": "CAST(hash(node) % 120000001 AS BIGINT) - 60000000",
}
"""Microseconds by which each event is moved; but for the first, a tenth of them is missing too."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verdicts") / "store"
    build_demo(root, DemoSpec.of(30_000, 256, None, 0))
    return root


def confusion(root: Path) -> pd.DataFrame:
    store = Store.open(root)
    found = failures.confusion(store, Selection())
    store.close()
    return found[found["basis"].eq("planted")]


def ratio(rows: pd.DataFrame, right: pd.Series) -> float:
    return float(rows.loc[right, "n"].sum() / rows["n"].sum())


@pytest.mark.slow
@pytest.mark.parametrize("skew", SKEWS)
def test_planted_causes_are_found(demo: Path, tmp_path: Path, skew: str) -> None:
    root = tmp_path / "store"
    shutil.copytree(demo, root)
    if SKEWS[skew] is not None:
        with writer(root) as building:
            building.connection.execute(
                f"UPDATE health_events SET observed_at = observed_at + to_microseconds({SKEWS[skew]})"
            )
            building.connection.execute("DELETE FROM health_events WHERE hash(event_id) % 10 = 0")
            building.publish()
    rows = confusion(root)
    events, bare = rows[rows["has_event"]], rows[~rows["has_event"]]
    lost = bare[bare["actual_domain"].eq("unknown")]
    users = rows[rows["actual_domain"].eq("user")]
    assert events["n"].sum() > 100
    assert lost["n"].sum() > 100
    assert ratio(events, events["actual"].eq(events["found"])) >= 0.95
    assert ratio(lost, lost["found_domain"].eq("unknown")) >= 0.98
    assert ratio(users, users["found_domain"].eq("hardware")) <= 0.01
