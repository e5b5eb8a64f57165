"""What fails, how often, why, and what each verdict rests on?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.confusion import ConfusionMatrix, confusion_matrix
from analytics.failures.labelled import verdicts_of_labels
from analytics.failures.summary import FailureSummary, failure_summary
from data.queries import failures as failure_queries
from data.queries import reliability as reliability_queries
from data.site import load_site

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Taxonomy
    from data.queries.selection import Selection
    from data.store import Store


def taxonomy(store: Store) -> Taxonomy:
    """Which causes and symptoms does this site tell apart?"""
    return load_site(store.root).causes


def failures(store: Store, selection: Selection, *, conf_level: float = 0.90) -> FailureSummary:
    """What fails, how often, whose fault is it?"""
    counts = reliability_queries.failure_counts(store, selection)
    exposure = counts.by_day[["day", "exposure_node_days"]]
    if not counts.exposure_known:
        exposure = exposure.assign(exposure_node_days=float("nan"))
    known = taxonomy(store)
    logged = verdicts_of_labels(failure_queries.logged_by_cause(store, selection), known)
    verdicts = failure_queries.by_cause(store, selection)
    return failure_summary(
        failure_queries.by_state(store, selection),
        pd.concat([verdicts, logged], ignore_index=True) if len(logged) else verdicts,
        exposure,
        causes=known.causes,
        conf_level=conf_level,
    )


def verdict_rows(
    store: Store,
    selection: Selection,
    *,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    limit: int = 10_000,
) -> pd.DataFrame:
    """Which attempts failed, with what verdict on what evidence?"""
    rows = failure_queries.verdict_rows(
        store, selection, cause=cause, domain=domain, counted=counted, limit=limit
    )
    for column in ("evidence", "alternatives"):
        rows[column] = rows[column].map(json.loads)
    return rows


def check_calibration(store: Store, selection: Selection) -> pd.DataFrame:
    """How often does each check fire around the end of successful jobs?"""
    return failure_queries.check_calibration(store, selection)


def confusion(store: Store, selection: Selection) -> pd.DataFrame:
    """Where do the verdicts differ from what was planted, or what people decided?"""
    return failure_queries.confusion(store, selection)


def confusion_matrices(
    store: Store, selection: Selection, *, conf_level: float = 0.90
) -> dict[str, ConfusionMatrix]:
    """How right are the verdicts, beside what was planted and what people decided?"""
    rows = confusion(store, selection)
    return {
        str(basis): confusion_matrix(found, conf_level=conf_level)
        for basis, found in rows.groupby("basis", sort=False)
    }
