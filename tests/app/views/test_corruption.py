"""Suspects of a run in a store: rank, node and grade, and what was not logged."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from app.answers.training import corruption
from app.ask import of_store
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlit.testing.v1 import AppTest

    from app.answers.content import Answer

START = datetime(2026, 1, 5, tzinfo=UTC)
N_STEPS = 160


def rows_of(run: str, **shows: Any) -> list[dict[str, Any]]:
    """A step a minute of 8 ranks, each with its own loss."""
    rng = np.random.default_rng(3)
    loss = 2 + rng.normal(0, 0.05, (N_STEPS, 8))
    loss[80:, 5] += shows.get("shift", 0.0)
    rows = []
    for step in range(N_STEPS):
        for rank in range(8):
            digest = f"{2**63 + step}"
            if rank == shows.get("bad") and step >= 60:
                digest = f"{2**63 + step + 1}"
            series = {"param/hash~1": digest, "lr": 0.1} if "bad" in shows else {"lr": 0.1}
            rows.append({
                "cluster": "c", "job_id": run, "attempt_key": run, "run_id": run, "step": step,
                "rank": None if shows.get("no_rank") else rank,
                "logged_at": START + timedelta(minutes=step + 1), "loss": loss[step, rank],
                "series": json.dumps(series),
            })  # fmt: skip
    return rows


def replayed_rows() -> list[dict[str, Any]]:
    """Four ranks, of which the last does not get so far the second time."""
    steps = [("first", step, 4) for step in range(30)]
    steps += [("second", step, 4 if step < 24 else 3) for step in range(20, 25)]
    return [
        {
            "cluster": "c", "job_id": "replayed", "attempt_key": attempt, "run_id": "replayed",
            "step": step, "rank": rank, "logged_at": START + timedelta(minutes=at),
            "series": json.dumps({"digest": f"{attempt} {step}"}),
        }
        for at, (attempt, step, n_ranks) in enumerate(steps)
        for rank in range(n_ranks)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("corruption") / "store"
    runs = {
        "differs": rows_of("differs", bad=6),
        "moved": rows_of("moved", shift=0.3),
        "sound": rows_of("sound", bad=99),
        "blind": rows_of("blind", no_rank=True)[::8],
        "seldom": rows_of("seldom", bad=99),
        "never": rows_of("never", bad=99),
        "replayed": replayed_rows(),
    }
    for row in runs["seldom"]:
        if row["step"] > 40 and row["rank"] in (2, 3):
            row["series"] = None
    for row in runs["never"]:
        if row["rank"] == 5:
            row["series"] = json.dumps({"param/hash~1": f"h{row['step']:06}"})
    jobs = [
        {"cluster": "c", "attempt_key": name, "job_id": name, "state": "RUNNING", "n_gpus": 8,
         "n_nodes": 2, "node_list": "n[3,1]", "submit_at": START, "start_at": START}
        for name in runs
    ]  # fmt: skip
    metrics = pd.DataFrame([row for rows in runs.values() for row in rows])
    metrics["rank"] = metrics["rank"].astype("Int32")
    with writer(root) as building:
        building.load({"jobs": pd.DataFrame(jobs), "training_metrics": metrics})
        building.publish()
    with closing(Store.open(root)) as opened:
        yield opened


def answer(store: Store, run: str) -> Answer:
    return corruption.answer(of_store(store), "c", run)


def test_a_replica_that_differs_is_named_with_its_node(store: Store) -> None:
    found = answer(store, "differs")
    assert found.sentence == (
        "Test rank 6 (n1) again: parameters differ from those of the replicas, from step 60 on."
    )
    (row,) = found.record["suspects"]
    assert (row["ranks"], row["node"], row["grade"], row["n_steps"]) == ([6], "n1", "proof", 100)
    assert row["p_value"] is None
    assert found.record["verdict"] == "suspects"


def test_a_rank_whose_loss_moves_is_a_suspect_and_no_more(store: Store) -> None:
    found = answer(store, "moved")
    assert found.sentence.startswith("Test rank 5 (n1) again: the evidence is strong, from step ")
    assert any("they alone prove corruption" in note for note in found.notes)
    (row,) = found.record["suspects"]
    assert row["p_value"] < 0.01
    assert {"indicator": "checksum", "why": "not_logged"} in found.record["not_seen"]


def test_none_is_said_where_checksums_were_compared(store: Store) -> None:
    found = answer(store, "sound")
    assert found.record["verdict"] == "none"
    assert found.sentence == (
        "No replica holds other parameters than the rest, and no rank stands out."
    )
    assert found.numbers[1].value == "2 of 7"


def test_what_checksums_do_not_speak_for_is_not_ruled_out(store: Store) -> None:
    found = answer(store, "seldom")
    assert found.record["verdict"] == "not_ruled_out"
    assert found.sentence == (
        "No rank stands out in what was logged; checksums do not speak for ranks 2, 3 throughout, "
        "so silent corruption is not ruled out."
    )
    assert (
        "No checksum of a replica speaks for ranks 2, 3 in 118 logged steps from 42 to 159."
        in found.notes
    )
    (unseen,) = found.record["not_compared"]
    assert (unseen["ranks"], unseen["n_steps"]) == ([2, 3], 118)


def test_a_rank_that_is_never_equal_is_told_with_what_else_it_may_be(store: Store) -> None:
    found = answer(store, "never")
    (row,) = found.record["suspects"]
    assert (row["ranks"], row["kind"], row["grade"]) == ([5], "never_equal", "strong")
    assert any("may be made of something else" in note for note in found.notes)


def test_values_of_two_attempts_are_not_compared(store: Store) -> None:
    assert answer(store, "replayed").record["verdict"] == "none"


@pytest.mark.parametrize("run", ["blind", "there is none"])
def test_what_no_rank_logged_cannot_be_judged(store: Store, run: str) -> None:
    found = answer(store, run)
    assert found.record["verdict"] == "cannot_be_judged"
    assert "cannot be judged" in found.sentence
    assert found.numbers[0].value == "unknown"
    assert len(found.table("not_seen")) == 7


def test_the_tab_shows_what_the_answer_says(
    store: Store, open_page: Callable[..., AppTest]
) -> None:
    page = open_page(
        store.root, "views/training/runs.py", run="differs", runs_tab="Corruption", period="all"
    )
    assert not page.exception
    assert page.title[0].value.startswith("Test rank 6 again")
    assert [metric.label for metric in page.metric] == ["Suspects", "Indicators seen"]
