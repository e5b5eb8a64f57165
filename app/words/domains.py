"""How the domains of failure are named, in the order in which they are shown."""

from __future__ import annotations

TITLES = {
    "hardware": "hardware",
    "system_software": "system software",
    "user": "user program",
    "unknown": "unknown",
}


def title(domain: str) -> str:
    """A domain in words."""
    return TITLES.get(domain, domain)
