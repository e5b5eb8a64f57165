"""Published what-ifs beside ours, those that do not follow included."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from analytics.efficiency.published_ettr import PUBLISHED_INCONSISTENCIES, PUBLISHED_WHAT_IFS
from app.figures import numbers


def show() -> None:
    """The table, and what would be needed where a figure does not follow."""
    with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
        st.markdown(
            "Each what-if by the form and with the inputs of its paper. Nothing here is tuned to "
            "hide what does not follow."
        )
        st.dataframe(
            frame(),
            hide_index=True,
            column_config={"gpus": st.column_config.NumberColumn(format="localized")},
            key="published_ettr",
        )
        st.markdown(
            "\n".join(
                f"- {each.quantity}: {_with_unit(each.paper, each.unit)} published, "
                f"{_with_unit(each.own_formula, each.unit)} by its own formula; {each.remark}."
                for each in PUBLISHED_INCONSISTENCIES
            )
        )


def frame() -> pd.DataFrame:
    """One row a what-if."""
    return pd.DataFrame(
        [
            {
                "form": each.form,
                "gpus": int(each.settings.gpus),
                "failures per 1,000 node-days": round(each.settings.rate_per_1000_node_days, 2),
                "restart (min)": each.settings.restart_min,
                "write (min)": round(each.settings.write_min, 3),
                "interval (min)": numbers.rounded(each.settings.checkpoint_min),
                "queue (min)": each.settings.queue_min,
                "paper": each.paper,
                "ours": f"{each.ours:.3f}",
                "follows": "yes" if each.follows else "does not follow",
                "source": each.source,
            }
            for each in PUBLISHED_WHAT_IFS
        ]
    )


def _with_unit(value: float, unit: str) -> str:
    """A value, and its unit where it has one."""
    return f"{numbers.number(value)} {unit}".rstrip()
