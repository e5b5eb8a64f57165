"""What pages cost, as a reader opens them: `python -m tests.benchmarks.pages STORE DEMO ROUNDS`."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.testing.v1 import AppTest

from app.ask import ahead
from app.ask.cached import opened
from app.cli import COLLECTED_AT
from app.server import ahead as server
from app.words import menu
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
NAMES = (
    "overview", "mttf", "trend", "availability", "failures", "incidents", "ledger", "ettr", "lemons",
    "planner", "data",
)  # fmt: skip
PERIODS: dict[str, dict[str, str]] = {
    "28 days": {},
    "90 days": {"period": "90d"},
    "all time": {"period": "all"},
}
FURTHER: dict[str, tuple[str, dict[str, str]]] = {
    "by rack": ("mttf", {"by": "rack"}),
    "by age of nodes": ("mttf", {"by": "node_age"}),
    "by account": ("ledger", {"ledger_tab": "By group", "group": "account"}),
    "lost work": ("ledger", {"ledger_tab": "Lost work"}),
    "ingests": ("data", {"data_tab": "Ingests"}),
}
"""What is opened on some pages, of all time."""
AGAIN = 3
"""How often a page is opened once it is cached: little is measured."""
EMPTY = 'import streamlit as st\nst.write("hello")\n'
Link = tuple[str, "Mapping[str, str]"]
"""A page and what its address says."""
_VIEWS = {page.name: menu.view(part, page) for part, pages in menu.MENU.items() for page in pages}


@dataclass(frozen=True)
class Opened:
    """Processor seconds of one page, and the memory that its process held at most meanwhile."""

    title: str
    period: str
    cold: float
    cached: float
    empty: float
    """Of an empty page, measured by turns with it."""
    peak_gb: float
    first: float | None = None
    """As `cold`, of a page that the server made ahead."""


def measured(store: Path, demo: Path, rounds: int) -> list[dict[str, object]]:
    """Each page with nothing cached and once more, by turns with an empty page."""
    links = {
        (menu.TITLES[name], period): (name, filters)
        for name in NAMES
        for period, filters in PERIODS.items()
    } | {
        (f"{menu.TITLES[name]}, {part}", "all time"): (name, {"period": "all"} | filters)
        for part, (name, filters) in FURTHER.items()
    }
    gc.set_threshold(*COLLECTED_AT)  # as the dashboard's server does
    os.environ["FAULTLINE_STORE"] = str(demo)
    for name in NAMES:  # libraries are loaded once a process
        _open(name, {})
    for name, filters in FURTHER.values():
        _open(name, filters)
    os.environ["FAULTLINE_STORE"] = str(store)
    pages = [(_opened(title, link, rounds), link) for title, link in links.items()]
    return [asdict(page) for page in _made_ahead(pages, rounds)]


def _made_ahead(pages: list[tuple[Opened, Link]], rounds: int) -> Iterator[Opened]:
    """The pages, those that the server makes ahead with what they cost their first reader."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ahead.FOLDER] = folder
        subprocess.run(
            [sys.executable, "-m", "app.server.ahead"],
            env=os.environ | {ahead.MAKES: "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        for page, (name, filters) in pages:
            made = name in server.PAGES and filters.get("period") in server.PERIODS
            if made and not filters.keys() - {"period"}:
                of_first = [_cold((name, filters), before=opened) for _ in range(rounds)]
                yield replace(page, first=median(of_first))
            else:
                yield page
        del os.environ[ahead.FOLDER]


def _cold(link: Link, before: Callable[[], None] = lambda: None) -> float:
    """Processor seconds of a page with nothing cached in this process but what is done before."""
    st.cache_data.clear()
    st.cache_resource.clear()
    gc.collect()
    before()
    return spent(lambda: _open(*link))


def _opened(title: tuple[str, str], link: Link, rounds: int) -> Opened:
    cold, cached, empty = [], [], []
    _forget_peak()
    for _ in range(rounds):
        cold.append(_cold(link))
        for _ in range(AGAIN):
            gc.collect()
            cached.append(spent(lambda: _open(*link)))
            empty.append(spent(_open_empty))
    return Opened(*title, median(cold), median(cached), median(empty), _peak_gb())


def _open(name: str, filters: Mapping[str, str]) -> None:
    """Draws a page as its link says.

    Raises
    ------
    RuntimeError
        Where the page shows an error.
    """
    test = AppTest.from_file(MAIN, default_timeout=600)
    for key, value in filters.items():
        test.query_params[key] = value
    if name != menu.FIRST:
        test.switch_page(_VIEWS[name])
    if shown := test.run().exception:
        raise RuntimeError(f"{name}: {shown}")


def _open_empty() -> None:
    AppTest.from_string(EMPTY).run()


def _forget_peak() -> None:
    """The highest memory so far is that of now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_gb() -> float:
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    return int(peak) / 2**20


if __name__ == "__main__":
    _, root, warm, often = sys.argv
    print("\n" + json.dumps(measured(Path(root), Path(warm), int(often))))
