"""Some of many alike cases now, the others with the slow tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def some_at_once(cases: Iterable[Any], *, one_in: int) -> list[Any]:
    """The first of so many cases, and every so many-th after it; the others are marked slow.

    For cases that a store, a page or a process each make dear; a case of several values is a tuple.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if place % one_in == 0 else pytest.mark.slow,
        )
        for place, case in enumerate(cases)
    ]
