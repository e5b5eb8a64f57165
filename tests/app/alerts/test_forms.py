"""The forms in which receivers take alerts: Slack's, Teams', Alertmanager's, and mail."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.alerts.deliver import Limits, Round, deliver
from app.alerts.messages import made
from app.alerts.out import alertmanager, mail, slack, teams
from app.reports.redaction import Names
from data.alerts import Delivery
from data.site import Smtp
from data.site_alerts import KINDS, Receiver
from tests.app import mail_server
from tests.app.alerts.made import NOW, RULES, alert, keep, queued, site
from tests.app.alerts.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.app.mail_server import Received

HOSTILE = "<!channel> *n7* <http://evil.example|click> [x](y) & `rm` failed"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESOLVED = "2026-03-02T08:00:00+00:00"
OPERATORS = Receiver("ops", "mail", to="ops@example.org, b@example.org")


def message(**more: Any) -> Any:
    (one,) = made(alert(**more), "opened", site(Receiver("r", address="http://r")), RULES, Names)
    return one.message


def test_slack_gets_a_text_and_blocks_in_which_nothing_of_ours_is_markup() -> None:
    form = slack.form(message(sentence=HOSTILE))
    assert "<!channel>" not in form["text"]
    assert "&lt;!channel&gt;" in form["text"]
    kinds = [
        (block["type"], (block.get("text") or block["elements"][0])["type"])
        for block in form["blocks"]
    ]
    assert kinds == [
        ("header", "plain_text"), ("section", "plain_text"), ("context", "plain_text"),
        ("section", "mrkdwn"),
    ]  # fmt: skip
    assert form["blocks"][1]["text"]["text"] == HOSTILE
    link = "https://faultline.example/node?period=all&amp;node=n7&amp;cluster=c"
    assert form["blocks"][3]["text"]["text"] == f"<{link}|Open its evidence>"


def test_slack_takes_what_is_long() -> None:
    form = slack.form(message(sentence="x" * 9_000, cluster="c" * 400))
    assert len(form["text"]) <= slack.MOST_TEXT
    assert len(form["blocks"][0]["text"]["text"]) == slack.MOST_HEADER
    assert len(form["blocks"][1]["text"]["text"]) == slack.MOST_TEXT


def test_teams_gets_an_adaptive_card_in_which_nothing_of_ours_is_markup() -> None:
    form = teams.form(message(sentence=HOSTILE))
    (attached,) = form["attachments"]
    assert (form["type"], attached["contentType"]) == (
        "message", "application/vnd.microsoft.card.adaptive",
    )  # fmt: skip
    card = attached["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert "\\[x\\](y)" in card["body"][1]["text"]
    assert {fact["title"]: fact["value"] for fact in card["body"][2]["facts"]}[
        "To do"
    ] == "Drain it."
    assert card["actions"][0]["url"].startswith("https://faultline.example/node?")
    assert len(json.dumps(teams.form(message(sentence="x" * 50_000)))) < 28_000


def test_without_a_link_there_is_none_in_any_form() -> None:
    bare = dict(message()) | {"link": None}
    assert len(slack.form(bare)["blocks"]) == 3
    assert "actions" not in teams.form(bare)["attachments"][0]["content"]
    assert "generatorURL" not in alertmanager.form(bare, NOW)


def test_alertmanager_knows_an_alert_by_what_never_changes() -> None:
    later = alertmanager.form(message(sentence="another figure"), AT + timedelta(days=9))
    first = alertmanager.form(message(), AT)
    assert first["labels"] == later["labels"]
    assert first["labels"] == {
        "alertname": "new_lemon", "cluster": "c", "severity": "warning", "alert_id": "a1",
    }  # fmt: skip
    assert first["startsAt"] == later["startsAt"] == "2026-03-01T11:00:00+00:00"
    assert first["annotations"]["runbook"] == "Drain it."
    assert first["endsAt"] == (AT + alertmanager.HOLDS).isoformat()


def test_an_alert_that_is_resolved_ends_after_it_began() -> None:
    over = dict(message(resolved_at=RESOLVED)) | {"event": "resolved"}
    assert alertmanager.form(over, AT)["endsAt"] == RESOLVED
    at_once = over | {"resolved_at": over["raised_at"]}
    assert alertmanager.form(at_once, AT)["endsAt"] == "2026-03-01T11:00:01+00:00"


def test_alertmanager_is_told_again_of_what_is_open(tmp_path: Path) -> None:
    with receiving() as manager:
        where = site(Receiver("am", "alertmanager", manager.url + "/"))
        state = queued(tmp_path, where, alert("a1"), alert("a2"))
        for minutes in (0, 10):
            at = NOW + timedelta(minutes=minutes)
            deliver(tmp_path, where, clock=lambda at=at: at)
        over = alert("a1", resolved_at=(NOW + timedelta(minutes=15)).isoformat())
        told = made(
            over, "resolved", where, RULES, Names, earlier=state.deliveries(alert_ids=["a1"])
        )
        keep(state, *told, alerts=(over,))
        deliver(tmp_path, where, clock=lambda: NOW + timedelta(minutes=20))
        assert {path for path, _, _ in manager.took} == {"/api/v2/alerts"}
        sent = [[one["labels"]["alert_id"] for one in told] for told in manager.messages]
    assert sent == [["a1"], ["a2"], ["a1", "a2"], ["a1", "a2"], ["a1"], ["a2"]]
    ends = manager.messages[4][0]["endsAt"]
    assert ends == over.resolved_at
    assert len(state.deliveries()) == 3, "what is only told again is no delivery of its own"


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    for name in ("HOST", "PORT", "SENDER", "USER", "SECURITY"):
        monkeypatch.delenv(f"FAULTLINE_SMTP_{name}", raising=False)
    with mail_server.receiving() as started:
        yield started


def by(smtp: Received) -> Smtp:
    return Smtp("127.0.0.1", smtp.port, "faultline@example.org", "", "none")


def test_mails_about_one_alert_are_one_thread(tmp_path: Path, smtp: Received) -> None:
    where = site(OPERATORS, smtp=by(smtp))
    state = queued(tmp_path, where, alert())
    assert deliver(tmp_path, where, clock=lambda: NOW) == Round(n_delivered=1)
    over = alert(resolved_at=RESOLVED)
    told = made(over, "resolved", where, RULES, Names, earlier=state.deliveries())
    keep(state, *told, alerts=(over,))
    assert deliver(tmp_path, where, clock=lambda: NOW) == Round(n_delivered=1)
    opened, end = smtp.messages
    (first,) = (one for one in state.deliveries() if one.event == "opened")
    assert opened["Message-ID"] == f"<{first.delivery_id}@example.org>"
    assert opened["Subject"] == "A new lemon node (warning, cluster c)"
    assert opened["To"] == "ops@example.org, b@example.org"
    assert opened["Auto-Submitted"] == "auto-generated"
    assert opened["In-Reply-To"] is None
    assert end["In-Reply-To"] == end["References"] == opened["Message-ID"] != end["Message-ID"]
    assert end["Subject"].startswith("Resolved: A new lemon node")
    lines = opened.get_content().splitlines()
    assert lines[0] == "n7 failed 9 times in 30 days; 1.2 were expected."
    assert lines[-1] == "https://faultline.example/node?period=all&node=n7&cluster=c"


def one_mail(**more: Any) -> Delivery:
    return made(alert(**more), "opened", site(OPERATORS), RULES, Names)[0]


def test_a_mail_that_is_sent_again_is_the_same_to_the_byte() -> None:
    delivery, server = one_mail(), Smtp(host="h", sender="f@example.org")
    again = replace(delivery, n_tries=5, said="late")
    written = (mail.mailed(one, ("a@example.org",), server) for one in (delivery, again))
    first, second = (bytes(each) for each in written)
    assert first == second


def test_no_name_can_add_a_header() -> None:
    hostile = one_mail(cluster="c\r\nBcc: x@evil.example", sentence="a\r\n.\r\nMAIL FROM:<x>")
    written = mail.mailed(hostile, ("a@example.org",), Smtp(sender="f@example.org"))
    assert written["Bcc"] is None
    assert "Bcc: x" in written["Subject"]


REPLIES = {
    "taken": ("250 taken", "delivered"),
    "later": ("451 try later", None),
    "never": ("554 no such thing", "refused"),
}


@pytest.mark.parametrize("case", REPLIES.values(), ids=REPLIES)
def test_a_mail_server_says_whether_to_try_again(
    smtp: Received, case: tuple[str, str | None]
) -> None:
    smtp.reply, outcome = case
    where = site(OPERATORS, smtp=by(smtp))
    found = mail.send(OPERATORS, one_mail(), where, timeout_s=5)
    assert found.outcome == outcome
    assert found.is_known


def test_addresses_that_are_refused_are_told(smtp: Received) -> None:
    smtp.refuses = True
    found = mail.send(OPERATORS, one_mail(), site(OPERATORS, smtp=by(smtp)), timeout_s=5)
    assert (found.outcome, found.said) == ("refused", "550 unknown here; 550 unknown here")


def test_mail_without_a_server_or_an_address_waits_until_that_is_mended() -> None:
    found = mail.send(OPERATORS, one_mail(), site(OPERATORS), timeout_s=5)
    assert (found.outcome, "no mail server is named" in found.said) == (None, True)
    wrong = replace(OPERATORS, to="nobody")
    server = Smtp(host="127.0.0.1", port=9, security="none")
    found = mail.send(wrong, one_mail(), site(wrong, smtp=server), timeout_s=5)
    assert (found.outcome, "must be addresses" in found.said) == (None, True)
    found = mail.send(OPERATORS, one_mail(), site(OPERATORS, smtp=server), timeout_s=5)
    assert (found.outcome, found.is_known, found.is_down) == (None, True, True)


def test_a_mail_server_that_hangs_is_left_within_the_time() -> None:
    with receiving() as silent:  # it waits for a request, and so says nothing
        server = Smtp("127.0.0.1", silent.port, "f@example.org", "", "none")
        began = datetime.now(UTC)
        found = mail.send(OPERATORS, one_mail(), site(OPERATORS, smtp=server), timeout_s=0.2)
        assert datetime.now(UTC) - began < timedelta(seconds=1)
    assert (found.outcome, found.is_known) == (None, False)


def test_every_kind_of_receiver_that_site_toml_takes_can_be_told(tmp_path: Path) -> None:
    receivers = [Receiver(kind, kind, "http://127.0.0.1:9/", to="a@example.org") for kind in KINDS]
    where = site(*receivers, smtp=Smtp("127.0.0.1", 9, "", "", "none"))
    queued(tmp_path, where, alert())
    found = deliver(tmp_path, where, clock=lambda: NOW, limits=Limits(timeout_s=1))
    assert found == Round(n_again=len(KINDS))
