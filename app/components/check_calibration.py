"""How far each check can be trusted: how often it fires around the end of successful jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, glossary, table
from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope

PAPER_RATIO = 0.01
"""Share of completed jobs that may see a failed check: Kokolis et al., arXiv 2410.21680."""


def show(scope: Scope) -> None:
    """One row a check, the most frequent around failures first."""
    found = loaders.check_calibration(scope.selection)
    if found.empty:
        empty_state.no_checks()
        return
    frame = _frame(found)
    over = int(frame["over_1_percent"].sum())
    discounted = int(frame["discounted"].sum())
    st.markdown(
        f"**{numbers.counted(over, 'check')} of {len(frame):,} "
        f"{'fires' if over == 1 else 'fire'} around the end of more than 1 % of completed "
        f"attempts; {discounted:,} {'is' if discounted == 1 else 'are'} discounted as evidence.**"
    )
    st.caption(
        "Whole store as of the last publish, whatever the period. The paper asks that under 1 % of "
        "completed jobs see a failed check (Kokolis et al., arXiv 2410.21680). "
        f"{glossary.CAUSAL_RATIO.label}: {glossary.CAUSAL_RATIO.definition}"
    )
    table.show(frame, name="check_calibration", scope=scope)


def _frame(found: pd.DataFrame) -> pd.DataFrame:
    """The counts with the two shares and what follows from them."""
    hit = found["n_completed_attempts_hit"] / found["n_completed_attempts"].where(lambda n: n > 0)
    around_failures = found["n_failed_hits"] / found["n_failed"].where(lambda n: n > 0)
    return found.assign(
        percent_of_completed_attempts=100.0 * hit,
        over_1_percent=hit.gt(PAPER_RATIO).astype("boolean").mask(hit.isna()),
        percent_of_failed_nodes=100.0 * around_failures,
        discounted=found["causal_ratio"].lt(1.0),
    )[
        [
            "signal",
            "severity",
            "percent_of_completed_attempts",
            "over_1_percent",
            "percent_of_failed_nodes",
            "causal_ratio",
            "discounted",
            "n_completed_attempts_hit",
            "n_completed_attempts",
            "n_failed_hits",
            "n_failed",
            "cluster",
        ]
    ]
