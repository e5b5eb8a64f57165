"""The pages of the dashboard, in the order of its menu: each is named here alone."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page, whose view is views/<section>/<name>.py; the name stands in its address."""

    name: str
    title: str
    icon: str
    """Of Material Symbols."""


MENU: dict[str, tuple[Page, ...]] = {
    "Fleet": (
        Page("overview", "Overview", "dashboard"),
        Page("data", "Data", "database"),
    ),
    "Failures": (
        Page("failures", "Failures", "error"),
        Page("incidents", "Incidents", "bolt"),
        Page("incident", "Incident", "timeline"),
        Page("job", "Job", "work_history"),
        Page("node", "Node", "dns"),
    ),
    "Reliability": (Page("mttf", "MTTF", "timer"),),
    "Efficiency": (
        Page("my_runs", "My runs", "person"),
        Page("ettr", "ETTR", "speed"),
        Page("ledger", "Ledger", "balance"),
        Page("what_if", "What if", "alt_route"),
    ),
    "Nodes": (
        Page("lemons", "Lemons", "nutrition"),
        Page("machines", "Machines", "memory"),
        Page("links", "Links", "lan"),
        Page("repairs", "Repairs", "build"),
        Page("validation", "Validation", "checklist"),
    ),
    "Training": (Page("stragglers", "Stragglers", "hourglass_top"),),
    "Explore": (
        Page("find", "Find", "search"),
        Page("sql", "SQL", "code"),
        Page("reports", "Reports", "description"),
        Page("glossary", "Glossary", "menu_book"),
    ),
}
FIRST = "overview"
"""The page that the dashboard opens with."""
TITLES = {page.name: page.title for pages in MENU.values() for page in pages}


def view(section: str, page: Page) -> str:
    """The file of a page, from the folder of app.

    >>> view("Fleet", MENU["Fleet"][0])
    'views/fleet/overview.py'
    """
    return f"views/{section.lower()}/{page.name}.py"
