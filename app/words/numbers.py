"""How numbers, durations and times are written: in figures, tables, sentences and reports.

Thousands are separated, values have three significant digits, unknown is a word. Nothing here
knows Streamlit.
"""

from __future__ import annotations

import math
from datetime import time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from app.words import moments

if TYPE_CHECKING:
    from datetime import date, datetime

    from analytics.estimate import Estimate

UNKNOWN = "unknown"
MIDNIGHT, ONE_DAY = time(), timedelta(days=1)
DIGITS = 3
LEAST_WRITTEN_OUT = 1e-6
"""Below it a number has an exponent."""
NOISE = 1e-9
"""What a share that adds up to all may lack by rounding."""
UNITS = (
    # upper limit in hours, hours of one unit, name
    (1 / 60, 1 / 3600, "s"),
    (1.0, 1 / 60, "min"),
    (48.0, 1.0, "h"),
    (2 * 8766.0, 24.0, "d"),
    (math.inf, 8766.0, "years"),
)


def count(value: float | None) -> str:
    """A whole number, thousands separated; a small value is never written as 0.

    >>> count(12345), count(0.2), count(None)
    ('12,345', '0.200', 'unknown')
    """
    if value is None or _is_unknown(value):
        return UNKNOWN
    return number(value) if 0 < abs(value) <= 0.5 else f"{value:,.0f}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "failure"), counted(1200, "failure"), counted(2, "class", "classes")
    ('1 failure', '1,200 failures', '2 classes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def gpu_count(n: float | None) -> str:
    """A number of GPUs, known or not.

    >>> gpu_count(8), gpu_count(None), gpu_count(math.nan)
    ('8 GPUs', 'GPUs unknown', 'GPUs unknown')
    """
    return "GPUs unknown" if n is None or math.isnan(n) else counted(int(n), "GPU")


def number(value: float | None) -> str:
    """A measured value with three significant digits.

    >>> number(6.5), number(0.22537), number(28846.2), number(0.0), number(None)
    ('6.50', '0.225', '28,800', '0', 'unknown')
    >>> number(2.84e-16)  # digits that nobody counts
    '2.84e-16'
    """
    if value is None or _is_unknown(value):
        return UNKNOWN
    if value == 0:
        return "0"
    if abs(value) < LEAST_WRITTEN_OUT:
        return f"{value:.{DIGITS - 1}e}"
    kept = rounded(value)
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(kept))))
    return f"{kept:,.{decimals}f}"


def few(value: float | None) -> str:
    """A small number beside a count: one digit is enough.

    >>> few(0.498), few(3.21), few(None)
    ('0.5', '3', 'unknown')
    """
    return UNKNOWN if value is None or _is_unknown(value) else f"{value:.1g}"


def rounded(value: float) -> float:
    """A value with three significant digits.

    >>> rounded(28846.2)
    28800.0
    """
    return float(f"{value:.{DIGITS - 1}e}")


def percent(ratio: float | None, *, signed: bool = False) -> str:
    """A ratio as percentage; what falls short of all is never rounded up to it.

    >>> percent(0.9), percent(0.1234, signed=True), percent(0.99981), percent(1.0)
    ('90 %', '+12.3 %', '99.98 %', '100 %')
    >>> percent(12.5), percent(1e-7), percent(1.0 - 1e-16)
    ('1,250 %', '0.0000100 %', '100 %')
    """
    kept = percents(ratio)
    if ratio is None or kept is None:
        return UNKNOWN
    text = f"{kept:.{DIGITS}g}" if 1e-4 <= abs(kept) < 1000 else number(kept)
    text = str(kept) if text == "100" and kept < 100.0 else text
    return f"{'+' if signed and ratio > 0 else ''}{text} %"


def percents(ratio: float | None) -> float | None:
    """A ratio in percent, with the digits that `percent` writes.

    >>> percents(0.12345), percents(0.99981), percents(1.0), percents(None)
    (12.3, 99.98, 100.0, None)
    """
    if ratio is None or _is_unknown(ratio):
        return None
    kept = rounded(100 * ratio) + 0.0
    if kept == 100 and 1.0 - ratio > NOISE:
        return round(100 * ratio, math.ceil(-math.log10(100 * (1 - ratio))))
    return kept


def percent_interval(share: Estimate) -> str:
    """The interval of a share.

    >>> from analytics.estimate import Estimate
    >>> percent_interval(Estimate(0.5, 0.4, 0.6, 0.9, 100))
    '40 % to 60 %'
    >>> percent_interval(Estimate(0.5, 0.4, None, 0.9, 3))
    'at least 40 %'
    """
    if share.lower is None:
        return UNKNOWN if share.upper is None else f"at most {percent(share.upper)}"
    if share.upper is None:
        return f"at least {percent(share.lower)}"
    return f"{percent(share.lower)} to {percent(share.upper)}"


def decimals(ratio: float | None) -> str:
    """A ratio with three decimals, as ETTR is written.

    >>> decimals(0.9), decimals(-0.0001), decimals(None)
    ('0.900', '0.000', 'unknown')
    """
    return UNKNOWN if ratio is None or _is_unknown(ratio) else f"{ratio:z.{DIGITS}f}"


def decimals_interval(ratio: Estimate) -> str:
    """The interval of a ratio, with three decimals.

    >>> from analytics.estimate import Estimate
    >>> decimals_interval(Estimate(0.9, 0.85, 0.93, 0.9, 40))
    '0.850 to 0.930'
    """
    if ratio.lower is None or ratio.upper is None:
        return UNKNOWN
    return f"{decimals(ratio.lower)} to {decimals(ratio.upper)}"


def duration(hours: float | None) -> str:
    """A duration in the unit that suits it.

    >>> duration(0.2254), duration(14.23), duration(153.8), duration(40000), duration(None)
    ('13.5 min', '14.2 h', '6.41 d', '4.56 years', 'unknown')
    """
    if hours is None or _is_unknown(hours):
        return UNKNOWN
    size, name = _unit(hours)
    return f"{number(hours / size)} {name}"


def interval(estimate: Estimate) -> str:
    """The interval of a value in its own unit, without the level.

    >>> from analytics.estimate import Estimate
    >>> interval(Estimate(6.5, 5.8, 7.3, 0.9, 100)), interval(Estimate(0.0, 0.0, 2.996, 0.9, 0))
    ('5.80 to 7.30', 'at most 3.00')
    >>> interval(Estimate(150.0, None, 480.0, 0.9, 100))
    'at most 480'
    """
    return _between(estimate, number(estimate.lower), number(estimate.upper))


def spread(estimate: Estimate) -> str:
    """Both bounds of a value in its own unit, or how near they are where three digits do not tell
    them apart; empty where records fix it.

    >>> from analytics.estimate import Estimate
    >>> spread(Estimate(1300.0, 1250.0, 1434.0, 0.9, 14)), spread(Estimate(5.0, 5.0, 5.0, 0.9, 0))
    ('1,250 to 1,430', '')
    >>> spread(Estimate(1_067_800.0, 1_067_300.0, 1_068_100.0, 0.9, 14))
    '± 0.05 %'
    """
    if not estimate.has_width:
        return ""
    value, lower, upper = estimate.value, estimate.lower or 0.0, estimate.upper or 0.0
    if value and number(lower) == number(upper):
        return f"± {100 * max(abs(lower / value - 1.0), abs(upper / value - 1.0)):.1g} %"
    return bounds(estimate)


def bounds(estimate: Estimate) -> str:
    """Both bounds, where they stand for the value; empty where records fix it.

    >>> from analytics.estimate import Estimate
    >>> bounds(Estimate(3.0, 0.0, 14_702.0, 0.9, 0))
    '0 to 14,700'
    """
    return f"{number(estimate.lower)} to {number(estimate.upper)}" if estimate.has_width else ""


def duration_interval(estimate: Estimate) -> str:
    """The interval of a duration in hours, in the unit of its value.

    >>> from analytics.estimate import Estimate
    >>> duration_interval(Estimate(14.2, 11.1, 72.0, 0.9, 100))
    '11.1 to 72.0 h'
    >>> duration_interval(Estimate(None, 50.0, None, 0.9, 0))
    'at least 2.08 d'
    """
    reference = estimate.value or estimate.lower or estimate.upper
    if reference is None:
        return UNKNOWN
    size, name = _unit(reference)
    bounds = (None if b is None else b / size for b in (estimate.lower, estimate.upper))
    return f"{_between(estimate, *(number(bound) for bound in bounds))} {name}"


def moment(at: datetime | None, timezone: str) -> str:
    """A time in a zone, to the minute.

    >>> from datetime import datetime, UTC
    >>> moment(datetime(2026, 11, 12, 13, 5, tzinfo=UTC), "Europe/Berlin")
    '12 Nov 2026 14:05 CET'
    """
    if at is None:
        return UNKNOWN
    local = at.astimezone(ZoneInfo(timezone))
    return f"{moments.minute(local)} {local.tzname()}"


def day(at: date) -> str:
    """A day.

    >>> from datetime import datetime
    >>> day(datetime(2026, 11, 2))
    '2 Nov 2026'
    """
    return f"{at:{moments.DAY}}"


def period(from_at: datetime | None, to_at: datetime | None, timezone: str) -> str:
    """A period by its days; the end is exclusive, None on either side is open.

    >>> from datetime import datetime, UTC
    >>> begin, end = datetime(2026, 10, 15, tzinfo=UTC), datetime(2026, 11, 12, tzinfo=UTC)
    >>> period(begin, end, "UTC"), period(begin, None, "UTC")
    ('15 Oct 2026 00:00 to 12 Nov 2026 00:00 UTC', 'from 15 Oct 2026 00:00 UTC on')
    >>> period(None, end, "UTC"), period(None, None, "UTC")
    ('until 12 Nov 2026 00:00 UTC', 'all time')
    """
    zone = ZoneInfo(timezone)
    ends = [None if at is None else at.astimezone(zone) for at in (from_at, to_at)]
    first, last = (None if at is None else moments.minute(at) for at in ends)
    named = next((at.tzname() for at in reversed(ends) if at is not None), None)
    if first is None:
        return "all time" if last is None else f"until {last} {named}"
    return f"from {first} {named} on" if last is None else f"{first} to {last} {named}"


def days(from_at: datetime | None, to_at: datetime | None, timezone: str) -> str:
    """A period by its first and last day, where it begins and ends with one; else as `period`.

    >>> from datetime import datetime, UTC
    >>> begin, end = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    >>> days(begin, end, "UTC"), days(None, None, "UTC")
    ('February 2026', 'all time')
    >>> days(begin, end, "Asia/Tokyo")
    '1 Feb 2026 09:00 to 1 Mar 2026 09:00 JST'
    """
    if from_at is None or to_at is None:
        return period(from_at, to_at, timezone)
    first, end = (at.astimezone(ZoneInfo(timezone)) for at in (from_at, to_at))
    if first.time() != MIDNIGHT or end.time() != MIDNIGHT:
        return period(from_at, to_at, timezone)
    last = end - ONE_DAY
    if first.day == 1 and end.day == 1 and (first.year, first.month) == (last.year, last.month):
        return f"{first:{moments.MONTH}}"
    return day(first) if first.date() == last.date() else f"{day(first)} to {day(last)}"


def gpus(gpus_from: int, gpus_to: int) -> str:
    """A class of job sizes.

    >>> gpus(1, 1), gpus(1025, 2048)
    ('1 GPU', '1,025 to 2,048 GPUs')
    """
    return "1 GPU" if gpus_to == 1 else f"{gpus_from:,} to {gpus_to:,} GPUs"


def job_size(label: str) -> str:
    """A class of job sizes by its label, as the ledger and runs name it.

    >>> job_size("1"), job_size("1025-2048")
    ('1 GPU', '1,025 to 2,048 GPUs')
    """
    first, _, last = label.partition("-")
    return gpus(int(first), int(last or first))


def nodes(nodes_from: int, nodes_to: int) -> str:
    """A class of sizes in nodes.

    >>> nodes(1, 1), nodes(2, 2), nodes(1025, 2048)
    ('1 node', '2 nodes', '1,025 to 2,048 nodes')
    """
    if nodes_from == nodes_to:
        return counted(nodes_to, "node")
    return f"{nodes_from:,} to {nodes_to:,} nodes"


def level(estimate: Estimate) -> str:
    """The level of an interval; with no event its one bound is one-sided. A range may be assumed.

    >>> from analytics.estimate import Estimate
    >>> level(Estimate(6.5, 5.8, 7.3, 0.9, 100)), level(Estimate(0.0, 0.0, 2.996, 0.9, 0))
    ('90 %', 'one-sided 95 %')
    >>> level(Estimate(6.5, 1.0, 9.0, None, 100))
    'assumed range'
    """
    if estimate.conf_level is None:
        return "assumed range"
    if estimate.n:
        return percent(estimate.conf_level)
    return f"one-sided {percent((1.0 + estimate.conf_level) / 2.0)}"


def _between(estimate: Estimate, lower: str, upper: str) -> str:
    """Both bounds, or the one that exists and means something."""
    if estimate.lower is None and estimate.upper is None:
        return UNKNOWN
    if estimate.upper is None:
        return f"at least {lower}"
    if estimate.lower is None or (estimate.n == 0 and not estimate.lower):
        return f"at most {upper}"
    return f"{lower} to {upper}"


def _unit(hours: float) -> tuple[float, str]:
    return next((size, name) for limit, size, name in UNITS if abs(hours) < limit)


def _is_unknown(value: float | None) -> bool:
    return value is None or not math.isfinite(value)
