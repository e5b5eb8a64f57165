"""Which incidents the page shows: by domain, cause and status; the choice lives in the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions, loaders
from app.figures.failures import domains

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.components.scope import Scope


def choose(scope: Scope) -> dict[str, str | None]:
    """Domain, cause and status, each None where all are shown."""
    columns = st.columns([2, 3, 2])
    with columns[0]:
        domain = _one_of("Domain", list(domains.TITLES), domains.TITLES, key="of_domain")
    with columns[1]:
        titles = {each.cause: each.title for each in loaders.incidents(scope.selection).by_cause}
        cause = _one_of("Cause", sorted(titles, key=titles.__getitem__), titles, key="of_cause")
    with columns[2]:
        status = _one_of("Status", actions.STATUSES, {}, key="of_status")
    return {"domain": domain, "cause": cause, "status": status}


def _one_of(
    name: str, options: Sequence[str], titles: Mapping[str, str], *, key: str
) -> str | None:
    """One of the values, or all of them."""
    everything = {"Domain": "all domains", "Cause": "all causes", "Status": "whatever the status"}
    return st.selectbox(
        name,
        options,
        index=None,
        format_func=lambda option: titles.get(option, option),
        placeholder=everything[name],
        key=key,
        bind="query-params",
        label_visibility="collapsed",
    )


def words(kind: dict[str, str | None]) -> str:
    """What was chosen, in words."""
    domain, cause, status = (kind[name] for name in ("domain", "cause", "status"))
    said = [domain and domains.TITLES[domain], cause and cause.replace("_", " "), status]
    return " · ".join(part for part in said if part)
