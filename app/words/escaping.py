"""Text of logs, records and people, shown as it is written: nothing in it is markup."""

from __future__ import annotations

import re

_SPECIAL = re.compile(
    r"[\\`*\[\]<>|$~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # inside a word it is a letter
    r"|:(?=[A-Za-z+-])"  # Streamlit's colours, icons and emoji
    r"|&(?=#?\w+;)"
    r"|^(?:[-+#=]|\d+(?=[.)]\s))"  # lists and headings
)


def escaped(text: str) -> str:
    r"""Text on one line that markdown leaves alone.

    >>> escaped("SELECT $a, *b* -- <c>")
    'SELECT \\$a, \\*b\\* -- \\<c\\>'
    >>> escaped("12:30 gpu-01_a: [x](http://y) :red[z]")
    '12:30 gpu-01_a: \\[x\\](http://y) \\:red\\[z\\]'
    """
    return _SPECIAL.sub(_quoted, " ".join(text.split()))


def _quoted(found: re.Match[str]) -> str:
    """A mark with a backslash before it; behind the digits of what would be a list."""
    mark = found[0]
    return f"{mark}\\" if mark[0].isdigit() else f"\\{mark}"


def with_code(text: str) -> str:
    r"""Escaped text in which what stands between backticks, such as a command, is code.

    >>> with_code("pass `--min-gpus 0` for *all*")
    'pass `--min-gpus 0` for \\*all\\*'
    """
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # one without its pair
        return escaped(text)
    return "".join(
        code(part) if place % 2 else _SPECIAL.sub(_quoted, part) for place, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Text on one line in the letters of code.

    >>> code("SELECT 1")
    '`SELECT 1`'
    """
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
