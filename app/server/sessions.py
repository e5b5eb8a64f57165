"""Who is logged in: each login has a secret of its own, which ends with it."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

MOST = 1_000
"""Logins at a time; the one used longest ago ends for a new one."""


@dataclass(eq=False)
class Session:
    """One browser that was let in."""

    person: str | None
    """Whose token it showed; None where the token has no name."""
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the logout: open websockets wait for it."""


class Sessions:
    """All of one start of the server."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}

    def begin(self, person: str | None) -> Session:
        """A new session."""
        session = Session(person)
        if len(self._open) >= MOST:
            self.end(next(iter(self._open.values())))
        self._open[session.secret] = session
        return session

    def of(self, secret: str | None) -> Session | None:
        """The session of a cookie; None where it has none or it ended."""
        session = None if secret is None else self._open.pop(secret, None)
        if session is not None:
            self._open[session.secret] = session  # the last of all: it was used just now
        return session

    def end(self, session: Session) -> None:
        """Logs it out; others of the same person stay."""
        self._open.pop(session.secret, None)
        session.ended.set()
