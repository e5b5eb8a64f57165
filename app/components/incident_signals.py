"""Which checks and codes come together in incidents?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import empty_state, glossary, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.companions import Companion
    from app.components.scope import Scope


def show(scope: Scope, kind: dict[str, str | None]) -> None:
    """One row a signal and what comes with it, the most frequent first."""
    found = loaders.signals_of_incidents(scope.selection, **kind)
    if not found:
        empty_state.show(
            "No two checks or codes in one incident of this selection.",
            remedy="Kernel logs and health checks bring them:",
            commands=(
                "faultline ingest kernel-log kernel-*.log --cluster NAME",
                "faultline ingest gcm-health health.jsonl --cluster NAME",
            ),
        )
        return
    st.caption(
        "Published: of the PCIe errors of two clusters 43 % and 63 % came with XID 79 "
        "(Kokolis et al., arXiv 2410.21680).",
        help=glossary.COMPANIONS.definition,
    )
    table.show(frame(found), name="signals", scope=scope)


def frame(found: Sequence[Companion]) -> pd.DataFrame:
    """The table: shares in percent."""
    return pd.DataFrame(
        [
            {
                "of_incidents_with": one.given,
                "come_with": " + ".join(one.companions),
                "percent": _percent(one.share.value),
                "lower": _percent(one.share.lower),
                "upper": _percent(one.share.upper),
                "incidents": one.n_both,
                "of": one.share.n,
                "lift": one.lift,
                "conf_level": one.share.conf_level,
            }
            for one in found
        ]
    )


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100.0 * ratio
