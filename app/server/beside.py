"""Asking a disk beside the event loop: it may hang, and the dashboard goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

WITHIN_S = 0.15
"""Seconds that an answer is waited for; with them a request is answered within 0.2."""


class Beside(Generic[T]):
    """One question of a disk, asked in a thread of its own and once at a time.

    Who asks while it is out gets the answer that comes, so that a disk that hangs holds one thread
    and no more. The thread ends with the server, whatever it waits for.
    """

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._out: asyncio.Future[T] | None = None

    async def answer(self) -> T:
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
        return await asyncio.wait_for(asyncio.shield(self._out), WITHIN_S)

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
