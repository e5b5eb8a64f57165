"""faultline serve: prints where the dashboard is, and refuses what it cannot listen on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]


def test_it_prints_a_link_that_answers_until_it_is_stopped(demo_store: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--store", demo_store]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = server.stdout.readline()
        assert line.startswith("Faultline is at http://127.0.0.1:")
        link = line.split()[3]
        assert "?token=" in link
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(link, timeout=20) as answer:
            assert (answer.status, "token" in answer.url) == (200, False)
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert (server.returncode, out, err) == (0, "", "")


@pytest.mark.slow
def test_it_stops_without_a_word_while_its_snapshot_is_open(demo_store: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--store", demo_store]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    files = Path(f"/proc/{server.pid}/fd")
    try:
        assert server.stdout.readline().startswith("Faultline is at http://127.0.0.1:")
        until = time.monotonic() + 60
        while not any("warehouse" in str(file.resolve()) for file in files.iterdir()):
            assert time.monotonic() < until
            time.sleep(0.2)
        time.sleep(1)
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert (server.returncode, out, err) == (0, "", "")


REFUSED = {
    "no port": (["--port", "99999"], "port must be between 0 and 65535, got 99999"),
    "a negative port": (["--port", "-1"], "port must be between 0 and 65535"),
    "a port in words": (["--port", "http"], "invalid int value: 'http'"),
    "no address of this machine": (["--host", "203.0.113.1"], "pass another --host"),
    "a name that is none": (["--host", "no host"], "host 'no host' is not known"),
    "a file as store": (["--store", __file__], "is a file: name a folder"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_where_it_cannot_listen_it_says_so(
    refused: Callable[..., str], demo_store: Path, case: tuple[list[str], str]
) -> None:
    options, message = case
    before = dict(os.environ)
    store = [] if "--store" in options else ["--store", demo_store]
    assert message in refused("serve", *store, *options)
    assert dict(os.environ) == before
