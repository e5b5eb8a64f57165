"""The tokens that let people in: made at the start, or kept in a file."""

from __future__ import annotations

import os
import re
import secrets
import stat
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    from pathlib import Path

SHORTEST = 20
"""Characters of a token; ours have 43."""
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class ServeError(AnalysisError):
    """The dashboard cannot be served as asked; the message says why and what to do."""


def made() -> str:
    """A new token: 256 random bits."""
    return secrets.token_urlsafe(32)


def kept(path: Path) -> dict[str, str | None]:
    """The tokens of a file, each with the name of its person or None; makes a file with one.

    A line is `TOKEN` or `NAME TOKEN`; what begins with # is a remark.

    Raises
    ------
    ServeError
        Where others can read the file, or a line is none of these.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{made()}\n")
    except FileExistsError:
        pass
    if not path.is_file():
        raise ServeError(f"{path}: is no file: name one for --token-file")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ServeError(f"{path}: others can read or change it: run chmod 600 {path}")
    found: dict[str, str | None] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        *names, token = line.split() or ["#"]
        if line.lstrip().startswith("#") or token == "#":
            continue
        _check(f"{path}, line {number}", names, token)
        if token in found:
            raise ServeError(f"{path}, line {number}: stands there before: each needs its own")
        found[token] = names[0] if names else None
    if not found:
        raise ServeError(f"{path}: holds no token: delete it, and one is made")
    return found


def _check(place: str, names: list[str], token: str) -> None:
    """Refuses a line that is no `TOKEN` or `NAME TOKEN`; it is not shown, since it is a secret."""
    if len(names) > 1 or not _TOKEN.fullmatch(token):
        raise ServeError(
            f"{place}: is none of `TOKEN` and `NAME TOKEN`; a token holds letters, digits and -_.~"
        )
    if len(token) < SHORTEST:
        raise ServeError(
            f"{place}: the token is shorter than {SHORTEST} characters: make it longer"
        )
    if names and not _NAME.fullmatch(names[0]):
        raise ServeError(f"{place}: a name has up to 64 letters, digits and ._@-: write it so")
