"""README's lines for one's own cluster, run as they stand there, on records where it matters."""

from __future__ import annotations

import itertools
import os
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from app.actions import Options, ingest_files
from data.filters import Selection
from data.queries import fleet
from data.store import Store

ROOT = Path(__file__).resolve().parents[1]
(BLOCK,) = (
    block
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if "faultline ingest sacct" in block
)
FIELDS = re.search(r"--format=(\S+)", BLOCK)[1].split(",")  # type: ignore[index]
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
N_NODES, N_JOBS, N_IDLE = 24, 150, 2
XIDS = (79, 48, 74, 119)
SOURCES = {
    "sacct.txt": ("sacct", Options(timezone="Europe/Berlin")),
    "events.txt": ("sacctmgr-events", Options()),
    "nodes.txt": ("scontrol-nodes", Options()),
    "kernel-head1.log": ("kernel-log", Options()),
}
"""File of the block -> how it reads it."""


class Files(NamedTuple):
    """What the commands of Slurm and the journal print, and what is true."""

    texts: dict[str, str]
    explained: set[str]
    """Jobs that failed within a minute after an XID on a node of theirs."""


def local(at: datetime) -> str:
    """A time as Slurm prints it in Berlin, in winter."""
    return f"{at + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"


def generated(seed: int) -> Files:
    """Jobs one after the other on nodes by turns; a quarter fail, half of these after an XID."""
    chance = np.random.default_rng(seed)
    names = [f"hgx-{n:03d}" for n in range(N_NODES)]
    jobs, kernel, explained = ["|".join(FIELDS)], list[tuple[datetime, str]](), set[str]()
    for number in range(N_JOBS):
        size = int(chance.choice([1, 2, 4]))
        first = int(chance.integers(N_NODES - N_IDLE - size))
        start = BEGIN + timedelta(hours=2.0 * number, seconds=int(chance.integers(3000)))
        end = start + timedelta(seconds=int(chance.integers(1200, 5400)))
        state = "FAILED" if chance.random() < 0.25 else "COMPLETED"
        job_id = str(9000 + number)
        if state == "FAILED" and chance.random() < 0.5:
            explained.add(job_id)
            node = names[first + int(chance.integers(size))]
            kernel.append((end - timedelta(seconds=int(chance.integers(2, 58))), node))
        values = {
            "JobID": job_id, "JobIDRaw": job_id, "Cluster": "alps", "Partition": "gpu",
            "User": "ann", "Account": "lab", "JobName": "train", "State": state,
            "ExitCode": "1:0" if state == "FAILED" else "0:0", "Restarts": "0",
            "Submit": local(start - timedelta(minutes=5)), "Start": local(start),
            "Eligible": local(start - timedelta(minutes=5)), "End": local(end),
            "ElapsedRaw": str(int((end - start).total_seconds())), "Timelimit": "1-00:00:00",
            "NNodes": str(size), "NCPUS": str(64 * size),
            "AllocTRES": f"billing={size},cpu={64 * size},gres/gpu={8 * size},node={size}",
            "NodeList": f"hgx-[{first:03d}-{first + size - 1:03d}]", "SubmitLine": "sbatch x.sh",
        }  # fmt: skip
        jobs.append("|".join(values.get(name, "") for name in FIELDS))
    kernel.append((BEGIN + timedelta(hours=5), "login1"))  # no job runs there
    lines = [
        f"{at.isoformat(timespec='microseconds')} {node.upper() if at.second % 2 else node} kernel:"
        f" NVRM: Xid (PCI:0000:{17 + at.minute:02x}:00): {XIDS[at.second % 4]}, pid=1, name=python"
        for at, node in sorted(kernel)
    ]
    nodes = "\n".join(
        f"NodeName={name} Arch=x86_64\n   Gres=gpu:h100:8 State=IDLE\n" for name in names
    )
    events = (
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        f"alps|{names[3]}|{local(BEGIN)}|{local(BEGIN + timedelta(hours=3))}|DRAIN|disk|root\n"
    )
    texts = ("\n".join(jobs) + "\n", events, nodes, "\n".join(lines) + "\n")
    return Files(dict(zip(SOURCES, texts, strict=True)), explained)


def findings(root: Path) -> tuple[set[str], int, list[str]]:
    """Failed jobs that an event explains, nodes of the fleet, clusters."""
    with closing(Store.open(root)) as store:
        rows = store.rows(
            """SELECT job_id FROM failures JOIN jobs USING (cluster, attempt_key)
               WHERE method = 'health_event' AND cause <> 'unknown'"""
        )
        clusters = [name for (name,) in store.rows("SELECT cluster FROM clusters")]
        return {job_id for (job_id,) in rows}, fleet.node_count(store, Selection()), clusters


def stub(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.slow
def test_the_block_explains_every_failure_after_an_xid(tmp_path: Path) -> None:
    files = generated(1)
    bin_folder, work = tmp_path / "bin", tmp_path / "work"
    bin_folder.mkdir()
    work.mkdir()
    for command, name in zip(
        ("sacct", "sacctmgr", "scontrol", "journalctl"), files.texts, strict=True
    ):
        (tmp_path / name).write_text(files.texts[name])
        stub(bin_folder, command, f"cat {tmp_path / name}")
    python = f"{sys.executable} -m app.cli"
    stub(  # the port that serve takes by itself may be taken here
        bin_folder,
        "faultline",
        f'[ "$1" = serve ] && exec {python} serve --port 0\nexec {python} "$@"',
    )
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "FAULTLINE_STORE": str(work / "store"),
    }
    block = subprocess.Popen(
        ["bash", "-eu", "-c", BLOCK],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert block.stdout is not None
        line = next(line for line in block.stdout if "Faultline is at http" in line)
        address = next(word for word in line.split() if word.startswith("http"))
        with urllib.request.urlopen(f"{address.split('/?')[0]}/healthz", timeout=20) as answer:
            assert answer.status == 200
    finally:
        os.killpg(block.pid, signal.SIGINT)
        block.communicate(timeout=30)
    explained, n_nodes, clusters = findings(work / "store")
    assert files.explained
    assert explained == files.explained
    assert (n_nodes, clusters) == (N_NODES, ["alps"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_every_order_of_its_files_it_says_the_same(tmp_path: Path, seed: int) -> None:
    files = generated(seed)
    for name, text in files.texts.items():
        (tmp_path / name).write_text(text)
    for place, order in enumerate(itertools.permutations(SOURCES)):
        root = tmp_path / f"store-{place}"
        for name in order:
            source, options = SOURCES[name]
            ingest_files(root, source, [str(tmp_path / name)], options)
        assert findings(root) == (files.explained, N_NODES, ["alps"]), order
