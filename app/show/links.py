"""Going to the page of one job or node; the filters come along, and the time it is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.show.scope import FILTERS
from app.words import escaping
from app.words.addresses import NAMES, PAGES, named
from app.words.periods import MARGIN, custom_period

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.show.scope import Scope
    from app.words.cells import Link

SCRIPT = Path(__file__).with_name("go_to.js")
# st.switch_page refuses while inputs are bound to the address, and every filter is.
_go = st.components.v2.component("faultline_go_to", js=SCRIPT.read_text())


def go(kind: Link, row: Mapping[str, Any], scope: Scope) -> None:
    """Opens the page of what a row names, in the same tab, at the time of the row."""
    names = named(kind, row)
    if kind == "node" and "period" not in scope.uses:
        names |= around(row.get("start_at"), row.get("end_at"), scope.timezone)
    _goto(_address(PAGES[kind], names))


def go_to_mark(
    kind: Link, mark: str, scope: Scope, *, during: tuple[Any, Any] = (None, None)
) -> None:
    """Opens what a mark of a chart names, at its time: `cluster/run_id`, or an id alone."""
    cluster, _, name = mark.rpartition("/")
    times = dict(zip(("start_at", "end_at"), during, strict=True))
    go(kind, {"cluster": cluster, NAMES[kind]: name} | times, scope)


def around(start: Any, end: Any, timezone: str) -> dict[str, str]:
    """The period of a link, a week before to a week after; none where no time is known.

    >>> around(pd.Timestamp("2026-12-24T12:00Z"), None, "UTC")
    {'period': 'custom', 'from': '2026-12-17T12:00', 'to': '2026-12-31T12:00'}
    >>> around(None, pd.NaT, "UTC")
    {}
    """
    known = [pd.Timestamp(at).tz_convert(timezone) for at in (start, end) if not pd.isna(at)]
    if not known:
        return {}
    return custom_period(min(known) - MARGIN, max(known) + MARGIN)


def stay(changed: Mapping[str, str]) -> None:
    """Opens the present page with other filters; the browser's Back undoes it."""
    _goto(f"?{urlencode(st.query_params.to_dict() | dict(changed))}")


def _goto(address: str) -> None:
    """Opens an address; the count tells the browser that it is asked anew, if for the same."""
    count = st.session_state.get("n_gone", 0) + 1
    st.session_state["n_gone"] = count
    _go(key="go_to", data={"href": address, "count": count})


def job(job_id: str, cluster: str) -> str:
    """A link to a job's page, as markdown."""
    return to("job", job_id, cluster, said=f"Job {job_id}")


def node(name: str, cluster: str, during: Mapping[str, str]) -> str:
    """A link to a node's page, as markdown; `during` is its period, as `around` says it."""
    return to("node", name, cluster, during=during)


def to(
    kind: Link,
    name: str,
    cluster: str = "",
    *,
    said: str = "",
    during: Mapping[str, str] | None = None,
) -> str:
    """A link to the page of one thing, as markdown; it reads `said`, else its name."""
    return f"[{escaping.escaped(said or name)}]({address(kind, name, cluster, during)})"


def address(
    kind: Link, name: str, cluster: str = "", during: Mapping[str, str] | None = None
) -> str:
    """Where such a link leads, beside the present page."""
    named = {kind: name} | ({"cluster": cluster} if cluster else {}) | dict(during or {})
    return _address(PAGES[kind], named)


def _address(page: str, named: dict[str, str]) -> str:
    """A page with the filters of the present address, except those that the target names."""
    kept = {k: v for k in FILTERS if (v := st.query_params.get(k)) is not None}
    return f"{page}?{urlencode(kept | named)}"


def address_of(name: str) -> str:
    """The address of a page with the present filters."""
    return _address(name, {})


def page(name: str, named: Mapping[str, str], said: str) -> str:
    """A link to any page with what its address names, as markdown."""
    return f"[{escaping.escaped(said)}]({_address(name, dict(named))})"
