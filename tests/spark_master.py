"""A standalone master of Spark with two workers on this machine, for tests of class `service`."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Running(NamedTuple):
    """A master with its workers."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    work: Path
    """Folder of what the workers were given: a folder an application, in it one an executor."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def skip_without_spark() -> None:
    if find_spec("pyspark") is None:
        pytest.skip("no Spark: pip install -e .[spark]")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark runs on")


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """A standalone master with two workers of a core each."""
    skip_without_spark()
    import pyspark

    home, port, work = Path(pyspark.__file__).parent, free_port(), folder / "work"
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(work),
    }  # fmt: skip
    begin = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]

    def start(what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [begin[0], f"{begin[1]}.{what}", "--webui-port", "0", *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=environment, **quiet)  # type: ignore[call-overload, no-any-return]

    url = f"spark://127.0.0.1:{port}"
    started = [start("master.Master", "--host", "127.0.0.1", "--port", str(port))]
    try:
        until = time.monotonic() + 120
        while not _answers(port):
            assert time.monotonic() < until
            time.sleep(0.2)
        for _ in range(2):
            worker = ("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            started.append(start(*worker, url))
        yield Running(url, started[1:], work)
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def worker_killed(master: Running, after_s: float = 2.0) -> Iterator[Callable[[str], None]]:
    """What a reduction reports to; a worker dies so long after it began on its first day.

    The reduction has to go on by then: one that had ended would show nothing.
    """
    killed = Timer(after_s, master.workers[0].kill)

    def begun(text: str) -> None:
        if re.match(r"\d{4}-\d\d-\d\d: ", text) and killed.ident is None:
            killed.start()

    yield begun
    assert killed.finished.is_set()
    assert master.workers[0].wait() == -9
