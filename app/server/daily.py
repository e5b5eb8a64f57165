"""The whole of the published snapshot, looked at once a day while the dashboard shows it.

Opening a store looks at a sample of it alone. What is read here is read slowly, by a thread of the
lowest priority, so that nobody waits for it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from data.current import copy_hashed, damaged, read_current
from data.errors import StoreError

FIRST_AFTER_S = 60.0
EVERY_S = 24 * 3600.0
BYTES_PER_S = 20_000_000
"""How fast it is read at most: a gigabyte takes a minute."""
LOWEST = 19
"""Of the priorities of Linux."""


def begin(
    store: Path, *, first_after_s: float = FIRST_AFTER_S, every_s: float = EVERY_S
) -> threading.Thread:
    """Looks at a store's snapshot from now on, as long as this process runs."""

    def look() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)
        time.sleep(first_after_s)
        while True:
            if (told := found(store)) is not None:
                logging.getLogger(__name__).error("%s", told)
            time.sleep(every_s)

    thread = threading.Thread(target=look, daemon=True, name="whole snapshot")
    thread.start()
    return thread


def found(store: Path, *, bytes_per_s: float = BYTES_PER_S) -> str | None:
    """What is wrong with the published snapshot; None where nothing is, or none was published."""
    try:
        current = read_current(store)
        if current is None:
            return None
        path = store / current.file
        digest = copy_hashed(path, Path(os.devnull), lambda n: time.sleep(n / bytes_per_s))
    except StoreError as error:
        return str(error)
    except OSError as error:
        if isinstance(error, FileNotFoundError):  # another one was published meanwhile
            return None
        return f"{error.filename or store}: cannot be read ({error.strerror}): check the disk"
    if digest == current.sha256:
        return None
    return str(damaged(path, "its SHA-256 is not the one that CURRENT states"))
