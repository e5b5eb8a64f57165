"""Asking the store that the dashboard shows, with one cache for all sessions.

Results are kept by the question's module and name, its arguments, the snapshot, what people said
and site.toml. CURRENT is read again on every run, so a new snapshot is followed without a restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from app.ask import FEW, ahead
from data.current import read_current
from data.site_changes import changes
from data.site_file import site_version
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ask import Ask
    from data.current import Current

RESULTS_KEPT = 256
"""Results held for all sessions together."""
MADE_KEPT = 128
"""Figures and the like held for all sessions together."""

P = ParamSpec("P")
R = TypeVar("R")


def ask(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a question says of the present snapshot, from the cache where it was asked before.

    Tables of more than a few rows are read anew: what a download asks for is not kept.
    """
    limit = kwargs.get("limit")
    if isinstance(limit, int) and limit > FEW:
        return fresh(question, *args, **kwargs)
    root, snapshot, said = standing()
    result: R = _asked(
        _store=_open(root=root, snapshot=snapshot, said=said),
        _question=question,
        _args=args,
        _kwargs=kwargs,
        asked=_content(root, snapshot, said, question, args, sorted(kwargs.items())),
    )
    return result


def kept(make: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a pure function makes of its arguments: once for all sessions that want the same.

    All of them get the same object, so nobody may change it.
    """
    content = _content(make, args, sorted(kwargs.items()))
    result: R = _made(_make=make, _args=args, _kwargs=kwargs, content=content)
    return result


def whole(answer: Callable[Concatenate[Ask, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What is made of several questions, kept as each of them is.

    All sessions get the same object, so nobody may change it.
    """
    content = _content(standing(), answer, args, sorted(kwargs.items()))
    result: R = _made(_make=partial(answer, ask), _args=args, _kwargs=kwargs, content=content)
    return result


def fresh(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a question says of the present snapshot, never from the cache."""
    with contextlib.closing(Store.open(store_root())) as store:
        return question(store, *args, **kwargs)


def opened() -> None:
    """Opens the present snapshot, so that its first reader need not wait for that."""
    root, snapshot, said = standing()
    _open(root=root, snapshot=snapshot, said=said)


def closed() -> None:
    """Closes what is open, before the process takes its libraries apart: DuckDB complains else."""
    _open.clear()


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
    """Changes with every annotation that an answer rests on: what people say counts at once."""
    return State(store_root()).version_of_answers()


def site_changes() -> tuple[str, ...]:
    """What site.toml says otherwise than at the last publish, in one line; none where nothing."""
    return changes(store_root())


Standing = tuple[str, int, str]
"""What results are about: the store, its snapshot, and what people had said with site.toml."""


def standing() -> Standing:
    """What results are about now."""
    return standing_of(
        store_root(), read_current(store_root()), said_version(), site_version(store_root())
    )


def standing_of(root: Path, current: Current | None, said: str, site: str) -> Standing:
    """The same of facts that were read already."""
    return str(root), 0 if current is None else current.snapshot, f"{said} {site}"


def _content(*parts: Any) -> str:
    """The parts as a short text that differs where they do: a function is told by its name."""
    return hashlib.sha256(pickle.dumps(parts)).hexdigest()


@st.cache_resource(max_entries=2, show_spinner=False)
def _open(root: str, snapshot: int, said: str) -> Store:  # noqa: ARG001 - the cache's key
    """The store, open at a snapshot, with what people had said by then."""
    return Store.open(Path(root))


@st.cache_data(max_entries=RESULTS_KEPT, show_spinner="Reading the store")
def _asked(
    _store: Store,
    _question: Callable[..., Any],
    _args: tuple[Any, ...],
    _kwargs: dict[str, Any],
    asked: str,  # the cache's key, of all of the above
) -> Any:
    """One place for all results: Streamlit tells cached functions apart by their source."""
    made = ahead.read(asked)
    return made[0] if made else ahead.kept(asked, _question(_store, *_args, **_kwargs))


@st.cache_resource(max_entries=MADE_KEPT, show_spinner=False)
def _made(
    _make: Callable[..., Any],
    _args: tuple[Any, ...],
    _kwargs: dict[str, Any],
    content: str,  # the cache's key, of all of the above
) -> Any:
    made = ahead.read(content)
    return made[0] if made else ahead.kept(content, _make(*_args, **_kwargs))
