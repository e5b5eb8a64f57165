"""Sources that stopped: only what was regular, and only where others go on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analytics.fleet.coverage import coverage, silent_sources

NONE = pd.DataFrame({"cluster": [], "source": [], "n_rows": []})


def _days(source: str, days: list[int], cluster: str = "c") -> pd.DataFrame:
    at = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(days, unit="D")
    return pd.DataFrame({"cluster": cluster, "source": source, "day": at, "n_rows": 1})


def _silent(*days: pd.DataFrame, collected: pd.DataFrame | None = None) -> list[tuple[str, float]]:
    known = coverage(pd.concat(days), NONE, expected=(), collected=collected)
    found = silent_sources(known)
    return list(zip(found["source"], found["days_silent"], strict=True))


def test_a_daily_source_that_ends_before_the_others_is_told() -> None:
    jobs = _days("jobs", list(range(20)))
    assert _silent(jobs, _days("kernel", list(range(12)))) == [("kernel", 8.0)]


def test_a_rare_a_young_and_a_late_source_are_not() -> None:
    jobs = _days("jobs", list(range(20)))
    rare = _days("tickets", [0, 6, 12])
    young = _days("dcgm", [0, 1, 2])
    late = _days("checks", list(range(19)))
    assert _silent(jobs, rare, young, late) == []


def test_quiet_days_that_were_collected_are_no_silence() -> None:
    jobs, kernel = _days("jobs", list(range(20))), _days("kernel", list(range(12)))
    asked = _days("kernel", list(range(20))).drop(columns="n_rows")
    assert _silent(jobs, kernel, collected=asked) == []
    asked_less = _days("kernel", list(range(15))).drop(columns="n_rows")
    assert _silent(jobs, kernel, collected=asked_less) == [("kernel", 5.0)]


def test_each_cluster_has_its_own_end_and_nothing_is_silent_where_nothing_is_known() -> None:
    ended = pd.concat([_days(name, list(range(5)), "old") for name in ("jobs", "kernel")])
    assert _silent(ended, _days("jobs", list(range(40)))) == []
    nothing = coverage(_days("jobs", [0]), NONE, expected=())
    assert silent_sources(replace(nothing, sources=nothing.sources.head(0))).empty
