"""How many alerts are open is said with when the rules were asked, and whether they could see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.alerts import listing
from app.alerts.life import Said
from app.alerts.listing import Known
from data.alerts import Evaluated
from data.site_alerts import AlertSettings
from tests.app.alerts.made import alert

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
NOT_SEEN = "cannot be judged: no job was recorded"
RULES = frozenset({"hang", "new_lemon"})


def known(*alerts: Any, asked: timedelta = timedelta(0), **blind: dict[str, str]) -> Known:
    at = (NOW - asked).isoformat(timespec="seconds")
    evaluated = Evaluated(at, 1, len(RULES), blind)
    return Known(tuple(alerts), Said({}), (), RULES, AlertSettings(), evaluated, NOW)


def short(now: Known, cluster: str | None = None) -> str:
    return listing.in_short(now, NOW, cluster)


def title(now: Known, cluster: str | None = None) -> str:
    return listing.answer(now, NOW, cluster).sentence


def test_no_alert_is_no_news_where_no_rule_could_see_anything() -> None:
    blind = {"hang": {"a": NOT_SEEN}, "new_lemon": {"a": NOT_SEEN}}
    assert short(known(**blind)) == "cannot be judged"
    assert short(known(hang={"a": NOT_SEEN})) == "0 open"
    assert (
        title(known(**blind)) == "0 alerts open; none of 2 rules finds the records that it needs."
    )
    assert short(known(alert(cluster="a"), **blind)) == "1 open", (
        "what is open is told all the same"
    )


def test_what_was_found_long_ago_is_told_with_its_time() -> None:
    old = known(asked=timedelta(days=9))
    assert short(old) == "0 open on 25 Apr 2026 12:00 UTC"
    assert title(old).startswith("0 alerts open on 25 Apr 2026 12:00 UTC; 2 rules have")
    assert short(known(asked=timedelta(hours=9))) == "0 open"


@pytest.mark.parametrize(("cluster", "see"), [("a", "1 of 2"), ("b", "2"), (None, "1 of 2")])
def test_rules_that_see_are_counted_in_the_cluster_that_is_chosen(
    cluster: str | None, see: str
) -> None:
    now = known(alert(cluster="a"), hang={"a": NOT_SEEN})
    n = "0 alerts" if cluster == "b" else "1 alert"
    assert title(now, cluster) == f"{n} open; {see} rules have the records that they need."
