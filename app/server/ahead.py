"""What the first reader of a new snapshot will ask, made before they come.

A process of the lowest priority opens the pages that people open first, as a reader would who
chose nothing, and leaves what it was told in files. It starts over where the next snapshot comes,
or people say something that answers rest on.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from app.ask import ahead
from app.words import menu
from data.current import read_current
from data.errors import DataError
from data.site_file import site_version
from data.state import State

SCRIPT = Path(__file__).resolve().parents[1] / "main.py"
PAGES = ("overview", "mttf", "failures", "incidents")
PERIODS = (None, "90d", "all")
"""None is the period of who chose nothing; longer ones follow, as they take longest."""
FIRST_AFTER_S, EVERY_S = 5.0, 2.0
"""When what is there is first looked at, and how often it is afterwards."""
LONGEST_S = 600.0
LOWEST = 19
"""Of the priorities of Linux."""


@dataclass
class Maker:
    """The process, and the folder that it fills."""

    store: Path
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start_over(self) -> None:
        """Makes what is asked for now, and nothing else any more."""
        self.end()
        for file in self.folder.iterdir():
            file.unlink()
        where = {
            "FAULTLINE_STORE": str(self.store),
            ahead.FOLDER: str(self.folder),
            ahead.MAKES: "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.server.ahead"],
            cwd=SCRIPT.parents[1],
            env=os.environ | where,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        """Gives up what is being made."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def begin(
    store: Path, *, first_after_s: float = FIRST_AFTER_S, every_s: float = EVERY_S
) -> threading.Thread:
    """Makes ahead from now on, as long as this process runs; its readers find what was made."""
    folder = tempfile.TemporaryDirectory(prefix="faultline-ahead-")
    os.environ[ahead.FOLDER] = folder.name
    maker = Maker(store, Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(maker.end)

    def look() -> None:
        time.sleep(first_after_s)
        # Here: Streamlit's caches ask for the server that runs.
        from app.ask.cached import closed, opened

        atexit.register(closed)
        made = None
        while True:
            now = standing(store)
            if now is not None and now != made:
                made = now
                try:
                    maker.start_over()
                    opened()
                except (OSError, DataError) as error:
                    logging.getLogger(__name__).warning("pages are not made ahead: %s", error)
            time.sleep(every_s)

    thread = threading.Thread(target=look, daemon=True, name="pages ahead")
    thread.start()
    return thread


def standing(store: Path) -> tuple[int, str, str] | None:
    """Snapshot, what people said and site.toml; None where nothing is published, or the store
    cannot be read."""
    try:
        current, said = read_current(store), State(store).version_of_answers()
        return None if current is None else (current.snapshot, said, site_version(store))
    except (OSError, DataError):
        return None


def make() -> None:
    """Opens the pages one after the other; what they ask is left in files."""
    os.nice(LOWEST)
    from streamlit.testing.v1 import AppTest

    views = {
        entry.name: menu.view(section, entry)
        for section, entries in menu.MENU.items()
        for entry in entries
    }
    for period in PERIODS:
        for page in PAGES:
            opened = AppTest.from_file(SCRIPT, default_timeout=LONGEST_S).switch_page(views[page])
            if period is not None:
                opened.query_params["period"] = period
            opened.run()


if __name__ == "__main__":
    make()
