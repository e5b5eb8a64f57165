"""Where published MTTF figures do not follow from the published failure rate."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from app import loaders
from app.figures import numbers

SOURCE = "Kokolis et al., arXiv 2410.21680, cluster RSC-1: r_f = 6.50 per 1,000 node-days"
RATE_PER_1000_NODE_DAYS = 6.50
AGREES, ROUGHLY = 0.05, 0.5
"""Relative differences up to which two figures agree, or do so roughly."""


@dataclass(frozen=True)
class Published:
    """An MTTF as the paper states it."""

    gpus: int
    mttf_hours: float
    stated_as: str


PUBLISHED = (
    Published(8, 47.7 * 24, "47.7 d, measured"),
    Published(1024, 7.9, "7.9 h, measured"),
    Published(4096, 10.0, "about 10 h"),
    Published(16384, 1.8, "1.8 h, projected"),
    Published(100_000, 0.25, "about 15 min"),
    Published(131_072, 0.23, "0.23 h, projected"),
)


def show() -> None:
    """The published figures beside what the published rate gives."""
    st.markdown(
        "**Published figures beside the published rate.** Two of the paper's measured values do "
        "not follow from its own rate; nothing here is tuned to hide that."
    )
    st.dataframe(
        frame(),
        hide_index=True,
        column_config={"gpus": st.column_config.NumberColumn(format="localized")},
    )
    st.caption(f"{SOURCE}. Implied r_f: the rate at which the published MTTF would follow.")


def frame() -> pd.DataFrame:
    """One row a published figure."""
    sizes = [published.gpus for published in PUBLISHED]
    projected = loaders.projection(RATE_PER_1000_NODE_DAYS, sizes)
    return pd.DataFrame(
        [
            {
                "gpus": published.gpus,
                "published": published.stated_as,
                "24 h / (N r_f)": numbers.duration(ours),
                "implied r_f": numbers.rounded(
                    RATE_PER_1000_NODE_DAYS * ours / published.mttf_hours
                ),
                "follows from r_f": _verdict(ours / published.mttf_hours),
            }
            for published, ours in zip(PUBLISHED, projected, strict=True)
            if ours is not None
        ]
    )


def _verdict(ratio: float) -> str:
    """Whether a published value follows from the rate."""
    difference = max(ratio, 1.0 / ratio) - 1.0
    if difference <= AGREES:
        return "yes"
    return "roughly" if difference <= ROUGHLY else "does not follow from r_f"
