"""Going to the page of one job or node; the filters come along."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components import filter_bar, verbatim

SCRIPT = Path(__file__).with_name("go_to.js")

# st.switch_page refuses while inputs are bound to the address, and every filter is.
_go = st.components.v2.component("faultline_go_to", js=SCRIPT.read_text())


def open_job(row: pd.Series) -> None:
    """The page of the attempt in a row with the columns cluster, job_id and attempt."""
    named = {"job": str(row["job_id"]), "cluster": str(row["cluster"])}
    if not pd.isna(row["attempt"]):
        named["attempt"] = f"attempt {int(row['attempt'])}"
    _go(key="go_to", data={"href": _address("job", named)})


def open_node(row: pd.Series) -> None:
    """The page of the node in a row with the columns cluster and node."""
    named = {name: str(row[name]) for name in ("node", "cluster")}
    _go(key="go_to", data={"href": _address("node", named)})


def open_incident(incident_id: str) -> None:
    """The page of an incident."""
    _go(key="go_to", data={"href": _address("incident", {"incident": incident_id})})


def open_run(row: pd.Series) -> None:
    """The run in a row with the columns cluster and run_id."""
    named = {"run": str(row["run_id"]), "cluster": str(row["cluster"])}
    _go(key="go_to", data={"href": _address("ettr", named)})


def open_trace(row: pd.Series) -> None:
    """The straggler trace in a row with the column trace."""
    _go(key="go_to", data={"href": _address("stragglers", {"trace": str(row["trace"])})})


def job(job_id: str, cluster: str) -> str:
    """A link to a job's page, as markdown."""
    named = {"job": job_id, "cluster": cluster}
    return f"[{verbatim.escaped(f'Job {job_id}')}]({_address('job', named)})"


def attempt(row: pd.Series) -> str:
    """A link to the page of the attempt in a row, as markdown."""
    named = {"job": str(row["job_id"]), "cluster": str(row["cluster"])}
    title = f"Job {row['job_id']}"
    if not pd.isna(row["attempt"]):
        named["attempt"] = f"attempt {int(row['attempt'])}"
        title += f", attempt {int(row['attempt'])}"
    return f"[{verbatim.escaped(title)}]({_address('job', named)})"


def node(name: str, cluster: str) -> str:
    """A link to a node's page, as markdown."""
    return f"[{verbatim.escaped(name)}]({_address('node', {'node': name, 'cluster': cluster})})"


def run(run_id: str, cluster: str) -> str:
    """A link to a run's ETTR, as markdown."""
    named = {"run": run_id, "cluster": cluster}
    return f"[{verbatim.escaped(f'Run {run_id}')}]({_address('ettr', named)})"


def trace(label: str) -> str:
    """A link to a straggler trace by its label, as markdown."""
    address = _address("stragglers", {"trace": label})
    return f"[{verbatim.escaped(f'Straggler trace {label}')}]({address})"


def incident(incident_id: str) -> str:
    """A link to an incident's page, as markdown."""
    return f"[{verbatim.escaped(incident_id)}]({_address('incident', {'incident': incident_id})})"


def _address(page: str, named: dict[str, str]) -> str:
    """A page with the filters of the present address, except those that the target names."""
    kept = {k: v for k in filter_bar.DEFAULTS if (v := st.query_params.get(k)) is not None}
    return f"{page}?{urlencode(kept | named)}"
