"""The one form of dates and times: 2 Nov 2026 14:05, in text, axes, grids and sheets.

Times that a program reads (JSON, CSV, addresses, options of commands) are ISO 8601 instead. What is
in words with its zone is in `app.words.numbers`: `moment`, `day`, `period`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

Precision = Literal["day", "time", "second"]

DAY = "%-d %b %Y"
MONTH = "%B %Y"
MINUTE = f"{DAY} %H:%M"
SECOND = f"{MINUTE}:%S"
"""As strftime and Plotly (d3) read them."""
FORMS: dict[Precision, str] = {"day": DAY, "time": MINUTE, "second": SECOND}
GRID: dict[Precision, str] = {
    "day": "D MMM YYYY",
    "time": "D MMM YYYY HH:mm",
    "second": "D MMM YYYY HH:mm:ss",
}
"""As grids of the dashboard read them."""
SHEET: dict[Precision, str] = {
    "day": "d mmm yyyy",
    "time": "d mmm yyyy hh:mm:ss",
    "second": "d mmm yyyy hh:mm:ss",
}
"""As workbooks read them, which hold times to the second."""
TICK_MONTH = "%b\n%Y"
TICK_DAY = "%-d %b\n%Y"
TICK_MINUTE = "%H:%M\n%-d %b %Y"
TICK_SECOND = "%H:%M:%S\n%-d %b %Y"
"""On axes, over two lines: an axis says the second line only where it changes."""


def minute(at: datetime) -> str:
    """A time to the minute, in the zone that it stands in.

    >>> from datetime import datetime
    >>> minute(datetime(2026, 11, 2, 14, 5))
    '2 Nov 2026 14:05'
    """
    return f"{at:{MINUTE}}"


def second(at: datetime) -> str:
    """A time to the second, in the zone that it stands in.

    >>> from datetime import datetime
    >>> second(datetime(2026, 11, 2, 14, 5, 9))
    '2 Nov 2026 14:05:09'
    """
    return f"{at:{SECOND}}"
