"""Text of logs, records and people, shown as it is written: nothing in it is markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SPECIAL = re.compile(
    r"[\\`*\[\]<>|$~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # inside a word it is a letter
    r"|:(?=[A-Za-z+-])"  # Streamlit's colours, icons and emoji
    r"|&(?=#?\w+;)"
    r"|^(?:[-+#=]|\d+(?=[.)]\s))"  # lists and headings
)
_ADDRESS = re.compile(
    r"(?:(?<![a-z])[a-z][a-z0-9+.-]{0,30}://|\b(?:mailto|xmpp):|(?<![a-z0-9])www\.)"
    r"[^\s`<>|\\]*[^\s`<>|\\.,;:!?'\")\]]"
    r"|(?<![\w.+-])[\w.+-]*@[\w-]+(?:\.[\w-]+)*",
    re.IGNORECASE,
)
"""What some renderer of markdown makes a link of, or calls somebody by: addresses of pages and
mailboxes, @names. A backslash does not stop them: they look at what the text reads in the end."""


def escaped(text: str) -> str:
    r"""Text on one line that markdown leaves alone; addresses in it are code, so that none becomes
    a link.

    >>> escaped("SELECT $a, *b* -- <c>")
    'SELECT \\$a, \\*b\\* -- \\<c\\>'
    >>> escaped("12:30 gpu-01_a: [x](http://y) :red[z]")
    '12:30 gpu-01_a: \\[x\\](`http://y`) \\:red\\[z\\]'
    >>> escaped("see www.example.org, or ask ann@example.org.")
    'see `www.example.org`, or ask `ann@example.org`.'
    """
    return _written(" ".join(text.split()))


def without_links(line: str, write: Callable[[str], str]) -> str:
    """A line with its addresses as code and the rest as `write` makes it."""
    parts, begun = [], 0
    for address in _ADDRESS.finditer(line):
        parts += [write(line[begun : address.start()]), code(address[0])]
        begun = address.end()
    return "".join([*parts, write(line[begun:])])


def _written(part: str) -> str:
    """A part of a line, its blanks as they are."""
    return without_links(part, lambda rest: _SPECIAL.sub(_quoted, rest))


def _quoted(match: re.Match[str]) -> str:
    """A mark with a backslash before it; behind the digits of what would be a list."""
    mark = match[0]
    return f"{mark}\\" if mark[0].isdigit() else f"\\{mark}"


def with_code(text: str) -> str:
    r"""Escaped text; what stands between backticks, such as a command, is code.

    >>> with_code("pass `--min-gpus 0` for *all*")
    'pass `--min-gpus 0` for \\*all\\*'
    """
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # one without its pair
        return escaped(text)
    return "".join(code(part) if place % 2 else _written(part) for place, part in enumerate(parts))


def code(text: str) -> str:
    """Text on one line in the letters of code.

    >>> code("SELECT 1")
    '`SELECT 1`'
    """
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
