"""Regular expressions that are compiled when they are first tried: short logs try few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    """What stands for a regular expression until it is tried."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """A method or an attribute of it, which is found here at once from then on."""
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first tried.

    A mistake in it is found only then, and a match's `re` is another object.

    >>> lazily("B", re.IGNORECASE).sub("-", "abc")
    'a-c'
    """
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
