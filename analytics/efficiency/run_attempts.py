"""The attempts of one run: where the running time of each went, and the run's ETTR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.attempt_time import attempt_time
from analytics.efficiency.ettr import ettr_report
from analytics.efficiency.habits import recorded_habits
from analytics.estimate import Estimate, unknown
from analytics.failures.columns import require

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTED = ("startup", "checkpoint", "lost", "productive")
"""Parts of an attempt that ETTR tells apart."""
SHOWN = ("startup_s", "checkpoint_s", "unsaved_s")
"""What training metrics show of an attempt."""
_COLUMNS = ("cluster", "attempt_key", "start_s", "ran_s", "waited_s", "several", "interrupted")
_SUMS = {
    "queued_s": "waited_s",
    "scheduled_s": "ran_s",
    "startup_s": "startup_s",
    "checkpoint_s": "checkpoint_s",
    "lost_s": "lost_s",
    "productive_s": "productive_s",
    "lower_productive_s": "lower_productive_s",
    "upper_productive_s": "upper_productive_s",
    "variance_productive_s2": "variance_s2",
    "n_interruptions": "interrupted",
}
"""What a run is -> of its attempts the sum."""


def run_attempts(
    attempts: pd.DataFrame,
    *,
    notes: Mapping[str, Any],
    progress: pd.DataFrame,
) -> pd.DataFrame:
    """Divides the running time of a run's attempts as the ledger does for `job_runs`.

    What stragglers waste is productive here: ETTR asks whether the run made headway, not how fast.

    Parameters
    ----------
    attempts : DataFrame
        One row an attempt: `cluster`, `attempt_key`, `start_s` (seconds since the epoch, NaN where
        it never started), `ran_s` (seconds; NaN counts as 0), `waited_s` (seconds, NaN where
        unknown), `several` (has the habits of jobs on several nodes) and `interrupted`.
    notes
        Habits by class, as `store_meta.ledger_notes` holds them.
    progress : DataFrame
        What training metrics show, as `training_log.attempt_progress` returns it.

    Returns
    -------
    DataFrame
        The attempts with `startup_s`, `checkpoint_s`, `lost_s`, `productive_s`,
        `lower_productive_s`, `upper_productive_s`, `variance_s2`, and `basis` of each:
        training_metrics, or that of its class.
    """
    require("attempts", attempts, _COLUMNS)
    found = attempts.reset_index(drop=True)
    found["ran_s"] = found["ran_s"].astype(float).fillna(0).clip(lower=0).astype("int64")
    found["waited_s"] = found["waited_s"].astype(float)
    shown = _shown(found, progress)
    parts = []
    for habits, several in (("several_nodes", True), ("one_node", False)):
        rows = found[found["several"].eq(several)]
        if rows.empty:
            continue
        at = rows.index.to_numpy()
        measured = {column: shown[column].to_numpy(dtype=float)[at] for column in SHOWN}
        known = recorded_habits(notes[habits])
        time = attempt_time(
            rows["ran_s"].to_numpy(dtype=np.int64),
            rows["interrupted"].to_numpy(dtype=bool),
            known,
            measured if shown.loc[at].notna().any(axis=None) else None,
        )
        by_metrics = shown.loc[at].notna().any(axis=1)
        parts.append(
            pd.DataFrame(
                {f"{part}_s": time.value[part] for part in COUNTED}
                | {
                    "lower_productive_s": time.lower["productive"],
                    "upper_productive_s": time.upper["productive"],
                    "variance_s2": time.variance_s2,
                    "basis": np.where(by_metrics, "training_metrics", known.basis),
                },
                index=at,
            )
        )
    return found.join(pd.concat(parts)) if parts else found


def run_ettr(attempts: pd.DataFrame, *, conf_level: float = 0.90) -> Estimate:
    """ETTR of a run from its attempts, as `run_attempts` returns them.

    Unknown where none ran, or where it is not known how long one waited.
    """
    if attempts["waited_s"].isna().any():
        return unknown(conf_level, int(attempts["interrupted"].sum()))
    totals = {name: attempts[column].sum() for name, column in _SUMS.items()}
    if not totals["scheduled_s"]:
        return unknown(conf_level, 0)
    start = pd.Timestamp(attempts["start_s"].min(), unit="s", tz="UTC")
    counts = {"run_id": "", "n_gpus": 1, "n_attempts": len(attempts), "n_failures": 0}
    run = pd.DataFrame([totals | counts | {"first_start_at": start}])
    return ettr_report(run, notes={}, conf_level=conf_level).ettr


def _shown(attempts: pd.DataFrame, progress: pd.DataFrame) -> pd.DataFrame:
    """What training metrics show of these attempts, in their order; NaN where nothing."""
    keys = ["cluster", "attempt_key"]
    return attempts[keys].merge(progress[[*keys, *SHOWN]], on=keys, how="left")[list(SHOWN)]
