"""A real server in a process of its own, with a page of one line."""

import http.client
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from data.sandbox import landlock_missing

ROOT = Path(__file__).resolve().parents[3]
START = """
import sys
from pathlib import Path, PosixPath
from app.server import serve
serve(Path("a-store"), script=Path(sys.argv[1]), port=int(sys.argv[2]), **eval(sys.argv[3]))
"""


@dataclass
class Server:
    process: "subprocess.Popen[str]"
    line: str

    @property
    def url(self) -> str:
        found = re.search(r"http://\S+", self.line)
        assert found is not None, self.line
        return found[0]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def ask(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Connection": "close"} | names)
        return connection.getresponse()

    def stop(self, sign: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=20)
        # A system without Landlock says so at each start: tests are of what else is told.
        return self.process.returncode, out, err.replace(f"{landlock_missing()}\n", "")


def start(folder: Path, port: int = 0, **options: object) -> Server:
    script = folder / "main.py"
    script.write_text("import os, streamlit as st\nst.write(os.environ['FAULTLINE_STORE'])\n")
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(script), str(port), repr(options)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return Server(process, process.stdout.readline())


def cookie_of(server: Server) -> str:
    answer = server.ask(server.url.removeprefix(f"http://127.0.0.1:{server.port}"))
    answer.read()  # which closes its socket
    assert (answer.status, answer.headers["location"]) == (303, "./")
    return str(answer.headers["set-cookie"]).partition(";")[0]
