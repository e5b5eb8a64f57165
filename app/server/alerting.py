"""The rules of alerts, asked while the dashboard runs: at each new snapshot, and as time passes.

Where no ingest comes any more nobody else would notice: a source falls silent, an alert waits too
long, a mute ends, a receiver answers again.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from data.current import read_current
from data.errors import DataError

FIRST_AFTER_S, LOOK_S = 10.0, 5.0
"""When the store is first looked at, and how often it is afterwards."""
EVERY_S = 600.0
"""How long at most nobody asks the rules."""
LONGEST_S = 300.0
ROOT = Path(__file__).resolve().parents[2]


def begin(
    store: Path,
    *,
    first_after_s: float = FIRST_AFTER_S,
    look_s: float = LOOK_S,
    every_s: float = EVERY_S,
) -> threading.Thread:
    """Asks the rules from now on, as long as this process runs.

    A process of its own does, so that no page waits for it; if one is asking already it waits for
    the lock of the store.
    """
    asking = Asking(store)
    atexit.register(asking.end)

    def look() -> None:
        time.sleep(first_after_s)
        asked, asked_at = None, 0.0
        while True:
            now = snapshot(store)
            if now is not None and (now != asked or time.monotonic() - asked_at >= every_s):
                asked, asked_at = now, time.monotonic()
                if (told := asking.ask()) is not None:
                    logging.getLogger(__name__).warning("alerts: %s", told)
            time.sleep(look_s)

    thread = threading.Thread(target=look, daemon=True, name="alerts")
    thread.start()
    return thread


def snapshot(store: Path) -> int | None:
    """What is published; None where nothing is, or the store cannot be read."""
    try:
        current = read_current(store)
    except (OSError, DataError):
        return None
    return None if current is None else current.snapshot


class Asking:
    """The process that asks."""

    def __init__(self, store: Path) -> None:
        self.command = [
            *(sys.executable, "-m", "app.cli", "check", "--store", str(store), "--format", "json"),
        ]
        self.process: subprocess.Popen[str] | None = None

    def ask(self) -> str | None:
        """Why the rules could not be asked; None where they were."""
        try:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            _, told = self.process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            self.end()
            return f"the rules took longer than {LONGEST_S:g} s and were given up"
        except OSError as error:
            return str(error)
        lines = told.strip().splitlines()
        failed = self.process.returncode != 0
        return (lines or [f"ended with {self.process.returncode}"])[-1] if failed else None

    def end(self) -> None:
        """Gives up what is being asked."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
