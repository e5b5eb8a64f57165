"""What the server asks of its store's files, none of which it ever waits for."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from app.alerts import exposition
from data.current import read_current
from data.errors import DataError
from data.site_file import site_version
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.ask.cached import Standing
    from data.current import Current

T = TypeVar("T")

WITHIN_S = 0.15
"""Seconds that an answer is waited for; with them a request is answered within 0.2."""
METRICS_WITHIN_S = 5.0
"""Prometheus waits for ten, and nobody else with it."""


class Beside(Generic[T]):
    """One question of a disk, asked in a thread of its own and once at a time.

    Who asks while it is out gets the answer that comes, so that a disk that hangs holds one thread
    and no more. The thread ends with the server, whatever it waits for.
    """

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._out: asyncio.Future[T] | None = None

    async def answer(self, within_s: float = WITHIN_S) -> T:
        """The answer.

        Raises
        ------
        TimeoutError
            Where it does not come in time; whatever the question raises.
        """
        if self._out is None:
            loop = asyncio.get_running_loop()
            self._out = loop.create_future()
            threading.Thread(
                target=self._ask, args=(loop, self._out), daemon=True, name="beside the loop"
            ).start()
        return await asyncio.wait_for(asyncio.shield(self._out), within_s)

    def _ask(self, loop: asyncio.AbstractEventLoop, out: asyncio.Future[T]) -> None:
        try:
            found, error = self._question(), None
        except Exception as raised:  # noqa: BLE001  it is raised where the answer is waited for
            found, error = None, raised

        def told() -> None:
            self._out = None
            if error is not None:
                out.set_exception(error)
                out.exception()  # nobody may be waiting any more
            else:
                out.set_result(found)  # type: ignore[arg-type]

        if not loop.is_closed():
            loop.call_soon_threadsafe(told)


class Disk:
    """CURRENT, site.toml and state.sqlite of one store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._current = Beside(lambda: read_current(store))
        self._site = Beside(lambda: site_version(store))
        self._said = Beside(State(store).version_of_answers)
        self._metrics = Beside(lambda: exposition.of_store(store, datetime.now(UTC)))
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

    async def metrics(self) -> str | None:
        """What Prometheus reads; None where the store cannot be read, or not now."""
        try:
            return await self._metrics.answer(METRICS_WITHIN_S)
        except (DataError, TimeoutError):
            return None
