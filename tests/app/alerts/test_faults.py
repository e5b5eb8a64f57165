"""Deliveries with faults injected, their process killed: none is lost, and repeats are counted."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.alerts.deliver import GIVEN_UP_AFTER, Limits, deliver
from data.deliveries import Deliveries
from data.site_alerts import Receiver
from tests.app.alerts import receiver as faults
from tests.app.alerts.made import NOW, alert, queued, site
from tests.app.alerts.receiver import receiving, says

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from data.site import Site

ROOT = Path(__file__).resolve().parents[3]
KINDS = {"hook": "webhook", "other": "webhook", "chat": "slack", "rooms": "teams"}
STEP = timedelta(minutes=2)
LIMITS = Limits(timeout_s=0.5, receiver_s=600)
START = """
import sys
from pathlib import Path
from tests.app.alerts.test_faults import rounds
rounds(Path(sys.argv[1]), sys.argv[2])
"""
_NUMBER = re.compile(rb"alert number (\d+)")


def to(url: str) -> Site:
    return site(*(Receiver(name, kind, f"{url}/{name}") for name, kind in KINDS.items()))


def rounds(root: Path, url: str) -> None:
    """Rounds until nothing waits, two minutes of the queue's time apart."""
    counted, where = root / "rounds", to(url)
    while True:
        n = int(counted.read_text() or 0) if counted.exists() else 0
        part = counted.with_name("part")
        part.write_text(str(n + 1))
        part.replace(counted)
        now = NOW + n * STEP
        assert now < NOW + GIVEN_UP_AFTER, "nothing may be given up here"
        deliver(root, where, limits=LIMITS, clock=lambda now=now: now)
        if not any(one.n_waiting for one in Deliveries(root).counts()):
            return


def _not_taken(status: int, **headers: str) -> Callable[[socket.socket], object]:
    say = says(status, **headers)
    return lambda connection: (say(connection) and None) or False


def faulty(hook: faults.Receiver, share: float, hang_s: float) -> None:
    """Answers well but for a share of all requests, a fault of its own kind each."""
    drawn = random.Random(0)
    kinds: list[Callable[[socket.socket], Any]] = [
        faults.reset, faults.half, faults.hangs(hang_s), _not_taken(500), _not_taken(429),
        _not_taken(503, Retry_After="60"),
    ]  # fmt: skip

    def answer(connection: socket.socket) -> object:
        how = drawn.choice(kinds) if drawn.random() < share else says(200, "ok")
        return how(connection)

    hook.answer = answer
    hook.before = lambda connection: drawn.random() > share / 5


def checked(root: Path, hook: faults.Receiver, n_alerts: int) -> Iterator[str]:
    """None is lost, of a webhook none comes twice but with its id, repeats are as counted."""
    told = Deliveries(root).deliveries()
    assert {one.outcome for one in told} == {"delivered"}
    assert len(told) == n_alerts * len(KINDS)
    number = {one.alert_id: n for n, one in enumerate(_alerts(n_alerts))}
    counts = {one.receiver: one for one in Deliveries(root).counts()}
    for name, kind in KINDS.items():
        bodies = [body for path, body in hook.shown if path == f"/{name}"]
        came = Counter(int(found[1]) for body in bodies if (found := _NUMBER.search(body)))
        assert set(came) == set(range(n_alerts)), f"{name} lost some"
        own = [one for one in told if one.receiver == name]
        for one in own:
            assert 1 <= came[number[one.alert_id]] <= 1 + one.n_unanswered, one
        repeats, counted = sum(came.values()) - n_alerts, counts[name].n_repeats
        assert repeats <= counted == sum(one.n_unanswered for one in own)
        if kind == "webhook":
            ids = Counter(h["faultline-delivery"] for p, h, _ in hook.took if p == f"/{name}")
            assert set(ids) == {one.delivery_id for one in own}, "an id is an alert's own"
        yield f"{name} ({kind}): {n_alerts:,} told, {repeats:,} came again, counted as {counted:,}"


def _alerts(n: int) -> list[Any]:
    return [alert(f"a{n:05}", sentence=f"alert number {n}") for n in range(n)]


def test_of_100_messages_with_faults_none_is_lost_and_repeats_are_counted(tmp_path: Path) -> None:
    with receiving() as hook:
        queued(tmp_path, to(hook.url), *_alerts(25))
        faulty(hook, 0.2, 0.6)
        rounds(tmp_path, hook.url)
        assert len(list(checked(tmp_path, hook, 25))) == len(KINDS)


@pytest.mark.slow
def test_of_10000_messages_with_faults_and_100_killed_processes_none_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, began = random.Random(1), time.monotonic()
    with receiving() as hook:
        queued(tmp_path, to(hook.url), *_alerts(2_500))
        faulty(hook, 0.06, 0.6)
        n_killed = 0
        while n_killed < 100:
            process, n_before = started(tmp_path, hook.url), len(hook.took)
            while len(hook.took) == n_before and process.poll() is None:
                time.sleep(0.005)
            time.sleep(drawn.uniform(0.0, 1.0))
            n_killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert n_killed == 100 or process.returncode == -signal.SIGKILL, "all was sent before"
        assert started(tmp_path, hook.url).wait() == 0
        lines = list(checked(tmp_path, hook, 2_500))
    with capsys.disabled():
        print(f"\n10,000 messages, {n_killed} processes killed, {time.monotonic() - began:,.0f} s")
        print("\n".join(lines))


def started(root: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", START, str(root), url], cwd=ROOT)
