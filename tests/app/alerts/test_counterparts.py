"""Debian's Prometheus and Alertmanager, started here: one scrapes, the other receives and resolves."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from app.alerts.deliver import Limits, Round, deliver
from app.alerts.exposition import of_store
from app.alerts.messages import made
from app.reports.redaction import Names
from data.alerts import Figure
from data.deliveries import Deliveries
from data.site import Smtp
from data.site_alerts import Receiver
from tests.app import mail_server
from tests.app.alerts import receiver as faults
from tests.app.alerts.made import NOW, RULES, alert, keep, queued, site
from tests.app.alerts.receiver import receiving, says
from tests.app.server.running import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.service
WITHIN_S = 30.0


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: `make counterparts` installs Debian's")
    return found


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


@contextmanager
def running(*command: str, port: int, ready: str, folder: Path) -> Iterator[None]:
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        until_it_holds(lambda: process.poll() is not None or asked(port, ready)[0] == 200)
        assert process.poll() is None, (folder / log.name).read_text()
        yield
    finally:
        process.terminate()
        process.wait(10)


def asked(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def until_it_holds(question: Callable[[], object]) -> Any:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if found := question():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come in time")


def test_prometheus_scrapes_the_dashboard_behind_its_token(tmp_path: Path) -> None:
    prometheus, port = program("prometheus"), free_port()
    store = tmp_path / "a-store"
    store.mkdir()
    queued(store, site(Receiver("team", address="http://127.0.0.1:9/")), alert(cluster='a "b"\\'))
    keep(Deliveries(store), figures=(Figure("rate", "c", 1.5, 1.0, 2.0),))
    server = start(tmp_path)
    token = urlsplit(server.url).query.removeprefix("token=")
    assert asked(server.port, "/metrics")[0] == 401
    scraped = {
        "job_name": "faultline",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}],
        "authorization": {"credentials": token},
    }
    config = tmp_path / "prometheus.yml"  # JSON is YAML
    config.write_text(json.dumps({"scrape_configs": [scraped]}))

    def queried(query: str) -> list[Any]:
        status, text = asked(port, f"/api/v1/query?query={quote(query)}")
        return json.loads(text)["data"]["result"] if status == 200 else []

    try:
        with running(
            prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}", port=port, ready="/-/ready", folder=tmp_path,
        ):  # fmt: skip
            (one,) = until_it_holds(lambda: queried("faultline_alert"))
            (rate,) = until_it_holds(lambda: queried("faultline_rate_upper"))
            (up,) = queried('up{job="faultline"}')
    finally:
        server.stop()
    assert up["value"][1] == "1"
    assert rate["value"][1] == "2"
    labels = {name: one["metric"][name] for name in ("rule", "severity", "cluster", "state")}
    assert labels == {
        "rule": "new_lemon", "severity": "warning", "cluster": 'a "b"\\', "state": "open",
    }  # fmt: skip


def test_promtool_finds_nothing_wrong_with_the_format(tmp_path: Path) -> None:
    promtool = program("promtool")
    queued(tmp_path, site(Receiver("team", address="http://127.0.0.1:9/")), alert(cluster="é\n"))
    keep(Deliveries(tmp_path), figures=(Figure("rate", "c", 1.5, None, 2.0),))
    text = of_store(tmp_path, datetime.now(UTC)).encode()
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_alertmanager_receives_an_alert_once_and_resolves_it(tmp_path: Path) -> None:
    alertmanager, port = program("prometheus-alertmanager"), free_port()
    with receiving() as pager:
        route = {"receiver": "p", "group_wait": "1s", "group_interval": "1s", "group_by": ["..."]}
        receivers = [{"name": "p", "webhook_configs": [{"url": pager.url, "send_resolved": True}]}]
        config = tmp_path / "alertmanager.yml"
        config.write_text(json.dumps({"route": route, "receivers": receivers}))
        with running(
            alertmanager, f"--config.file={config}", f"--storage.path={tmp_path / 'am'}",
            f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
            port=port, ready="/-/ready", folder=tmp_path,
        ):  # fmt: skip

            def active() -> list[Any]:
                return list(json.loads(asked(port, "/api/v2/alerts")[1]))

            where = site(Receiver("am", "alertmanager", f"http://127.0.0.1:{port}"))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            state = queued(tmp_path, where, alert(raised_at=now))
            assert deliver(tmp_path, where) == Round(n_delivered=1)
            (one,) = until_it_holds(active)
            assert deliver(tmp_path, where) == Round(), "told again, as at each round"
            (again,) = active()
            assert again["fingerprint"] == one["fingerprint"]
            assert again["startsAt"] == one["startsAt"] == now.replace("+00:00", ".000Z")
            assert one["labels"] == {
                "alertname": "new_lemon", "cluster": "c", "severity": "warning", "alert_id": "a1",
            }  # fmt: skip
            assert one["generatorURL"].startswith("https://faultline.example/node?")
            until_it_holds(lambda: pager.took)
            over = alert(raised_at=now, resolved_at=datetime.now(UTC).isoformat(timespec="seconds"))
            told = made(over, "resolved", where, RULES, Names, earlier=state.deliveries())
            keep(state, *told, alerts=(over,))
            assert deliver(tmp_path, where) == Round(n_delivered=1)
            until_it_holds(lambda: not active())
            until_it_holds(lambda: len(pager.took) == 2)
        assert [one["status"] for one in pager.messages] == ["firing", "resolved"]


def test_a_hook_that_fails_half_the_time_and_a_mail_server_get_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOST", "PORT", "SENDER", "USER", "SECURITY"):
        monkeypatch.delenv(f"FAULTLINE_SMTP_{name}", raising=False)
    asked_for = count()
    bad = (says(429, Retry_After="30"), faults.hangs(1.0), says(500), faults.reset)

    def answer(connection: socket.socket) -> object:
        n = next(asked_for)
        return says(200)(connection) if n % 2 else bad[n // 2 % len(bad)](connection)

    with receiving() as hook, mail_server.receiving() as mails:
        hook.answer = answer
        receivers = (
            Receiver("hook", address=hook.url),
            Receiver("ops", "mail", to="o@example.org"),
        )
        smtp = Smtp("127.0.0.1", mails.port, "f@example.org", "", "none")
        where = site(*receivers, smtp=smtp)
        queued(tmp_path, where, *(alert(f"a{n}") for n in range(20)))
        began, done = NOW, Round()
        for n in range(60):
            at = began + n * timedelta(minutes=10)
            done += deliver(tmp_path, where, limits=Limits(timeout_s=0.5), clock=lambda at=at: at)
        assert done.n_delivered == 40
        assert len(hook.ids) == 20
        assert len({mail["Message-ID"] for mail in mails.messages}) == len(mails.messages) == 20
