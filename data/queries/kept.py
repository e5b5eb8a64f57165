"""Answers that the questions of one page share, kept with the snapshot that they are about."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

P = ParamSpec("P")

ANSWERS_KEPT = 4
"""Of one store: a page asks of a period and of the one before it."""
ROWS_KEPT = 200_000
"""Rows up to which an answer is kept."""
_KEPT: WeakKeyDictionary[Store, dict[tuple[Any, ...], Columns]] = WeakKeyDictionary()


def kept(
    query: Callable[Concatenate[Store, Selection, P], Columns],
) -> Callable[Concatenate[Store, Selection, P], Columns]:
    """The query, run once for what is asked again at once; callers leave its columns unchanged.

    A snapshot never changes. Rate, weeks and partitions rest on the same two queries, which are
    half of what a page costs on four million attempts.
    """

    def answer(
        store: Store, selection: Selection, /, *args: P.args, **options: P.kwargs
    ) -> Columns:
        answers = _KEPT.setdefault(store, {})
        key = (query.__name__, selection.rows, args, tuple(sorted(options.items())))
        columns = answers.get(key)
        if columns is None:
            columns = query(store, selection, *args, **options)
            if len(next(iter(columns.values()))) <= ROWS_KEPT:
                answers[key] = columns
            for oldest in list(answers)[:-ANSWERS_KEPT]:
                answers.pop(oldest, None)
        return columns

    update_wrapper(answer, query)
    return answer
