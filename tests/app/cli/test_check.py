"""faultline check and faultline alerts: one life of an alert, from a stopped collector on."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from app.alerts import evaluate
from app.server import alerting
from data.alerts import Alerts
from data.audit import Audit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINE = (
    "2026-03-02T06:00:{second:02}+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU fell off\n"
)
SOURCE = '[[source]]\nkind = "folder"\nreader = "kernel-log"\ncluster = "c"\nname = "kern"\npath = "kern.log*"\n'
LATER = timedelta(days=3)


@pytest.fixture
def collected(tmp_path: Path, faultline: Callable[..., Any]) -> Path:
    """A store that `faultline collect` filled an hour ago, several times before, and never since."""
    (tmp_path / "kern.log").write_text("".join(LINE.format(second=n) for n in (1, 2)))
    (tmp_path / "collect.toml").write_text(SOURCE)
    root = tmp_path / "store"
    faultline("collect", "--config", tmp_path / "collect.toml", "--store", root)
    return root


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.told.append(self.rfile.read(length))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.told = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def told_to(root: Path, receiver: HTTPServer) -> None:
    host, port = receiver.server_address[:2]
    (root / "site.toml").write_text(
        f'[[alerts.receiver]]\nname = "ops"\naddress = "http://{host}:{port}/"\n'
    )


def states(root: Path, faultline: Callable[..., Any]) -> dict[str, str]:
    return {a["rule"]: a["state"] for a in faultline("alerts", "--store", root).json["alerts"]}


def test_when_the_collector_stops_time_alone_raises_the_alert_and_tells_it_once(
    collected: Path, receiver: HTTPServer
) -> None:
    told_to(collected, receiver)
    assert evaluate.evaluate(collected).alerts == ()
    for _ in range(2):  # no ingest comes; time passes
        done = evaluate.evaluate(collected, now=datetime.now(UTC) + LATER)
        assert [(a.rules, a.cluster) for a in done.alerts] == [(("source_silent",), "c")]
    (message,) = receiver.told  # type: ignore[attr-defined]
    assert b'"event": "opened"' in message


def test_an_alert_is_acknowledged_muted_undone_and_resolved(
    collected: Path, faultline: Callable[..., Any]
) -> None:
    evaluate.evaluate(collected, now=datetime.now(UTC) + LATER)
    (alert,) = faultline("alerts", "--store", collected).json["alerts"]
    assert (alert["state"], alert["told"]) == ("open", "nobody")
    taken = faultline("alerts", "--acknowledge", alert["alert_id"], "--store", collected).json
    # what was said before the episode began, as the clock here does, silences nothing
    assert taken["target"] == alert["target"]
    muted = faultline("alerts", "--mute", "source_silent", "--days", 2, "--store", collected).json
    assert states(collected, faultline) == {"source_silent": "muted"}
    faultline("alerts", "--undo", muted["annotation_id"], "--store", collected)
    assert states(collected, faultline)["source_silent"] != "muted"
    faultline("alerts", "--undo", taken["annotation_id"], "--store", collected)
    faultline("alerts", "--resolve", alert["target"], "--store", collected)
    done = [entry.action for entry in Audit(collected).entries()][:4]
    assert done == ["annotate", "undo", "undo", "annotate"]


def test_exit_3_is_for_fail_on_alone_and_for_what_is_that_grave(
    collected: Path, faultline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faultline("check", "--store", collected).code == 0
    real = evaluate.evaluate
    monkeypatch.setattr(
        evaluate, "evaluate", lambda root, *, now: real(root, now=now + LATER)
    )  # three days later
    assert faultline("check", "--store", collected).code == 0
    assert faultline("check", "--store", collected, "--fail-on", "critical").code == 0
    said = faultline("check", "--store", collected, "--fail-on", "warning")
    assert said.code == 3
    (alert,) = said.json["alerts"]
    assert {"rule", "target", "since_at", "state", "sentence"} <= alert.keys()


def test_rules_that_cannot_look_are_named_and_no_verdict_is_given(
    collected: Path, faultline: Callable[..., Any]
) -> None:
    said = faultline("check", "--store", collected).json
    assert "failure_rate" in said["blind"]
    assert (
        "rules have the records that they need"
        in faultline("check", "--store", collected, "--format", "table").out
    )


def test_a_rule_that_is_off_is_not_asked_and_one_that_is_unknown_is_told(
    collected: Path, faultline: Callable[..., Any]
) -> None:
    faultline("alerts", "--switch-off", "source_silent", "--store", collected)
    assert evaluate.evaluate(collected, now=datetime.now(UTC) + LATER).alerts == ()
    past = faultline("check", "--backtest", "source_silent", "--store", collected)
    assert past.json["rule"] == "source_silent"
    assert (
        "did you mean 'failure_rate'?"
        in faultline("check", "--backtest", "failure_rates", "--store", collected).err
    )
    wrong = faultline("alerts", "--acknowledge", "nothing", "--store", collected)
    assert (wrong.code, "no open alert" in wrong.err) == (2, True)


def test_a_cluster_that_the_store_does_not_hold_is_told(
    collected: Path, faultline: Callable[..., Any]
) -> None:
    receiver = '[[alerts.receiver]]\nname = "ops"\naddress = "http://a.example/"\n'
    stated = f"[alerts.targets.c]\nettr = 0.9\n[alerts.targets.cc]\n{receiver}"
    (collected / "site.toml").write_text(f'{stated}clusters = ["c", "d"]\n')
    said = faultline("config", "check", "--store", collected).err
    assert "[alerts] targets: no cluster is called 'cc': did you mean 'c'?" in said
    assert "[alerts] clusters of the receiver ops: no cluster is called 'd'" in said
    assert said.count("no cluster is called") == 2


def test_redacted_an_alert_keeps_its_state_and_its_target_is_keyed(
    collected: Path, faultline: Callable[..., Any]
) -> None:
    evaluate.evaluate(collected, now=datetime.now(UTC) + LATER)
    (alert,) = faultline("alerts", "--store", collected).json["alerts"]
    faultline("alerts", "--mute", alert["alert_id"], "--store", collected)
    (shown,) = faultline("alerts", "--redact", "--store", collected).json["alerts"]
    assert shown["state"] == "muted"
    assert shown["target"] != alert["target"]
    (checked,) = faultline("check", "--redact", "--store", collected).json["alerts"]
    assert (checked["target"], checked["alert_id"]) == (shown["target"], alert["alert_id"])


@pytest.mark.slow
def test_a_server_asks_the_rules_where_no_ingest_comes(collected: Path) -> None:
    before = Alerts(collected).last_evaluated()
    alerting.begin(collected, first_after_s=0.0, look_s=0.05, every_s=0.1)
    patience = time.monotonic() + 60
    while Alerts(collected).last_evaluated() == before:
        assert time.monotonic() < patience
        time.sleep(0.1)
