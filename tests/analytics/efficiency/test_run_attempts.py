"""The attempts of a run are divided as the ledger divides them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.habits import OBSERVED, ONE_NODE, SEVERAL_NODES, habits
from analytics.efficiency.run_ettr import run_attempts, run_ettr

NOBODY = pd.DataFrame(columns=OBSERVED)
NOTES = {
    "several_nodes": habits(NOBODY, stated={}, assumed=SEVERAL_NODES).record,
    "one_node": habits(NOBODY, stated={}, assumed=ONE_NODE).record,
}
SILENT = pd.DataFrame(columns=["cluster", "attempt_key", "startup_s", "checkpoint_s", "unsaved_s"])


def attempts(**columns: list[object]) -> pd.DataFrame:
    n = len(columns["ran_s"])
    return pd.DataFrame(
        {
            "cluster": "c",
            "attempt_key": [f"a{place}" for place in range(n)],
            "n_gpus": 16,
            "start_s": np.arange(n, dtype=float),
            "waited_s": 0,
            "several": True,
            "interrupted": False,
        }
        | columns
    )


def test_a_run_by_the_habits_assumed() -> None:
    """Two hours: 300 s of start-up, one checkpoint of 60 s; interrupted: the mean of a phase."""
    found = run_attempts(
        attempts(ran_s=[7200, 7200], interrupted=[False, True]), notes=NOTES, progress=SILENT
    )
    assert found["startup_s"].tolist() == [300, 300]
    assert found["checkpoint_s"].tolist() == [60, 60]
    assert found["lost_s"].tolist() == [0, 1830]
    assert found["productive_s"].tolist() == [6840, 5010]
    assert set(found["basis"]) == {"assumed"}
    estimate = run_ettr(found)
    assert estimate.value == pytest.approx(11_850 / 14_400)
    assert estimate.lower < estimate.value < estimate.upper
    assert estimate.n == 1


def test_what_metrics_show_takes_the_place_of_the_habit() -> None:
    shown = pd.DataFrame([("c", "a1", 100.0, 50.0, 500.0)], columns=SILENT.columns)
    found = run_attempts(
        attempts(ran_s=[7200, 7200], interrupted=[True, True]), notes=NOTES, progress=shown
    )
    assert found["basis"].tolist() == ["assumed", "training_metrics"]
    row = found.iloc[1]
    assert (row["startup_s"], row["checkpoint_s"], row["lost_s"]) == (100, 50, 500)
    assert row["lower_productive_s"] == row["upper_productive_s"] == row["productive_s"] == 6550


def test_attempts_of_both_classes_keep_their_order() -> None:
    found = run_attempts(
        attempts(ran_s=[1000, 2000, 3000], several=[False, True, False]),
        notes=NOTES,
        progress=SILENT,
    )
    assert found["startup_s"].tolist() == [0, 300, 0]
    assert found["productive_s"].tolist() == [1000, 1700, 3000]


def test_an_unknown_running_time_counts_as_nothing_and_a_run_that_never_ran_is_unknown() -> None:
    found = run_attempts(
        attempts(ran_s=[None], waited_s=[0], start_s=[np.nan]), notes=NOTES, progress=SILENT
    )
    assert found[["ran_s", "waited_s", "productive_s"]].to_numpy().tolist() == [[0, 0, 0]]
    assert run_ettr(found).value is None


def test_a_run_of_which_nobody_knows_how_long_it_waited_has_no_ettr() -> None:
    known = run_attempts(attempts(ran_s=[7200]), notes=NOTES, progress=SILENT)
    assert run_ettr(known).value is not None
    assert run_ettr(known.assign(waited_s=np.nan)).value is None
