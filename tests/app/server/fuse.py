"""A file system that answers nothing but where its root is: whatever is opened in it hangs."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INIT, GETATTR, FORGET = 26, 3, 2
FORCE_AND_DETACH = 1 | 2  # who waits for an answer is told that there is none
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def hanging(folder: Path) -> Iterator[list[int]]:
    """Mounted over a folder; the numbers of what was asked and never answered.

    Raises
    ------
    OSError
        Where this user may not mount.
    """
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if _libc.mount(b"hanging", bytes(folder), b"fuse", 0, options):
        os.close(device)
        raise OSError(ctypes.get_errno(), "cannot be mounted")
    asked: list[int] = []
    threading.Thread(target=_answer, args=(device, asked), daemon=True).start()
    try:
        yield asked
    finally:
        _libc.umount2(bytes(folder), FORCE_AND_DETACH)
        os.close(device)


def _answer(device: int, asked: list[int]) -> None:
    """Says that the root is a folder; all else is left out."""
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:  # unmounted
            return
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        if operation == INIT:
            limits = (0, 0, 12, 12, 4096, 1, 1, 0, 0)  # reads ahead, flags, background, writes, ...
            body = struct.pack("<IIIIHHIIHHI7I", 7, 31, *limits, *(0,) * 7)
            _reply(device, unique, body)
        elif operation == GETATTR and node == 1:
            attributes = struct.pack(
                "<QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0
            )
            _reply(device, unique, struct.pack("<QII", 3600, 0, 0) + attributes)
        elif operation != FORGET:
            asked.append(operation)


def _reply(device: int, unique: int, body: bytes) -> None:
    os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
