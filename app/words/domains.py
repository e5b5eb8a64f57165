"""How the domains of failure are named, in the order in which they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.failures.cause_rates import CauseSeries

TITLES = {
    "hardware": "hardware",
    "system_software": "system software",
    "user": "user program",
    "unknown": "unknown",
}


def title(domain: str) -> str:
    """A domain in words."""
    return TITLES.get(domain, domain)


def series_title(series: CauseSeries, titles: Mapping[str, str]) -> str:
    """Title of a cause, or of the other causes of a domain together."""
    if series.cause is not None:
        return titles.get(series.cause, series.cause)
    return f"Other {title(series.domain)} ({numbers.counted(series.n_causes, 'cause')})"
