"""Who is told what: by severity, cluster, rule, escalation and end; with names or without."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.alerts.messages import made
from app.alerts.out import webhook
from app.reports.redaction import Hidden, Names, Pseudonyms
from data.queries.targets import People
from data.site import load_site
from data.site_alerts import KINDS, Receiver
from tests.app.alerts.made import RULES, alert, site

ESCALATED = alert(escalated_at="2026-03-01T16:00:00+00:00")
RESOLVED = alert(resolved_at="2026-03-02T00:00:00+00:00")
HOOK = Receiver("team", address="http://h")


def told(event: Any, about: Any, *receivers: Receiver, **more: Any) -> list[str]:
    found = made(about, event, site(*receivers), RULES, Names, **more)
    return [one.receiver for one in found]


WANTS = {
    "all": ({}, True),
    "critical alone": ({"severity": "critical"}, False),
    "its cluster": ({"clusters": ("c", "d")}, True),
    "another cluster": ({"clusters": ("d",)}, False),
    "its rule": ({"rules": ("hang", "new_lemon")}, True),
    "another rule": ({"rules": ("hang",)}, False),
    "escalation": ({"escalation": True}, False),
}


@pytest.mark.parametrize("case", WANTS.values(), ids=WANTS)
def test_a_receiver_gets_what_it_wants(case: tuple[dict[str, Any], bool]) -> None:
    stated, wanted = case
    assert told("opened", alert(), replace(HOOK, **stated)) == ["team"] * wanted


def test_an_alert_that_waits_goes_to_the_second_receiver_alone() -> None:
    second = replace(HOOK, name="lead", escalation=True)
    assert told("escalated", ESCALATED, HOOK, second) == ["lead"]


def test_an_end_is_told_to_those_who_were_told_of_the_beginning() -> None:
    other = replace(HOOK, name="other")
    earlier = made(alert(), "opened", site(HOOK), RULES, Names)
    both = site(HOOK, other)
    assert [
        one.receiver for one in made(RESOLVED, "resolved", both, RULES, Names, earlier=earlier)
    ] == ["team"]
    quiet = replace(HOOK, resolved=False)
    assert told("resolved", RESOLVED, quiet, earlier=earlier) == []
    failed = [replace(earlier[0], outcome="given up")]
    assert told("resolved", RESOLVED, HOOK, earlier=failed) == []


def test_an_alert_that_grew_graver_is_told_to_those_who_had_not_heard_and_keeps_its_labels() -> (
    None
):
    grave = replace(HOOK, name="pager", severity="critical")
    where = site(HOOK, grave)
    earlier = made(alert(), "opened", where, RULES, Names)
    graver = alert(severity="critical", resolved_at=RESOLVED.resolved_at)
    assert told("opened", graver, HOOK, grave, earlier=earlier) == ["pager"]
    (end,) = made(graver, "resolved", where, RULES, Names, earlier=earlier)
    assert end.message["labels"] == earlier[0].message["labels"]
    assert end.message["severity"] == "critical"


def test_made_anew_a_message_is_the_same() -> None:
    first, again, other = (
        made(alert(name), "opened", site(HOOK), RULES, Names)[0] for name in ("a1", "a1", "a2")
    )
    assert (first.delivery_id, first.message) == (again.delivery_id, again.message)
    assert first.delivery_id != other.delivery_id


def test_without_the_address_of_the_dashboard_there_is_no_link() -> None:
    (one,) = made(alert(), "opened", site(HOOK, address=""), RULES, Names)
    assert one.message["link"] is None


def test_a_rule_that_is_gone_is_told_by_its_name() -> None:
    (one,) = made(alert(rules=("old_rule",)), "opened", site(HOOK), {}, Names)
    assert (one.message["title"], one.message["means"]) == ("Old rule", "")


def pseudonyms() -> Names:
    people = People(frozenset({"ann"}), frozenset({"physics"}), frozenset({"pretrain"}))
    return Pseudonyms(Hidden(people, b"key"))


def test_a_receiver_without_names_gets_pseudonyms_and_a_link_that_names_nobody() -> None:
    about = alert(
        sentence="pretrain of ann diverges", page="my_runs", owner="ann",
        named={"user": "ann", "run": "physics/pretrain", "node": "n7"},
    )  # fmt: skip
    where = site(HOOK, replace(HOOK, name="outside", redact=True))
    plain, hidden = made(about, "opened", where, RULES, pseudonyms)
    assert plain.message["sentence"] == "pretrain of ann diverges"
    for name in ("ann", "physics", "pretrain"):
        assert name not in str({**hidden.message, "labels": 0})
    assert hidden.message["owner"] == pseudonyms().user("ann")
    assert plain.message["target"] == about.target
    assert hidden.message["target"] is None, "a hash of names without a key: a guess can be tested"
    assert hidden.message["link"].endswith("my_runs?period=all&node=n7&cluster=c")


def test_the_store_is_asked_for_names_only_where_somebody_gets_none() -> None:
    def asked() -> Names:
        raise AssertionError("nobody is redacted")

    assert made(alert(), "opened", site(HOOK), RULES, asked)


def test_the_documented_way_to_check_a_signature_takes_ours_and_no_other() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    documented: dict[str, Any] = {}
    exec(code, documented)
    now = int(time.time())
    ours = webhook.signature("key", b'{"a": 1}', now)
    is_ours = documented["is_ours"]
    assert is_ours("key", ours, b'{"a": 1}')
    assert not is_ours("key", ours, b'{"a": 2}')
    assert not is_ours("other", ours, b'{"a": 1}')
    assert not is_ours("key", webhook.signature("key", b'{"a": 1}', now - 600), b'{"a": 1}')


def test_the_documented_message_has_the_keys_of_ours() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text("utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (one,) = made(alert(), "opened", site(HOOK), RULES, Names)
    assert json.loads(shown).keys() == one.message.keys()


def test_the_documented_receivers_are_taken(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text("utf-8")
    stated, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "site.toml").write_text(stated)
    assert {one.kind for one in load_site(tmp_path).alerts.receivers} == set(KINDS)


OWNERS = {
    "the owner's": (("diverges",), "ann", ["ann@hpc.example.org"]),
    "nobody's": (("diverges",), None, []),
    "for the team": (("new_lemon",), "ann", []),
    "two addresses": (("diverges",), "x@evil.example,ann", []),
    "a line end": (("diverges",), "ann\nBcc: x", []),
}


@pytest.mark.parametrize("case", OWNERS.values(), ids=OWNERS)
def test_mail_to_an_owner_needs_an_owner_and_a_rule_that_is_theirs(
    case: tuple[tuple[str, ...], str | None, list[str]],
) -> None:
    rules, owner, to = case
    mail = Receiver("owners", "mail", to="{owner}@hpc.example.org", redact=True)
    found = made(alert(rules=rules, owner=owner), "opened", site(mail), RULES, pseudonyms)
    assert [one.message["to"] for one in found] == to
