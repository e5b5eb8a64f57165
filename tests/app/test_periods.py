"""Whole weeks and months have names, in the zone in which they are whole."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from app.words.periods import LONGEST_NAME, Period, file_stem

BERLIN = "Europe/Berlin"
CASES = {
    "a week of one month": ("2026-11-16", "2026-11-23", "UTC",
                            "Week 47, 16-22 November 2026 (UTC)", "2026-W47"),
    "a week of two months": ("2026-03-30", "2026-04-06", "UTC",
                             "Week 14, 30 March to 5 April 2026 (UTC)", "2026-W14"),
    "a week of two years": ("2025-12-29", "2026-01-05", "UTC",
                            "Week 1, 29 December 2025 to 4 January 2026 (UTC)", "2026-W01"),
    "a week that is of the year before": ("2026-12-28", "2027-01-04", "UTC",
                                          "Week 53, 28 December 2026 to 3 January 2027 (UTC)",
                                          "2026-W53"),
    "a week in which the clock changes": ("2026-03-23", "2026-03-30", BERLIN,
                                          "Week 13, 23-29 March 2026 (Europe/Berlin)", "2026-W13"),
    "a month": ("2026-12-01", "2027-01-01", BERLIN, "December 2026 (Europe/Berlin)", "2026-12"),
    "a February that begins on a Monday": ("2027-02-01", "2027-03-01", "UTC",
                                           "February 2027 (UTC)", "2027-02"),
    "seven days from a Tuesday": ("2026-11-17", "2026-11-24", "UTC",
                                  "17 Nov 2026 00:00 to 24 Nov 2026 00:00 UTC",
                                  "2026-11-17-to-2026-11-23"),
    "two weeks": ("2026-11-09", "2026-11-23", "UTC",
                  "9 Nov 2026 00:00 to 23 Nov 2026 00:00 UTC", "2026-11-09-to-2026-11-22"),
    "hours": ("2026-11-16T07:00", "2026-11-16T19:30", BERLIN,
              "16 Nov 2026 06:00 to 16 Nov 2026 18:30 UTC", "2026-11-16"),
    "no end": ("2026-11-16", None, "UTC", "from 16 Nov 2026 00:00 UTC on", "from-2026-11-16"),
    "no begin": (None, "2026-11-16", "UTC", "until 16 Nov 2026 00:00 UTC", "until-2026-11-15"),
    "no time at all": (None, None, BERLIN, "all time", "all-time"),
}  # fmt: skip


def _at(text: str | None, zone: str) -> datetime | None:
    if text is None:
        return None
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize("name", CASES)
def test_a_period_is_called_what_it_is(name: str) -> None:
    begin, end, zone, words, file_part = CASES[name]
    period = Period(_at(begin, zone), _at(end, zone), zone)
    assert (period.words, period.file_part) == (words, file_part)


def test_a_week_of_utc_is_called_so_where_the_cluster_is_elsewhere() -> None:
    week = Period(_at("2026-11-16", "UTC"), _at("2026-11-23", "UTC"), "Asia/Tokyo")
    assert week.words == "Week 47, 16-22 November 2026 (UTC)"
    assert week.file_part == "2026-W47"


@pytest.mark.parametrize(
    "what", ["node-../../etc/passwd", "node-a b\n", "node-内存", "node-" + "x" * 999]
)
def test_a_name_of_a_file_holds_nothing_that_a_system_minds(what: str) -> None:
    stem = file_stem(what, Period(None, None), ["C/..\\:*?"], synthetic=False)
    assert stem.startswith("faultline-C-")
    assert not set(stem) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    assert len(stem) <= len("faultline--all-time-") + 2 * LONGEST_NAME


@pytest.mark.parametrize("clusters", [("a b", "a/b"), ("\u6771", "\u5927"), ("x" * 99, "x" * 98)])
def test_two_clusters_never_share_a_file(clusters: tuple[str, str]) -> None:
    stems = {file_stem("monday", Period(None, None), [each], synthetic=False) for each in clusters}
    assert len(stems) == 2
