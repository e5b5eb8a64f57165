"""A reader without a browser: opens pages of a server over Streamlit's websocket, as a tab does."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from websockets.asyncio.client import ClientConnection


MOST_S = 60.0
"""Seconds that a page may take."""


@dataclass
class Reader:
    """One tab. It keeps what a browser's script keeps: pages, large messages, and what to repeat."""

    socket: ClientConnection
    url: str
    pages: dict[str, str] = field(default_factory=dict)
    """Pages by the name in their address, as the server told them."""
    page: str = ""
    kept: set[str] = field(default_factory=set)
    """Large messages that it need not be sent again, as a browser keeps them."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    repeated: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Parts of the page that run again by themselves."""
    shown: Counter[str] = field(default_factory=Counter)
    """Kinds of elements that came since the page was asked for."""

    async def open(self, name: str) -> float:
        """Opens a page; seconds from the request until its script has finished."""
        self.page = self.pages.get(name, "")
        self.finished.clear()
        self.shown.clear()
        for task in self.repeated.values():
            task.cancel()
        self.repeated.clear()
        begin = time.perf_counter()
        await self._run(name=name)
        async with asyncio.timeout(MOST_S):
            await self.finished.wait()
        return time.perf_counter() - begin

    async def _run(self, *, name: str = "", fragment: str = "") -> None:
        asked = BackMsg()
        state = asked.rerun_script
        state.page_script_hash = self.page
        state.page_name = "" if self.page else name
        state.fragment_id = fragment
        state.is_auto_rerun = bool(fragment)
        state.cached_message_hashes.extend(self.kept)
        state.widget_states.SetInParent()
        state.context_info.timezone = "UTC"
        state.context_info.locale = "en-GB"
        state.context_info.url = f"{self.url}{name}"
        state.context_info.color_scheme = "light"
        await self.socket.send(asked.SerializeToString())

    async def _repeat(self, fragment: str, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await self._run(fragment=fragment)

    async def listen(self) -> None:
        """Takes what the server sends until the connection closes."""
        async for data in self.socket:
            message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
            kind = message.WhichOneof("type")
            if message.metadata.cacheable:
                self.kept.add(message.hash)
            if kind == "delta":
                self.shown[message.delta.new_element.WhichOneof("type") or "block"] += 1
            elif kind == "ref_hash":
                assert message.ref_hash in self.kept
                self.shown["kept"] += 1
            elif kind == "navigation":
                self.pages |= {
                    page.url_pathname if not page.is_default else "": page.page_script_hash
                    for page in message.navigation.app_pages
                }
            elif kind == "auto_rerun":
                part = message.auto_rerun.fragment_id
                if part not in self.repeated:
                    self.repeated[part] = asyncio.create_task(
                        self._repeat(part, message.auto_rerun.interval)
                    )
            elif kind == "script_finished" and (
                message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
            ):
                self.finished.set()


@contextlib.asynccontextmanager
async def reader(url: str, cookie: str) -> AsyncIterator[Reader]:
    """A tab that is let in by a cookie."""
    stream = f"{url.replace('http', 'ws', 1)}_stcore/stream"
    origin = url.rstrip("/")
    async with connect(
        stream,
        origin=origin,  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        additional_headers={"Cookie": cookie},
        max_size=None,
    ) as socket:
        tab = Reader(socket, url)
        listening = asyncio.create_task(tab.listen())
        try:
            yield tab
        finally:
            for task in (listening, *tab.repeated.values()):
                task.cancel()


async def read(
    tab: Reader, pages: Sequence[str], chance: random.Random, think_s: float
) -> list[float]:
    """Opens pages in turn, thinking before each; the seconds that each took."""
    seconds = []
    for page in pages:
        await asyncio.sleep(think_s * chance.uniform(0.5, 1.5))
        seconds.append(await tab.open(page))
    return seconds
