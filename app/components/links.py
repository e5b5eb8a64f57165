"""Going to the page of one job or node; the filters come along."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from app.components import filter_bar

if TYPE_CHECKING:
    import pandas as pd

JOB = "views/failures/job.py"
NODE = "views/failures/node.py"


def open_job(row: pd.Series) -> None:
    """The page of the job in a row with the columns cluster and job_id."""
    named = {"job": str(row["job_id"]), "cluster": str(row["cluster"])}
    if "attempt_key" in row:
        named["attempt"] = str(row["attempt_key"])
    st.switch_page(JOB, query_params=_with_filters(named))


def open_node(row: pd.Series) -> None:
    """The page of the node in a row with the columns cluster and node."""
    named = {"node": str(row["node"]), "cluster": str(row["cluster"])}
    st.switch_page(NODE, query_params=_with_filters(named))


def node(name: str, cluster: str) -> str:
    """A link to a node's page, as markdown."""
    return f"[{name}](node?{urlencode(_with_filters({'node': name, 'cluster': cluster}))})"


def _with_filters(named: dict[str, str]) -> dict[str, str]:
    """The filters in the present address, except those that the target names itself."""
    kept = {k: v for k in filter_bar.DEFAULTS if (v := st.query_params.get(k)) is not None}
    return kept | named
