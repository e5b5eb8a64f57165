"""Collecting from addresses: what a server answers, or fails to."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from data.collect import collect, load_sources
from data.ingest import Options
from tests.data.collect.conftest import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
XID = "2026-03-02T06:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off\n"


class Server:
    """A server whose answers a test states."""

    def __init__(self) -> None:
        self.answer: Callable[[Any], None] = lambda request: None
        self.asked: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, dict(self.headers)))
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def says(self, text: str, *, cut: int = 0, code: int = 200, **headers: str) -> None:
        """Answers so; `cut` bytes less than it promises."""

        def answer(request: Any) -> None:
            body = text.encode()
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(body) + cut))
            request.end_headers()
            request.wfile.write(body)

        self.answer = answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.fixture
def from_server(tmp_path: Path, server: Server) -> Any:
    """Collects from an address, or by a whole source."""

    def collected(text: str = "", *, path: str = "/log", now: datetime = NOW) -> Any:
        config = tmp_path / "collect.toml"
        kind = "" if "kind" in text else f'kind = "url"\nurl = "{server.url}{path}"\n'
        reader = "" if "reader" in text else 'reader = "kernel-log"\n'
        config.write_text(f"[[source]]\n{kind}{reader}timeout_s = 1\n{text}")
        host = Host(tmp_path, tmp_path / "store")
        (outcome,) = collect(
            host.root, load_sources(config), Options(cluster="c"), now=now
        ).outcomes
        return outcome, host

    return collected


def test_a_file_behind_an_address_is_read(server: Server, from_server: Any) -> None:
    server.says(XID)
    outcome, host = from_server()
    assert (outcome.error, outcome.collected_until) == (None, NOW)
    assert host.rows("SELECT node, xid FROM health_events") == [("n1", 79)]
    server.says("")
    outcome, host = from_server(now=NOW + DAY)
    assert (outcome.error, outcome.collected_until) == (None, NOW + DAY)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"text": XID, "cut": 10}, "ended after"),
        ({"text": "no", "code": 503}, "answers 503 Service Unavailable: no"),
        ({"text": "", "code": 302, "Location": "file:///etc/passwd"}, "is not allowed"),
        ({"text": "", "code": 302, "Location": "ftp://127.0.0.1/x"}, "another origin, ftp://127"),
        ({"text": XID * 20_000}, "holds more than the limit of 1 MB"),
    ],
)
def test_an_answer_that_is_none_is_told_and_not_read(
    server: Server, from_server: Any, said: dict[str, Any], error: str
) -> None:
    server.says(said.pop("text"), **said)
    outcome, host = from_server("max_mb = 1\n")
    assert error in str(outcome.error)
    assert not host.root.exists()


def test_a_server_that_is_slow_or_not_there_is_given_up(server: Server, from_server: Any) -> None:
    def drip(request: Any) -> None:
        request.send_response(200)
        request.end_headers()
        stopped.wait(4)

    stopped = threading.Event()
    server.answer = drip
    outcome, _ = from_server()
    stopped.set()
    assert "cannot be had (timed out)" in str(outcome.error)
    server.http.shutdown()
    server.http.server_close()
    assert "Connection refused" in str(from_server()[0].error)


def test_a_secret_comes_from_the_environment_and_goes_to_no_other_host(
    server: Server, from_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = 'headers = {Authorization = "LOG_TOKEN"}\n'
    assert "LOG_TOKEN: not set in the environment" in str(from_server(headers)[0].error)
    monkeypatch.setenv("LOG_TOKEN", "Bearer x")
    there = server.url.replace("127.0.0.1", "localhost")

    def answer(request: Any) -> None:
        place = {"/log": f"{server.url}/second", "/second": f"{there}/third"}.get(request.path)
        request.send_response(302 if place else 200)
        request.send_header("Content-Length", "0" if place else str(len(XID)))
        if place:
            request.send_header("Location", place)
        request.end_headers()
        request.wfile.write(b"" if place else XID.encode())

    server.answer = answer
    outcome, _ = from_server(headers)
    told = f"redirects to another origin, {there}/third: not followed; if it is right, state that"
    assert told in str(outcome.error)
    there = server.url
    outcome, host = from_server(headers)
    assert outcome.error is None
    assert [(path, sent.get("Authorization")) for path, sent in server.asked] == [
        ("/log", "Bearer x"), ("/second", "Bearer x"),
        ("/log", "Bearer x"), ("/second", "Bearer x"), ("/third", "Bearer x"),
    ]  # fmt: skip
    assert "Bearer" not in repr(host.rows("SELECT * FROM collected_windows"))


def test_an_address_with_times_is_asked_a_window_at_a_time(
    server: Server, from_server: Any
) -> None:
    server.says("")
    path = "/log?from={from}&until={until}"
    from_server("first_days = 1\nmargin_s = 0\n", path=path)
    from_server("first_days = 1\nmargin_s = 0\noverlap_minutes = 1\n", path=path, now=NOW + DAY)
    begin, end = int(NOW.timestamp()), 86_400
    assert [path for path, _ in server.asked] == [
        f"/log?from={begin - end}&until={begin}",
        f"/log?from={begin - 60}&until={begin + end}",
    ]


@pytest.mark.slow
def test_prometheus_is_asked_for_no_more_points_than_it_answers(
    server: Server, from_server: Any
) -> None:
    server.says(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}))
    source = (
        f'kind = "prometheus"\nurl = "{server.url}/"\nquery = ["up", "DCGM_FI_DEV_GPU_TEMP > 1"]\n'
        'reader = "gcm-health"\nstep_s = 1\nfirst_days = 1\nmargin_s = 0\n'
    )
    outcome, _ = from_server(source)
    assert outcome.error is None
    asked = [parse_qs(urlsplit(path).query) for path, _ in server.asked]
    spans = [int(query["end"][0]) - int(query["start"][0]) for query in asked]
    assert max(spans) <= 11_000
    assert sum(spans) == 2 * 86_400
    assert {query["query"][0] for query in asked} == {"up", "DCGM_FI_DEV_GPU_TEMP > 1"}
    server.says(json.dumps({"status": "error", "error": "query timed out"}), code=200)
    outcome, _ = from_server(source, now=NOW + DAY)
    assert "Prometheus says query timed out" in str(outcome.error)
    assert outcome.collected_until == NOW
    server.says("<html>login</html>")
    assert "is no answer of Prometheus" in str(from_server(source, now=NOW + DAY)[0].error)


XIDS = "DCGM_FI_DEV_XID_ERRORS"
OUTAGE = NOW - timedelta(hours=30)


def matrix(request: Any) -> None:
    """Answers query_range as Prometheus does: a sample a step, an XID from OUTAGE on."""
    asked = {name: text[0] for name, text in parse_qs(urlsplit(request.path).query).items()}
    start, end, step = (int(asked[name]) for name in ("start", "end", "step"))
    values = [[at, "79" if at >= OUTAGE.timestamp() else "0"] for at in range(start, end + 1, step)]
    labels = {"__name__": XIDS, "Hostname": "n1", "gpu": "0"}
    result = [{"metric": labels, "values": values}]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body.encode())


@pytest.mark.slow
def test_what_prometheus_answers_is_caught_up_in_slices_and_lies_in_the_table_once(
    server: Server, from_server: Any
) -> None:
    source = (
        f'kind = "prometheus"\nurl = "{server.url}"\nquery = ["{XIDS}"]\nreader = "prometheus-json"\n'
        "step_s = 600\nfirst_days = 3\nmargin_s = 0\noverlap_minutes = 60\n"
    )

    def answers_until(at: datetime) -> None:
        def answer(request: Any) -> None:
            end = int(parse_qs(urlsplit(request.path).query)["end"][0])
            if end > at.timestamp():
                request.send_error(503)
            else:
                matrix(request)

        server.answer = answer

    there = datetime(2026, 3, 1, tzinfo=UTC)
    answers_until(there)
    outcome, host = from_server(source)
    assert "answers 503" in str(outcome.error)
    assert outcome.collected_until == there  # what came before the failure is in the store
    held = "SELECT count(*), count(DISTINCT observed_at) FROM node_metrics"
    until = "SELECT max(until_at) FROM collected_windows WHERE result <> 'failed'"
    assert host.rows(held) == [(36 * 6 + 1,) * 2]
    assert host.rows(until) == [(there,)]
    server.answer = matrix
    begun, later = len(server.asked), NOW + timedelta(minutes=7, seconds=11)
    outcome, host = from_server(source, now=later)
    assert (outcome.error, outcome.collected_until) == (None, later)
    spans = [parse_qs(urlsplit(path).query) for path, _ in server.asked[begun:]]
    assert int(spans[0]["start"][0]) == int(there.timestamp()) - 3600
    outcome, host = from_server(source, now=later + timedelta(hours=1))
    n_samples = 73 * 6 + 1
    assert host.rows(held) == [(n_samples,) * 2]
    assert host.rows("SELECT node, gpu, xid, observed_at FROM health_events") == [
        ("n1", "0", 79, OUTAGE)
    ]
