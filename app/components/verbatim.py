"""Text of logs, queries and people, shown as it is written: nothing in it is markup."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|$<>~:&])")


def escaped(text: str) -> str:
    r"""Text on one line that markdown leaves alone.

    >>> escaped("SELECT $a -- <b>")
    'SELECT \\$a \\-\\- \\<b\\>'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text on one line in the letters of code.

    >>> code("SELECT 1")
    '`SELECT 1`'
    """
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
