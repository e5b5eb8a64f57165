"""A Slurm host that answers from a small accounting, as of a time that a test states."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from data.collect import collect, default_sources
from data.collect.collecting import Collected, Outcome
from data.ingest import Options
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COMMON = """#!/bin/sh
me=${0##*/}
echo "$me TZ=$TZ $*" >> "$FAKE/calls"
[ -f "$FAKE/$me.hangs" ] && { sleep 60 & echo $! > "$FAKE/hangs.pid"; wait; }
[ -f "$FAKE/$me.says" ] && cat "$FAKE/$me.says" >&2
[ -f "$FAKE/$me.fails" ] && exit 1
"""
SACCT = """
for word in "$@"; do
  case "$last" in -S) from=$word;; -E) until=$word;; -j) jobs=$word;; esac
  case "$word" in *SubmitLine*) [ -f "$FAKE/old" ] && {
    echo 'sacct: fatal: Invalid field requested: "SubmitLine"' >&2; exit 1; };; esac
  last=$word
done
echo "JobID|JobIDRaw|Cluster|Partition|Account|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList"
[ -f "$FAKE/purged" ] && exit 0
exec awk -v from="$from" -v until="${until:-9}" -v jobs=",$jobs," -v now="$(cat "$FAKE/now")" '
  $2 > now { next }
  { id = $1; submit = $3; start = $5; end = $7; ended = ($6 <= now && $10 <= now)
    if (jobs == ",,") { if ($2 >= until || (ended && $6 < from)) next }
    else if (index(jobs, "," id ",") == 0) next
    state = ended ? $8 : ($4 <= now ? "RUNNING" : "PENDING")
    if (!ended) end = "Unknown"
    if (state == "PENDING") { start = "Unknown"; node = "None assigned" } else node = $9
    print id "|" id "|alps|gpu|x|ann|" state "|" submit "|" start "|" end "|1|gres/gpu=8|" node }
' "$FAKE/jobs"
"""
SACCTMGR = """
[ -f "$FAKE/silent" ] && exit 0
echo "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
cat "$FAKE/events" 2>/dev/null
exit 0
"""
SCONTROL = """
[ "$2" = config ] && echo "ClusterName             = alps"
[ "$2" = node ] && echo "NodeName=n1 Arch=x86_64 CoresPerSocket=64 Gres=gpu:8 State=IDLE"
exit 0
"""
JOURNALCTL = """
case "$*" in
  *--list-boots*) cat "$FAKE/boots" 2>/dev/null;;
  *) [ -f "$FAKE/kernel" ] && cat "$FAKE/kernel" || echo "-- No entries --";;
esac
exit 0
"""
COMMANDS = {"sacct": SACCT, "sacctmgr": SACCTMGR, "scontrol": SCONTROL, "journalctl": JOURNALCTL}


def iso(at: datetime) -> str:
    """A time as commands are asked with it."""
    return f"{at:%Y-%m-%dT%H:%M:%S}"


@dataclass
class Host:
    """The host, and the store that it fills."""

    folder: Path
    root: Path

    def job(
        self,
        number: int,
        submit_at: datetime,
        hours: tuple[float, float],
        *,
        state: str = "COMPLETED",
        node: str = "n1",
        written_at: datetime | None = None,
    ) -> None:
        """A job that starts and ends so many hours after its submit; its end is in the accounting
        from `written_at` on.
        """
        start_at, end_at = (submit_at + each * HOUR for each in hours)
        times = (f"{iso(at)} {int(at.timestamp())}" for at in (submit_at, start_at, end_at))
        with (self.folder / "jobs").open("a", encoding="utf-8") as jobs:
            jobs.write(f"{number} {' '.join(times)} {state} {node} {iso(written_at or end_at)}\n")

    def says(self, name: str, text: str = "") -> Path:
        """Puts a file there that the commands look at."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    @property
    def calls(self) -> list[str]:
        """What was asked so far."""
        path = self.folder / "calls"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @property
    def asked(self) -> list[str]:
        """What sacct was asked so far."""
        return [call for call in self.calls if call.startswith("sacct TZ")]

    def collect(
        self, now: datetime, sources: Sequence[Any] | None = None, **asked: Any
    ) -> Collected:
        """Collects as of a time."""
        self.says("now", iso(now))
        return collect(
            self.root,
            default_sources() if sources is None else sources,
            Options(),
            now=now,
            **asked,
        )

    def outcome(self, name: str, now: datetime, **asked: Any) -> Outcome:
        """What became of one source, by the beginning of its name."""
        found = self.collect(now, **asked).outcomes
        return next(each for each in found if each.settings.name.startswith(name))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the store."""
        with closing(Store.open(self.root)) as store:
            return store.rows(sql)


@pytest.fixture
def host_at(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Host]:
    """Makes a host of its own, whose commands are the ones on the PATH from then on."""

    def make() -> Host:
        folder = tmp_path_factory.mktemp("host")
        (folder / "bin").mkdir()
        for name, script in COMMANDS.items():
            path = folder / "bin" / name
            path.write_text(COMMON + script, encoding="utf-8")
            path.chmod(0o755)
        (folder / "jobs").touch()
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("FAKE", str(folder))
        return Host(folder, folder / "store")

    return make


@pytest.fixture
def host(host_at: Callable[[], Host]) -> Host:
    """A host with an empty accounting."""
    return host_at()
