"""The kinds of reports there are: each module of this folder that states a KIND is one.

What it states is read without importing it, so that a command's help need not load what it asks.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.words.addresses import Dashboard
from app.words.periods import MARGIN
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from app.answers.fleet.actions.listed import Kept
    from app.reports.report import Report
    from data.store import Store


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
    weekly: bool = False
    """It is of a calendar week, the last whole one unless another period is asked for."""


@dataclass(frozen=True)
class Request:
    """What is asked of a report; `about` is the value of its kind's option."""

    selection: Selection
    about: str = ""
    conf_level: float = 0.90
    seed: int = 0
    timezone: str = "UTC"
    """Of the cluster, or of all clusters that are asked for."""
    now: datetime | None = None
    """When it is asked, for what is to be done now; the time of the clock where it is None."""
    beside: Kept | None = None
    """What people put off, and open alerts; None where that was not asked yet."""


@cache
def kinds() -> dict[str, Kind]:
    """Every kind by its name, which is that of its module."""
    return {
        path.stem: Kind(path.stem, **ast.literal_eval(stated))
        for path in sorted(Path(__file__).parent.glob("*.py"))
        for stated in _stated(path)
    }


def _stated(path: Path) -> Iterator[ast.expr]:
    """What a module states as its KIND, with or without a type."""
    for statement in ast.parse(path.read_text("utf-8")).body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="KIND")], value=stated)
                | ast.AnnAssign(target=ast.Name(id="KIND"), value=ast.expr() as stated)
            ):
                yield stated


def report(
    store: Store,
    /,
    kind: str,
    selection: Selection | None = None,
    *,
    redact: bool = False,
    **more: Any,
) -> Report:
    """A report of one kind; `more` are further fields of its `Request`.

    Filters choose what the fleet report counts; of a node its cluster and period hold, and an
    incident is told whole.
    """
    from app.answers.fleet.choices import unrecorded
    from app.ask import of_store, once
    from app.reports import redaction
    from app.reports.report import basis, without_records
    from data.queries import fleet

    names = redaction.names(store, redact=redact)
    chosen = selection or Selection()
    request = Request(chosen, timezone=fleet.zone(store, chosen.cluster), **more)
    ask = once(redaction.redacting(of_store(store), names))
    made: Report = import_module(f"app.reports.{kind}").report(ask, request, names)
    if kinds()[kind].filtered:
        during = made.during
        why = unrecorded(store, during.from_at, during.to_at, chosen.cluster)
        made = made if why is None else without_records(made, why)
    zones = {str(row.cluster): str(row.timezone) for row in fleet.clusters(store).itertuples()}
    made = replace(
        made, clusters=made.clusters or (*([chosen.cluster] if chosen.cluster else zones),)
    )
    return replace(
        made,
        synthetic=store.current.synthetic,
        basis=basis(store),
        dashboard=None if redact else _dashboard(store, made, request, zones),
    )


def _dashboard(
    store: Store, made: Report, request: Request, zones: dict[str, str]
) -> Dashboard | None:
    """Where what it shows is on the dashboard; a report without names leads nowhere.

    From an incident, which may last a moment, pages open with the days around it.
    """
    from data.site import load_site

    base, chosen = load_site(store.root).address, request.selection
    if not base:
        return None
    filters = {"partition": chosen.partition, "account": chosen.account}
    filters["cluster"] = made.clusters[0] if len(made.clusters) == 1 else None
    filters["min_gpus"] = str(chosen.min_gpus) if chosen.min_gpus else None
    named = {name: value for name, value in filters.items() if value is not None}
    during = made.during if kinds()[made.kind].filtered else made.during.widened(MARGIN)
    return Dashboard(base, during, named, zones)
