"""Reading a small file of a store: bounded, and never waiting for what is no file."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_small(path: Path, most: int) -> bytes:
    """What a file holds, `most` + 1 bytes of it at most.

    Raises
    ------
    OSError
        Where it is none: a pipe in its place would be waited for without end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:  # noqa: PTH123  of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        return stream.read(most + 1)
