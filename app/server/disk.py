"""What the server asks of its store's files, none of which it ever waits for: see `beside`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.server.beside import Beside
from data.current import read_current
from data.errors import DataError
from data.site import site_version
from data.state import State

if TYPE_CHECKING:
    from pathlib import Path

    from app.ask.cached import Standing
    from data.current import Current


class Disk:
    """CURRENT, site.toml and state.sqlite of one store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._current = Beside(lambda: read_current(store))
        self._site = Beside(lambda: site_version(store))
        self._said = Beside(State(store).version_of_answers)
        self._was_there = (store / "CURRENT").exists()  # before the loop begins

    async def standing(self) -> Standing | None:
        """What the answers of pages are about; None where a file cannot be read, or not now."""
        asked = (self._current.answer(), self._said.answer(), self._site.answer())
        try:
            current, said, site = await asyncio.gather(*asked)
        except (DataError, TimeoutError):
            return None
        from app.ask import cached  # its caches want Streamlit to run

        return cached.standing_of(self._store, current, said, site)

    async def health(self) -> tuple[Current | None, str | None]:
        """The published snapshot, and why the store cannot be used; None where it can be."""
        found = await asyncio.gather(
            self._current.answer(), self._site.answer(), return_exceptions=True
        )
        for name, each in zip(("CURRENT", "site.toml"), found, strict=True):
            if isinstance(each, TimeoutError):
                return None, f"{name} cannot be read: its disk does not answer"
            if isinstance(each, DataError):  # what is told names no path of the server
                return None, str(each).replace(f"{self._store}/", "")
            if isinstance(each, BaseException):
                raise each
        current = found[0]
        assert not isinstance(current, BaseException)  # looked at above
        if current is None and self._was_there:
            return None, "the store is gone"
        self._was_there = current is not None
        return current, None
