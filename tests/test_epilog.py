"""The epilog of Slurm that tells an owner why a job failed, and never holds a job up."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EPILOG = ROOT / "docs/epilog.sh"
LOG = "step 100 loss 2.31\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"
pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("flock", "setsid", "timeout")),
    reason="needs flock, setsid and timeout of Linux",
)


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Site:
    """A host with a faultline, a sendmail that keeps what it is given, and a job's log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mail = folder / "mail"
        (folder / "slurm-7.out").write_text(LOG)
        program(
            folder / "sendmail", f'cat > "{self.mail}.new" && mv "{self.mail}.new" "{self.mail}"'
        )
        program(
            folder / "faultline",
            f'cd "{ROOT}" && PYTHONPATH="{ROOT}" exec "{sys.executable}" -m app.cli "$@"',
        )

    def ends(self, *how: str, **said: str) -> float:
        """A job ends; seconds that its epilog takes."""
        environment = {
            "PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "SLURM_JOB_USER": getpass.getuser(),
            "SLURM_JOB_EXIT_CODE": "256", "SLURM_JOB_NAME": "train\nBcc: all@example.org",
            "SLURM_JOB_STDERR": str(self.folder / "slurm-7.out"),
            "FAULTLINE": str(self.folder / "faultline"),
            "FAULTLINE_STORE": str(self.folder / "store"), "LOCKS": str(self.folder / "locks"),
            "SENDMAIL": str(self.folder / "sendmail"), "MAIL_DOMAIN": "example.org",
        } | said  # fmt: skip
        begun = time.monotonic()
        done = subprocess.run([EPILOG, *how], env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return time.monotonic() - begun

    def mailed(self, seconds: float = 30.0) -> str | None:
        """What was mailed within so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.mail.exists():
            time.sleep(0.05)
        return self.mail.read_text() if self.mail.exists() else None


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_owner_is_told_the_cause_and_the_line_that_says_it(site: Site) -> None:
    assert site.ends() < 5.0
    mail = site.mailed()
    assert mail is not None
    head, _, body = mail.partition("\n\n")
    assert f"To: {getpass.getuser()}@example.org" in head.splitlines()
    assert "Subject: Job 7 failed: why" in head.splitlines()
    assert "Bcc" not in head
    assert "The log says gpu_memory (hardware)" in body
    assert "uncorrectable ECC error encountered" in body


def test_a_faultline_that_hangs_holds_nothing_up_and_is_ended(site: Site) -> None:
    pid = site.folder / "pid"
    program(site.folder / "faultline", f'echo $$ > "{pid}"; exec sleep 300')
    assert site.ends(SECONDS_MOST="1") < 5.0
    until = time.monotonic() + 20
    while time.monotonic() < until and not (pid.exists() and not _lives(pid)):
        time.sleep(0.05)
    assert pid.exists()
    assert not _lives(pid)
    assert not site.mail.exists()


def _lives(pid: Path) -> bool:
    number = pid.read_text().strip()
    return not number or Path(f"/proc/{number}").exists()


@pytest.mark.parametrize(
    "said",
    [
        {"SLURM_JOB_EXIT_CODE": "0"},
        {"FAULTLINE": "/nowhere/faultline"},
        {"SLURM_JOB_ID": ""},
        {"SLURM_JOB_STDERR": "/nowhere/slurm-7.out"},
        {"SENDMAIL": "/nowhere/sendmail"},
    ],
)
def test_where_anything_is_missing_the_job_ends_as_ever(site: Site, said: dict[str, str]) -> None:
    program(site.folder / "faultline", 'cat > /dev/null; echo "The log does not say what failed"')
    assert site.ends(**said) < 5.0
    assert site.mailed(0.3) is None


@pytest.mark.parametrize("folder", ["missing", "own", "open to all", "a link"])
def test_locks_are_made_in_a_folder_that_is_its_own_alone(site: Site, folder: str) -> None:
    program(site.folder / "faultline", 'cat > /dev/null; echo "The log says gpu_memory"')
    locks, victim = site.folder / "locks", site.folder / "victim"
    victim.write_text("kept")
    real = site.folder / "elsewhere" if folder == "a link" else locks
    if folder != "missing":
        real.mkdir()
        real.chmod(0o777 if folder == "open to all" else 0o700)
    if folder == "a link":
        locks.symlink_to(real)
    if folder in ("a link", "open to all"):
        (real / "1").symlink_to(victim)
    site.ends("work", LOCKS=f"{locks}/")
    assert victim.read_text() == "kept"
    assert site.mail.exists() == (folder in ("missing", "own"))


@pytest.mark.slow
def test_of_jobs_that_end_together_only_some_are_looked_at(site: Site) -> None:
    looked = site.folder / "looked"
    program(site.folder / "faultline", f'cat > /dev/null; echo x >> "{looked}"; sleep 2; exit 1')
    for _ in range(4):
        site.ends(AT_ONCE="1", SECONDS_MOST="5")
    time.sleep(1.0)
    assert looked.read_text() == "x\n"
