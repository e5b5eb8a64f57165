"""Asking a question of a store: a plain call on the command line, cached on the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

P = ParamSpec("P")
R = TypeVar("R")

FEW = 1000
"""Rows up to which a table is kept in a cache and sent to a browser."""
EVERYTHING = 1_000_000
"""Rows of a download at most."""


class Ask(Protocol):
    """Asks a question, which is a function of a store and of arguments, at the top of a module."""

    def __call__(
        self, question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What the question returns for the store in hand."""


def of_store(store: Store) -> Ask:
    """Asks one store, and keeps nothing."""

    def ask(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return question(store, *args, **kwargs)

    return ask


def once(ask: Ask) -> Ask:
    """Asks likewise, each question once: for an answer made of several that share results."""
    known: dict[str, Any] = {}

    def asked(question: Any, *args: Any, **kwargs: Any) -> Any:
        key = repr((question.__module__, question.__qualname__, args, sorted(kwargs.items())))
        if key not in known:
            known[key] = ask(question, *args, **kwargs)
        return known[key]

    return cast("Ask", asked)
