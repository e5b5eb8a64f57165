"""A store whose incidents have a history: a crash loop, one merged, one that is none any more."""

from __future__ import annotations

import time
from contextlib import closing
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import local_script_runner

from app.actions import Options, ingest_files
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADER = (
    "JobID|Cluster|Partition|Account|User|JobName|State|Submit|Start|End|NNodes|AllocTRES|NodeList|"
    "FailedNode|Restarts\n"
)
LOOP = "".join(
    f"7|c|gpu|x|u|train|NODE_FAIL|2026-01-05T0{n}:00:00|2026-01-05T0{n}:05:00|"
    f"2026-01-05T0{n}:50:00|2|gres/gpu=16|n[1-2]|n1|{n}\n"
    for n in range(4)
)
QUIET = (
    "8|c|gpu|x|u|eval|COMPLETED|2026-01-04T00:00:00|2026-01-04T00:00:00|2026-01-06T00:00:00|1|"
    "gres/gpu=8|n3||0\n"
)
SHORT_LIVED = "9|c|gpu|x|u|eval|{}|2026-01-03T00:00:00|2026-01-03T00:00:00|{}|1|gres/gpu=8|n4||0\n"
HOSTILE = "GPU has fallen off the bus. | <script>alert(1)</script> ``` [x](http://x.example) **b**"
ECC = (
    "2026-01-04T10:05:00+0000 n3 kernel: NVRM: Xid (PCI:0000:07:00): 48, pid=1, "
    "An uncorrectable double bit error (DBE) has been detected\n"
)
FELL = "2026-01-04T10:{:02d}:00+0000 n3 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, {}\n"


@pytest.fixture(scope="session", autouse=True)
def _components_are_looked_for_once() -> Iterator[None]:
    """An AppTest looks through every installed package at each run, a third of its time."""
    once = cache(manifest_scanner.scan_component_manifests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _a_page_is_looked_at_less_often() -> Iterator[None]:
    """An AppTest asks a thousand times a second whether the page is done, and slows it by that."""
    patient = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(0.01))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "time", patient)
        yield


@pytest.fixture(scope="session")
def incident_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Read in three turns; only to be read, and held open.

    Job 7 fails four times in a row on n1. Two events 40 minutes apart on n3 are two incidents
    until those between them arrive: the later one is merged into the earlier. Job 9 lost its node
    at first, then its final record says that it completed: its incident is retired.
    """
    folder = tmp_path_factory.mktemp("incidents")
    root = folder / "store"
    turns = [
        ("sacct", HEADER + LOOP + QUIET + SHORT_LIVED.format("NODE_FAIL", "2026-01-03T01:00:00")),
        ("kernel-log", FELL.format(0, HOSTILE) + ECC + FELL.format(40, HOSTILE)),
        ("kernel-log", "".join(FELL.format(minute, HOSTILE) for minute in (10, 20, 30))),
        ("sacct", HEADER + SHORT_LIVED.format("COMPLETED", "2026-01-03T02:00:00")),
    ]
    for turn, (source, text) in enumerate(turns):
        path = folder / f"{turn}.txt"
        path.write_text(text, encoding="utf-8")
        ingest_files(root, source, [str(path)], Options(cluster="c", timezone="UTC"))
    with closing(Store.open(root)):
        yield root


@pytest.fixture(scope="session")
def watched_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty days of a node of 8 GPUs, lost on every third, whose kernel was listened to; only to be
    read."""
    folder = tmp_path_factory.mktemp("watched")
    head = "JobID|Cluster|State|Start|End|NNodes|AllocTRES|NodeList"
    days = [f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(60)]
    jobs = [
        f"{number}|c|{'NODE_FAIL' if number % 3 == 0 else 'COMPLETED'}|{day}T00:00:00|"
        f"{day}T23:00:00|1|gres/gpu=8|n1"
        for number, day in enumerate(days)
    ]
    lines = [
        f"{day}T12:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:07:00): 13, pid=1, name=a"
        for day in days
    ]
    (folder / "sacct.txt").write_text("\n".join([head, *jobs]) + "\n")
    (folder / "kernel.log").write_text("\n".join(lines) + "\n")
    root = folder / "store"
    options = Options(cluster="c", timezone="UTC")
    for source, file in (("sacct", "sacct.txt"), ("kernel-log", "kernel.log")):
        ingest_files(root, source, [str(folder / file)], options)
    return root
