"""The kinds of reports there are: each module of this folder that states a KIND is one.

What it states is read without importing it, so that a command's help need not load what it asks.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from data.filters import Selection

if TYPE_CHECKING:
    from app.reports.report import Report
    from data.store import Store

_STATED = re.compile(r"^KIND = (\{.*?\})$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Kind:
    """What a report is about, as its module states it."""

    name: str
    metavar: str = ""
    """Of the option that names what it is about; empty where that is the whole fleet."""
    help: str = ""
    """Of that option."""
    where: str = ""
    """Where its value is found."""
    placeholder: str = ""
    """In the page's empty box, with what is said below it, and commands that list values."""
    remedy: str = ""
    commands: tuple[str, ...] = ()
    filtered: bool = True
    """Whether the filters change what it says."""
    needs_ledger: bool = False


@dataclass(frozen=True)
class Request:
    """What is asked of a report; `about` is the value of its kind's option."""

    selection: Selection
    about: str = ""
    conf_level: float = 0.90
    seed: int = 0


@cache
def kinds() -> dict[str, Kind]:
    """Every kind by its name, which is that of its module."""
    stated = {
        path.stem: _STATED.search(path.read_text("utf-8"))
        for path in sorted(Path(__file__).parent.glob("*.py"))
    }
    return {name: Kind(name, **ast.literal_eval(said[1])) for name, said in stated.items() if said}


def report(
    store: Store,
    kind: str,
    selection: Selection | None = None,
    *,
    about: str = "",
    redact: bool = False,
    conf_level: float = 0.90,
    seed: int = 0,
) -> Report:
    """A report of one kind, about what its option names.

    Filters choose what the fleet report counts; of a node its cluster and period hold, and an
    incident is told whole.
    """
    from app.ask import of_store, once
    from app.reports import redaction
    from app.reports.report import basis

    names = redaction.names(store, redact=redact)
    request = Request(selection or Selection(), about, conf_level, seed)
    ask = once(redaction.redacting(of_store(store), names))
    made: Report = import_module(f"app.reports.{kind}").report(ask, request, names)
    return replace(made, synthetic=store.current.synthetic, basis=basis(store))
