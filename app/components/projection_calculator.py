"""A calculator: the MTTF that a given failure rate projects for a job."""

from __future__ import annotations

import streamlit as st

from app import loaders
from app.components import published_mttf
from app.figures import numbers


def show() -> None:
    """Rate, job size and node size in; MTTF out. The inputs live in the address."""
    st.header("Projection from a given rate", anchor=False)
    rate, gpus, per_node, answer = st.columns(4, vertical_alignment="bottom")
    given = rate.number_input(
        "Failures per 1,000 node-days",
        min_value=0.0001,
        value=published_mttf.RATE_PER_1000_NODE_DAYS,
        key="rate",
        bind="query-params",
    )
    size = gpus.number_input("GPUs of the job", 1, value=16384, key="gpus", bind="query-params")
    node = per_node.number_input(
        "GPUs per node", 1, value=8, key="gpus_per_node", bind="query-params"
    )
    (hours,) = loaders.projection(given, [size], gpus_per_node=node)
    answer.metric("Projected MTTF", numbers.duration(hours))
