"""A period as the address of a page names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def custom_period(first: datetime, last: datetime) -> dict[str, str]:
    """The period between two times, in the zone that they stand in, to the minute.

    >>> from datetime import datetime
    >>> custom_period(datetime(2026, 1, 1, 12), datetime(2026, 1, 2))
    {'period': 'custom', 'from': '2026-01-01T12:00', 'to': '2026-01-02T00:00'}
    """
    return {"period": "custom", "from": f"{first:%Y-%m-%dT%H:%M}", "to": f"{last:%Y-%m-%dT%H:%M}"}
