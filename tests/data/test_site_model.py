"""What people confirm teaches the site's own classifier of logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from data.publish import writer
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

END = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = {
    "power": "the widget supervisor lost its second feed on shelf",
    "disk": "archive carousel tray stuck, slot answered nothing on shelf",
}
N_CONFIRMED = 24


def published(root: Path, keys: list[str], texts: list[str]) -> None:
    jobs = pd.DataFrame(
        {
            "cluster": "a", "attempt_key": keys, "job_id": keys, "state": "FAILED",
            "submit_at": END, "start_at": END, "n_nodes": 1, "n_gpus": 8, "node_list": "n1",
            "end_at": [END + timedelta(hours=place) for place in range(len(keys))],
        }
    )  # fmt: skip
    logs = pd.DataFrame(
        {
            "cluster": "a", "job_id": keys, "file": [f"slurm-{key}.out" for key in keys],
            "line_no": 1, "text": texts,
        }
    )  # fmt: skip
    with writer(root) as building:
        building.merge({"jobs": jobs, "job_logs": logs})
        building.publish()


def verdicts(root: Path) -> dict[str, tuple[Any, ...]]:
    store = Store.open(root)
    rows = store.rows("SELECT attempt_key, cause, method FROM failures")
    store.close()
    return {key: tuple(rest) for key, *rest in rows}


@pytest.mark.slow
def test_confirmed_causes_are_found_again_in_logs_that_no_rule_understands(tmp_path: Path) -> None:
    causes = ["power", "disk"] * N_CONFIRMED
    keys = [str(place) for place in range(len(causes))]
    texts = [f"{WORDS[cause]} {place}" for place, cause in enumerate(causes)]
    published(tmp_path, keys, texts)
    assert set(verdicts(tmp_path).values()) == {("unknown", "none")}
    for key, cause in zip(keys, causes, strict=True):
        State(tmp_path).annotate(f"attempt:a/{key}", "cause", cause, author="ada")
    published(
        tmp_path,
        ["new", "other"],
        [f"{WORDS['power']} 99", "a sentence about nothing that anyone has seen here"],
    )
    found = verdicts(tmp_path)
    assert found["new"] == ("power", "log_model")
    assert found["other"] == ("unknown", "none")
    assert len(list((tmp_path / "models").glob("*.json"))) == 1


def test_a_few_confirmed_causes_teach_nothing(tmp_path: Path) -> None:
    published(tmp_path, ["1"], [WORDS["power"]])
    State(tmp_path).annotate("attempt:a/1", "cause", "power", author="ada")
    published(tmp_path, ["2"], [WORDS["power"]])
    assert verdicts(tmp_path)["2"] == ("unknown", "none")
    assert not (tmp_path / "models").exists()
