"""faultline collect: what it prints, how it ends, and what others see meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from data.audit import Audit
from data.publish import writer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
LINE = (
    "2026-03-02T06:00:{second:02}+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU fell off\n"
)
SACCT = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
{n}|c|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A folder with one kernel log that holds a line without a host, and one that is not there."""
    lines = [LINE.format(second=second) for second in (1, 2)]
    lines.append("[Mon Mar  2 06:00:03 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU fell off\n")
    (tmp_path / "kern.log").write_text("".join(lines))
    path = tmp_path / "collect.toml"
    folder = '[[source]]\nkind = "folder"\nreader = "kernel-log"\ncluster = "c"\n'
    path.write_text(
        f'{folder}name = "there"\npath = "kern.log*"\n{folder}name = "gone"\npath = "none/x"\n'
    )
    return path


def test_each_source_is_told_and_one_that_failed_ends_it_with_2(
    faultline: Callable[..., Any], config: Path
) -> None:
    store = config.parent / "store"
    said = faultline("collect", "--config", config, "--store", store)
    assert said.code == 2
    found = said.json
    assert (found["rows_read"], found["rows_kept"], found["tables"]) == (3, 2, {"health_events": 2})
    there, gone = found["sources"]
    assert (there["name"], there["source"], there["rows_kept"], there["error"]) == (
        "there", "kernel-log", 2, None,
    )  # fmt: skip
    assert there["ingest_id"] == "1.1"
    assert found["collected_until"] == {"there": there["collected_until"], "gone": None}
    assert (gone["rows_read"], gone["collected_until"]) == (0, None)
    assert gone["error"].endswith("none/x: no such file or folder: check the path")
    assert said.err.splitlines() == [
        "faultline collect: there: 1 of 3 records rejected: no host on the line: pass --node (1)",
        f"faultline collect: gone: {gone['error']}",
    ], "cron mails what went wrong"
    assert [text for text in found["notices"] if "named by logs alone" in text]
    kept = [(entry.action, entry.target) for entry in Audit(store).entries()]
    assert kept == [("collect", "gone"), ("collect", "there")]
    info = faultline("info", "--store", store)
    assert info.json["collected_until"] == found["collected_until"]
    assert "gone (c): never collected; the last attempt failed: " in info.err
    table = faultline("info", "--store", store, "--format", "table").out
    assert "Collected until" in table


def test_a_mistake_is_one_line(refused: Callable[..., str], tmp_path: Path, config: Path) -> None:
    assert "cannot be read" in refused(
        "collect", "--config", tmp_path / "none", "--store", tmp_path
    )
    told = refused("collect", "--config", config, "--since", "2999-01-01", "--store", tmp_path)
    assert "--since 2999-01-01T00:00 is not over yet" in told
    assert "is no ISO time" in refused("collect", "--since", "yesterday")


def test_the_demo_takes_no_real_data(
    refused: Callable[..., str], demo_store: Path, config: Path
) -> None:
    assert "never mixes with real data" in refused(
        "collect", "--config", config, "--store", demo_store
    )


def test_an_ingest_waits_for_another_writer_as_long_as_it_may(
    faultline: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT.format(n=1))
    ingest = ("ingest", "sacct", tmp_path / "sacct.txt", "--store", tmp_path / "store")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with writer(tmp_path / "store"):
            inside.set()
            leave.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(60)
    assert "let --wait SECONDS wait for it" in refused(*ingest)
    threading.Timer(0.3, leave.set).start()
    assert faultline(*ingest, "--wait", "60").json["rows_kept"] == 1
    other.join()


WRITER = """
import sys, itertools, time
from pathlib import Path
from app.actions import Options, ingest_files
folder, text = Path(sys.argv[1]), sys.argv[2]
for n in itertools.count(2):
    (folder / "next.txt").write_text(text.replace("{n}", str(n)))
    ingest_files(folder / "store", "sacct", [str(folder / "next.txt")], Options(), wait_s=60)
    print(n, flush=True)
    time.sleep(0.3)
"""


READING = (
    ("info",), ("ledger",), ("sql", "SELECT count(*) FROM gpu_time HAVING count(*) > 0"),
    ("mttf",), ("failures",), ("incidents",), ("ettr",), ("ingest", "--list"),
    ("sql", "SELECT count(*) FROM jobs"), ("report", "--as", "md"), ("backup",),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("commands", [READING])
def test_nothing_that_reads_fails_because_someone_writes(
    faultline: Callable[..., Any], tmp_path: Path, commands: tuple[tuple[str, ...], ...]
) -> None:
    (tmp_path / "first.txt").write_text(SACCT.format(n=1))
    store = ("--store", tmp_path / "store")
    assert faultline("ingest", "sacct", tmp_path / "first.txt", *store).code == 0
    writing = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), SACCT], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert writing.stdout is not None
    try:
        assert writing.stdout.readline() == b"2\n"
        places = {"backup": (tmp_path / "copy",), "report": ("--out", tmp_path / "report")}
        for command in commands:
            said = faultline(*command, *places.get(command[0], ()), *store)
            assert said.code == 0, (command, said.err)
            assert json.loads(said.out), command
        assert writing.poll() is None
    finally:
        writing.kill()
        writing.communicate()
