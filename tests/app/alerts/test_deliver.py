"""What waits is sent: once where it can be, with one id however often, and never lost."""

from __future__ import annotations

import hashlib
import hmac
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from app.alerts.deliver import GIVEN_UP_AFTER, KEPT, Limits, Round, deliver, wait_s
from app.alerts.messages import made
from app.reports.redaction import Names
from data.audit import Audit
from data.deliveries import Counts, Deliveries
from data.site_alerts import Receiver
from tests.app.alerts import receiver as faults
from tests.app.alerts.made import NOW, RULES, alert, keep, queued, site
from tests.app.alerts.receiver import receiving, says

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from data.site import Site

QUICK = Limits(timeout_s=0.2)


@pytest.fixture
def hook() -> Iterator[faults.Receiver]:
    with receiving() as started:
        yield started


def to(hook: faults.Receiver, **more: Any) -> Site:
    return site(Receiver("team", "webhook", f"{hook.url}/in", **more))


def sent(root: Path, where: Site, after: timedelta = timedelta(0), **more: Any) -> Round:
    return deliver(root, where, clock=lambda: NOW + after, **{"limits": QUICK} | more)


def test_a_message_is_sent_once_and_signed(
    tmp_path: Path, hook: faults.Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_KEY", "shared key")
    where = to(hook, secret_variable="HOOK_KEY")
    queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_delivered=1)
    assert sent(tmp_path, where, timedelta(hours=2)) == Round()
    ((path, headers, body),) = hook.took
    assert path == "/in"
    parts = dict(part.split("=") for part in headers["faultline-signature"].split(","))
    signed = parts["t"].encode() + b"." + body
    assert parts["v1"] == hmac.new(b"shared key", signed, hashlib.sha256).hexdigest()
    assert abs(int(parts["t"]) - time.time()) < 60
    (message,) = hook.messages
    assert message["id"] == headers["faultline-delivery"]
    assert message["link"] == "https://faultline.example/node?period=all&node=n7&cluster=c"
    assert (message["event"], message["severity"], message["to_do"]) == (
        "opened", "warning", "Drain it.",
    )  # fmt: skip


def test_without_its_key_nothing_is_sent_unsigned(tmp_path: Path, hook: faults.Receiver) -> None:
    where = to(hook, secret_variable="NO_SUCH_KEY")
    state = queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_again=1)
    assert not hook.took
    assert "NO_SUCH_KEY is not in the environment" in str(state.deliveries()[0].said)


@pytest.mark.parametrize("status", [200, 202, 204, 299])
def test_what_is_taken_is_not_sent_again(
    tmp_path: Path, hook: faults.Receiver, status: int
) -> None:
    hook.answer = says(status)
    where = to(hook)
    queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_delivered=1)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422])
def test_what_is_refused_is_told_and_not_sent_again(
    tmp_path: Path, hook: faults.Receiver, status: int
) -> None:
    hook.answer = says(status, "no such hook\x1b[31m")
    where = to(hook)
    state = queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_refused=1)
    assert sent(tmp_path, where, timedelta(days=1)) == Round()
    (one,) = state.deliveries()
    assert (one.outcome, one.said) == ("refused", f"answers {status} no such hook[31m")
    entry = Audit(tmp_path).entries()[0]
    assert (entry.action, entry.target) == ("alert refused", "team")
    assert hook.url not in str(entry.detail), "an address may be a secret"


@pytest.mark.parametrize("status", [301, 302, 307, 408, 425, 429, 500, 502, 503])
def test_what_may_do_better_later_is_sent_again_with_the_same_id(
    tmp_path: Path, hook: faults.Receiver, status: int
) -> None:
    elsewhere = f"{hook.url}/elsewhere"
    hook.answer = says(status, Location=elsewhere)
    where = to(hook)
    queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_again=1)
    assert sent(tmp_path, where, timedelta(seconds=20)) == Round(), "not before it backs off"
    hook.answer = says(200)
    assert sent(tmp_path, where, timedelta(seconds=31)) == Round(n_delivered=1)
    assert [path for path, _, _ in hook.took] == ["/in", "/in"], "no redirect is followed"
    assert list(hook.ids.values()) == [2]


@pytest.mark.parametrize(("header", "wait"), [("600", 600), ("date", 300)])
def test_a_receiver_that_asks_for_time_gets_it(
    tmp_path: Path, hook: faults.Receiver, header: str, wait: int
) -> None:
    stated = (
        format_datetime(datetime.now(UTC) + timedelta(seconds=wait)) if header == "date" else header
    )
    hook.answer = says(429, Retry_After=stated)
    where = to(hook)
    queued(tmp_path, where, alert("a1"), alert("a2"))
    assert sent(tmp_path, where) == Round(n_again=1), "the second is not even tried"
    hook.answer = says(200)
    assert sent(tmp_path, where, timedelta(seconds=wait - 5)) == Round()
    assert sent(tmp_path, where, timedelta(seconds=wait + 1)) == Round(n_delivered=2)


@pytest.mark.parametrize("how", ["hangs", "drips"])
def test_a_receiver_that_hangs_holds_up_no_other(
    tmp_path: Path, hook: faults.Receiver, how: str
) -> None:
    hook.answer = faults.drips if how == "drips" else faults.hangs(3)
    with receiving() as other:
        receivers = [Receiver("slow", address=hook.url), Receiver("well", address=other.url)]
        where = site(*receivers)
        queued(tmp_path, where, *(alert(f"a{n}") for n in range(5)))
        began = time.monotonic()
        assert sent(tmp_path, where) == Round(n_delivered=5, n_again=1)
        assert time.monotonic() - began < 2
        assert len(other.took) == 5
    slow = [one for one in Deliveries(tmp_path).deliveries() if one.receiver == "slow"]
    assert sorted(one.n_tries for one in slow) == [0, 0, 0, 0, 1]
    assert sum(one.n_unanswered for one in slow) == 1


def test_where_nobody_listens_nothing_can_have_come_twice(tmp_path: Path) -> None:
    where = site(Receiver("gone", "slack", "http://127.0.0.1:9/"))
    state = queued(tmp_path, where, alert())
    assert sent(tmp_path, where) == Round(n_again=1)
    (one,) = state.deliveries()
    assert (one.n_tries, one.n_unanswered, one.said) == (
        1, 0, "cannot be had (ConnectionRefusedError)",
    )  # fmt: skip


def test_nobody_hears_of_an_end_before_its_beginning(tmp_path: Path, hook: faults.Receiver) -> None:
    hook.answer = says(500)
    where = to(hook)
    state = queued(tmp_path, where, alert())
    sent(tmp_path, where)
    over = alert(resolved_at="2026-03-01T13:00:00+00:00")
    told = made(over, "resolved", where, RULES, Names, earlier=state.deliveries())
    keep(state, *told)
    hook.answer = says(200)
    assert sent(tmp_path, where) == Round()
    assert sent(tmp_path, where, timedelta(minutes=1)) == Round(n_delivered=2)
    assert [one["event"] for one in hook.messages] == ["opened", "opened", "resolved"]
    assert hook.messages[2]["first"] == hook.messages[0]["id"]


def test_who_never_heard_of_it_does_not_hear_of_its_end(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    where = to(hook)
    state = queued(tmp_path, where, alert())
    over = alert(resolved_at="2026-03-01T13:00:00+00:00")
    told = made(over, "resolved", where, RULES, Names, earlier=state.deliveries())
    keep(state, *told)
    hook.answer = says(400)
    assert sent(tmp_path, where) == Round(n_refused=2)
    assert len(hook.took) == 1
    assert state.deliveries()[0].said == "the opening was not delivered, so its end is not told"


def test_what_cannot_be_delivered_in_three_days_is_given_up_and_told(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    hook.answer = says(500, "out of order")
    where = to(hook)
    state = queued(tmp_path, where, alert())
    sent(tmp_path, where)
    assert sent(tmp_path, where, GIVEN_UP_AFTER + timedelta(hours=2)) == Round(n_refused=1)
    (one,) = state.deliveries()
    assert (one.outcome, one.said) == ("given up", "answers 500 out of order")
    assert Audit(tmp_path).entries()[0].action == "alert given up"
    assert Deliveries(tmp_path).counts() == [Counts("team", 0, 0, 1, 0)]


def test_a_receiver_that_is_named_no_more_is_waited_for_and_then_given_up(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    state = queued(tmp_path, to(hook), alert())
    assert sent(tmp_path, site()) == Round()
    assert state.deliveries()[0].outcome is None, "a site.toml that is mended loses nothing"
    assert sent(tmp_path, site(), GIVEN_UP_AFTER + timedelta(hours=2)) == Round(n_refused=1)
    assert state.deliveries()[0].said == "site.toml names no receiver team"


def test_only_one_process_sends(tmp_path: Path, hook: faults.Receiver) -> None:
    where = to(hook)
    queued(tmp_path, where, alert())
    with Deliveries(tmp_path).sending() as may:
        assert may
        assert sent(tmp_path, where) == Round(is_elsewhere=True)
    assert sent(tmp_path, where) == Round(n_delivered=1)


def test_what_is_queued_while_another_sends_is_sent_by_it(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    where = to(hook)
    queued(tmp_path, where, alert("a0"))
    elsewhere = []

    def queues_one_more(connection: Any) -> None:
        if len(hook.took) == 1:
            queued(tmp_path, where, alert("a1"))
            elsewhere.append(sent(tmp_path, where))
        says(200)(connection)

    hook.answer = queues_one_more
    assert sent(tmp_path, where, limits=Limits(timeout_s=5)) == Round(n_delivered=2)
    assert elsewhere == [Round(is_elsewhere=True)]


def test_a_receiver_that_failed_is_left_alone_though_something_new_waits(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    where = to(hook)
    queued(tmp_path, where, alert("a0"))

    def queues_one_more(connection: Any) -> None:
        queued(tmp_path, where, alert("a1"))
        says(500)(connection)

    hook.answer = queues_one_more
    assert sent(tmp_path, where, limits=Limits(timeout_s=5)) == Round(n_again=1)


SECRET = "/services/T0/B0/SECRETKEY?sig=0123456789"
SAID = {
    "slack": "answers 404",
    "teams": "answers 404",
    "webhook": "answers 404 Cannot POST ..., no ...",
}


@pytest.mark.parametrize("kind", SAID)
def test_an_address_that_a_receiver_repeats_is_kept_nowhere(
    tmp_path: Path, hook: faults.Receiver, kind: str
) -> None:
    hook.answer = says(404, f"Cannot POST {SECRET}, no SECRETKEY")
    where = site(Receiver("team", kind, f"{hook.url}{SECRET}"))
    state = queued(tmp_path, where, alert())
    assert sent(tmp_path, where, limits=Limits(timeout_s=5)) == Round(n_refused=1)
    assert state.deliveries()[0].said == SAID[kind]
    assert "SECRETKEY" not in str(Audit(tmp_path).entries())


def test_a_process_that_ends_between_sending_and_noting_sends_the_same_again(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    where = to(hook)
    state = queued(tmp_path, where, alert())

    def ends(connection: Any) -> None:
        clocks.extend([None])
        says(200)(connection)

    clocks: list[None] = []

    def clock() -> datetime:
        if clocks:
            raise KeyboardInterrupt
        return NOW

    hook.answer = ends
    with pytest.raises(KeyboardInterrupt):
        deliver(tmp_path, where, limits=QUICK, clock=clock)
    hook.answer = says(200)
    assert state.deliveries()[0].n_unanswered == 1
    assert sent(tmp_path, where, timedelta(minutes=1)) == Round(n_delivered=1)
    assert list(hook.ids.values()) == [2]
    assert Deliveries(tmp_path).counts() == [Counts("team", 0, 1, 0, 1)]


def test_what_is_older_than_a_year_is_removed_and_still_counted(
    tmp_path: Path, hook: faults.Receiver
) -> None:
    where = to(hook)
    over = alert("old", resolved_at="2026-03-01T13:00:00+00:00")
    state = queued(tmp_path, where, over)
    queued(tmp_path, where, alert("open"))
    sent(tmp_path, where)
    before = Deliveries(tmp_path).counts()
    sent(tmp_path, where, KEPT + timedelta(days=1))
    assert [one.alert_id for one in state.all(since=datetime(2020, 1, 1, tzinfo=UTC))] == ["open"]
    assert [one.alert_id for one in state.deliveries()] == ["open"]
    assert Deliveries(tmp_path).counts() == before == [Counts("team", 0, 2, 0, 0)]
    assert state.is_sound()


def test_a_message_is_sent_again_ever_later_up_to_an_hour() -> None:
    waits = [wait_s("0f", n) for n in range(1, 40)]
    for n, wait in enumerate(waits):
        whole = min(30 * 2**n, 3_600)
        assert 0.75 * whole <= wait <= whole
    assert wait_s("0f", 3) == wait_s("0f", 3) != wait_s("0e", 3)


def test_a_store_without_receivers_is_left_as_it_is(tmp_path: Path) -> None:
    assert deliver(tmp_path, site()) == Round()
    assert not [*tmp_path.iterdir()]
