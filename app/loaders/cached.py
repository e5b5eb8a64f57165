"""The one cache of answers, keyed by the store's snapshot, what people said, and all arguments.

CURRENT is read again on every run, so a new snapshot is followed without a restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from app import questions
from app.reports import kinds
from data.current import read_current
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from app.reports.content import Report
    from app.reports.kinds import Kind
    from data.queries.selection import Selection

ANSWERS_KEPT = 256
"""Answers held for all sessions together."""

ROWS_KEPT = 1000
"""Rows up to which a table is kept; what a download asks for is not."""

P = ParamSpec("P")
R = TypeVar("R")


def store_root() -> Path:
    """Directory of the store that the dashboard shows."""
    return Path(os.environ.get("FAULTLINE_STORE", "store"))


def snapshot() -> int:
    """Number of the published snapshot; 0 where nothing was published yet."""
    current = read_current(store_root())
    return 0 if current is None else current.snapshot


def published_at() -> datetime | None:
    """When the snapshot was published; None where nothing was."""
    current = read_current(store_root())
    return None if current is None else datetime.fromisoformat(current.published_at)


def said_version() -> str:
    """Changes with every annotation: what people say counts at once."""
    return State(store_root()).version()


def answer(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a question about the present snapshot, from the cache where it was asked."""
    key = _key()
    found: R = _cached(_open(*key), key, question.__name__, args, kwargs)
    return found


def fresh(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a question, never from the cache."""
    return question(_open(*_key()), *args, **kwargs)


def rows(
    question: Callable[..., pd.DataFrame], *args: Any, limit: int, **kwargs: Any
) -> pd.DataFrame:
    """At most `limit` rows; from the cache where they are few."""
    if limit <= ROWS_KEPT:
        return answer(question, *args, limit=limit, **kwargs)
    with contextlib.closing(Store.open(store_root())) as store:
        return question(store, *args, limit=limit, **kwargs)


def report(kind: Kind, selection: Selection, *, about: str = "", redact: bool = False) -> Report:
    """A report; `about` is the id of its incident or the name of its node."""
    key = _key()
    return _reported(_open(*key), key, kind, selection, about=about, redact=redact)


def _key() -> tuple[str, int, str]:
    """What answers are about: the store, its snapshot, what people had said, and site.toml."""
    return str(store_root()), snapshot(), f"{said_version()} {_site_version()}"


def _site_version() -> str:
    """Changes with site.toml: a price or a time zone counts at once."""
    try:
        return hashlib.sha256((store_root() / "site.toml").read_bytes()).hexdigest()
    except OSError:
        return ""


@st.cache_resource(max_entries=2, show_spinner=False)
def _open(root: str, snapshot: int, said: str) -> Store:  # noqa: ARG001 - the cache's key
    """The store, open at a snapshot, with what people had said by then."""
    return Store.open(Path(root))


@st.cache_data(max_entries=ANSWERS_KEPT, show_spinner="Reading the store")
def _cached(
    _store: Store,
    key: tuple[str, int, str],  # noqa: ARG001 - part of the cache's key
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """One place for all answers: Streamlit tells cached functions apart by their source."""
    return getattr(questions, name)(_store, *args, **kwargs)


@st.cache_data(max_entries=ANSWERS_KEPT, show_spinner="Writing the report")
def _reported(
    _store: Store,
    key: tuple[str, int, str],  # noqa: ARG001 - part of the cache's key
    kind: Kind,
    selection: Selection,
    *,
    about: str,
    redact: bool,
) -> Report:
    """Reports of all kinds."""
    return kinds.report(_store, kind, selection, about=about, redact=redact)
