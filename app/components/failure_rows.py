"""Failed attempts with their verdicts; picking one opens its job."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import links, rows, table

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope

COLUMNS = [
    "failed_at",
    "job_id",
    "attempt",
    "state",
    "cause",
    "domain",
    "confidence",
    "method",
    "node",
    "evidence",
    "n_gpus",
    "gpu_hours",
    "user",
    "account",
    "name",
    "partition",
    "cluster",
    "attempt_key",
]


@st.dialog("Failed attempts", width="large")
def dialog(
    scope: Scope,
    *,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    total: int,
) -> None:
    """The attempts behind a number or a cause."""
    show(scope, name="verdicts_dialog", cause=cause, domain=domain, counted=counted, total=total)


def show(
    scope: Scope,
    *,
    name: str,
    total: int | None = None,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
) -> None:
    """The latest failed attempts; the download holds all."""
    fetch = partial(_fetch, scope, cause=cause, domain=domain, counted=counted)
    table.show(
        fetch(limit=table.ROWS_SHOWN),
        name=name,
        scope=scope,
        total=total,
        everything=partial(fetch, limit=rows.EVERYTHING),
        opens=links.open_job,
    )


def _fetch(
    scope: Scope, *, cause: str | None, domain: str | None, counted: bool, limit: int
) -> pd.DataFrame:
    """Rows as they are shown: the evidence that counts as one text."""
    found = loaders.verdict_rows(
        scope.selection, cause=cause, domain=domain, counted=counted, limit=limit
    )
    return found.assign(evidence=found["evidence"].map(_counting))[COLUMNS]


def _counting(evidence: list[dict[str, object]]) -> str:
    """The texts that speak for the verdict, the strongest first."""
    return " | ".join(str(each["text"]) for each in evidence if each.get("role") == "cause")
