"""The pages of the dashboard, in the order of its menu: each is named here alone."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page, whose view is views/<section>/<name>.py; the name stands in its address."""

    name: str
    title: str
    icon: str
    """Of Material Symbols."""
    listed: bool = True
    """In the menu; a page about one thing is reached from every mention of it."""


MENU: dict[str, tuple[Page, ...]] = {
    "Fleet": (
        Page("overview", "Overview", "dashboard"),
        Page("alerts", "Alerts", "notifications"),
        Page("data", "Data", "database"),
    ),
    "Failures": (
        Page("failures", "Failures", "error"),
        Page("incidents", "Incidents", "bolt"),
        Page("incident", "Incident", "timeline", listed=False),
        Page("job", "Job", "work_history", listed=False),
        Page("node", "Node", "dns", listed=False),
    ),
    "Reliability": (
        Page("mttf", "MTTF", "timer"),
        Page("trend", "Trend", "trending_up"),
        Page("availability", "Availability", "percent"),
    ),
    "Efficiency": (
        Page("ettr", "ETTR", "speed"),
        Page("ledger", "Ledger", "balance"),
        Page("my_runs", "My runs", "person"),
    ),
    "Recovery": (Page("planner", "Planner", "alt_route"),),
    "Nodes": (
        Page("lemons", "Lemons", "nutrition"),
        Page("diagnose", "Diagnose", "troubleshoot"),
    ),
    "Training": (
        Page("runs", "Runs", "show_chart"),
        Page("stragglers", "Stragglers", "hourglass_top"),
    ),
    "Explore": (
        Page("find", "Find", "search", listed=False),
        Page("sql", "SQL", "code"),
        Page("reports", "Reports", "description"),
        Page("glossary", "Glossary", "menu_book"),
    ),
}
FIRST = "overview"
"""The page that the dashboard opens with."""
TITLES = {page.name: page.title for pages in MENU.values() for page in pages}
MOVED: dict[str, tuple[str, dict[str, str]]] = {
    "what_if": ("planner", {}),
    "repairs": ("lemons", {"lemons_tab": "Repairs"}),
    "validation": ("lemons", {"lemons_tab": "Validation"}),
    "machines": ("diagnose", {"diagnose_tab": "Machines"}),
    "links": ("diagnose", {"diagnose_tab": "Links"}),
}
"""Pages that are tabs of another now: links to them lead there."""


def view(section: str, page: Page) -> str:
    """The file of a page, from the folder of app.

    >>> view("Fleet", MENU["Fleet"][0])
    'views/fleet/overview.py'
    """
    return f"views/{section.lower()}/{page.name}.py"
