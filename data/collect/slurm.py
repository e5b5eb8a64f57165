"""The commands of a Slurm host: accounting, node events, nodes, and this host's kernel log."""

from __future__ import annotations

import os
import re
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from data.collect.command import CommandError, answer
from data.collect.source import Fetched, Input, Timing, Window
from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from data.collect.source import Asking, Settings, Source
    from data.limits import Limits

SACCT_FIELDS = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "Account", "User", "QOS", "JobName", "State",
    "ExitCode", "Reason", "FailedNode", "Restarts", "Submit", "Eligible", "Start", "End",
    "ElapsedRaw", "Timelimit", "NNodes", "NCPUS", "AllocTRES", "NodeList", "SubmitLine",
)  # fmt: skip
EVENT_FIELDS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "Reason", "User")
TIMINGS = {
    "sacct": Timing(overlap_s=7200, look_back_days=7, margin_s=300, slice_s=86_400),
    "sacctmgr": Timing(overlap_s=7200, look_back_days=7, margin_s=300),
    "scontrol": Timing(),
    "journalctl": Timing(overlap_s=600, margin_s=60),
}
"""Command -> how it is asked. slurmdbd may lag behind the controller, and their clocks differ."""
READERS = {
    "sacct": "sacct",
    "sacctmgr": "sacctmgr-events",
    "scontrol": "scontrol-nodes",
    "journalctl": "kernel-log",
}
"""Command -> the reader of what it prints."""
_NEEDED = frozenset({"JobID", "JobIDRaw", "State", "Submit", "Start", "End"})
_JOBS_AT_ONCE = 500
_UNKNOWN_FIELD = re.compile(r"[Ii]nvalid field requested: \"?(\w+)")
_CLUSTER_NAME = re.compile(r"^\s*ClusterName[ \t]*=[ \t]*(\S+)", re.MULTILINE)
_UTC_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")
_BLIND = ("not seeing messages", "No journal files were")
"""What journalctl says, with exit code 0, where it may not or cannot read the system's journal."""


def cluster_name(folder: Path, limits: Limits) -> str | None:
    """Name of the cluster to which this host belongs; None where Slurm does not say it."""
    target = folder / "config"
    try:
        answer(("scontrol", "show", "config"), target, timeout_s=60, limits=limits)
    except CommandError:
        return None
    found = _CLUSTER_NAME.search(target.read_text("utf-8", "replace"))
    return found[1] if found else None


class _Command:
    """A command whose answer is a file for one reader."""

    of_slurm = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def _answer(
        self, asking: Asking, command: Sequence[str], name: str, **environment: str
    ) -> tuple[Path, str]:
        """The file with what a command prints, and what it says on standard error."""
        target = asking.folder / name
        said = answer(
            command,
            target,
            timeout_s=self.settings.timeout_s,
            limits=asking.limits,
            environment=environment,
        )
        return target, said


class Sacct(_Command):
    """Accounting: all attempts that were pending, running or ended in a stretch of time.

    Jobs that had not ended when they were seen last, and are in no answer, are asked for by their
    number: so the end of each is known, however late it was written.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._fields = list(SACCT_FIELDS)

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """An answer a day, then the jobs that were not in any."""
        answered: set[str] = set()
        for number, window in enumerate(
            self.settings.timing.windows(asking.known, asking.now, asking.since)
        ):
            period = ("-S", _local(window.from_at), "-E", _local(window.until_at))
            fetched = self._asked(asking, period, f"sacct-{number}", window)
            answered |= _job_numbers(fetched.inputs[0].path)
            yield fetched
        missing = sorted(set(asking.known.open_jobs) - answered)
        for first in range(0, len(missing), _JOBS_AT_ONCE):
            asked = missing[first : first + _JOBS_AT_ONCE]
            yield self._ended(asking, asked, f"sacct-jobs-{first}")

    def _asked(
        self, asking: Asking, which: Sequence[str], name: str, window: Window | None
    ) -> Fetched:
        """The answer for some jobs; fields that this version of Slurm lacks are left out."""
        while True:
            command = (
                *("sacct", "-a", "-X", "-P", "--duplicates", *which),
                f"--format={','.join(self._fields)}",
            )
            try:
                path, _ = self._answer(asking, command, name)
                break
            except CommandError as error:
                self._leave_out(error)
        if path.stat().st_size == 0:
            raise SourceError(
                "sacct: printed nothing, not even its header: is the accounting storage enabled?"
            )
        return Fetched((Input(path, _called(command)),), window, _shown(command))

    def _ended(self, asking: Asking, numbers: Sequence[str], name: str) -> Fetched:
        """The records of jobs by their numbers; says how many the accounting has no more."""
        # a begin before any job: else only those of today are found
        which = ("-S", "1970-01-02T00:00:00", "-j", ",".join(numbers))
        fetched = self._asked(asking, which, name, None)
        lost = len(set(numbers) - _job_numbers(fetched.inputs[0].path))
        called = f"sacct -j {numbers[0]}{',...' * (len(numbers) > 1)} ({len(numbers):,} jobs)"
        notice = f"jobs that had not ended and that the accounting has no more: {lost:,}"
        return Fetched(
            (Input(fetched.inputs[0].path, called),),
            None,
            called,
            notices=(notice,) if lost else (),
        )

    def _leave_out(self, error: CommandError) -> None:
        """Takes a field from the list that this Slurm does not know; raises any other error."""
        unknown = _UNKNOWN_FIELD.search(error.said)
        field = next((each for each in self._fields if unknown and each == unknown[1]), None)
        if field is None or field in _NEEDED:
            raise error
        self._fields.remove(field)


class SacctmgrEvents(_Command):
    """When nodes were down or drained."""

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """One answer a stretch of time."""
        timing = self.settings.timing
        for number, window in enumerate(timing.windows(asking.known, asking.now, asking.since)):
            command = (
                *("sacctmgr", "-P", "show", "event"),
                *(f"Start={_local(window.from_at)}", f"End={_local(window.until_at)}"),
                f"format={','.join(EVENT_FIELDS)}",
            )
            path, _ = self._answer(asking, command, f"events-{number}")
            if path.stat().st_size == 0:
                raise SourceError(
                    "sacctmgr: printed nothing, not even its header: does slurmdbd answer?"
                )
            yield Fetched((Input(path, _called(command)),), window, _shown(command))


class ScontrolNodes(_Command):
    """What nodes the cluster has now."""

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """One answer, of now."""
        command = ("scontrol", "show", "node")
        path, _ = self._answer(asking, command, "nodes", SLURM_TIME_FORMAT="standard")
        if path.stat().st_size == 0:
            raise SourceError("scontrol: shows no node: does slurmctld answer?")
        now = asking.now.replace(microsecond=0)
        os.utime(path, (now.timestamp(), now.timestamp()))  # the answer names no time
        yield Fetched((Input(path, _called(command)),), Window(now, now), _shown(command))


class Journal(_Command):
    """The kernel's lines in the journal of this host, of all its boots.

    `journalctl -k` would show the present boot alone, and what ended the one before not at all. The
    form is that of README's export, so that a line read by both is one event.
    """

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """One answer; it covers no time before the journal's first entry."""
        timing = self.settings.timing
        for number, window in enumerate(timing.windows(asking.known, asking.now, asking.since)):
            command = (
                *("journalctl", "--no-pager", "-o", "short-iso-precise", "_TRANSPORT=kernel"),
                *("--since", _local(window.from_at, " "), "--until", _local(window.until_at, " ")),
            )
            path, said = self._answer(asking, command, f"kernel-{number}")
            if any(text in said for text in _BLIND):
                raise SourceError(
                    "journalctl: may not read the system's journal or there is none: run it as a "
                    "member of the group systemd-journal, and keep a journal (Storage= in "
                    "journald.conf)"
                )
            inputs = (Input(path, _called(command)),) if _without_remarks(path) else ()
            begin = self._first_entry(asking)
            if begin is not None and window.from_at is not None and begin > window.from_at:
                window = Window(min(begin, window.until_at), window.until_at)
            yield Fetched(inputs, window, _shown(command))

    def _first_entry(self, asking: Asking) -> datetime | None:
        """Time of the oldest entry of the journal; None where it cannot be told."""
        command = ("journalctl", "--no-pager", "--list-boots")
        try:
            path, _ = self._answer(asking, command, "boots")
        except CommandError:
            return None
        found = _UTC_TIME.search(path.read_text("utf-8", "replace"))
        return None if found is None else datetime.fromisoformat(found[1]).replace(tzinfo=UTC)


COMMANDS: Mapping[str, Callable[[Settings], Source]] = {
    "sacct": Sacct,
    "sacctmgr": SacctmgrEvents,
    "scontrol": ScontrolNodes,
    "journalctl": Journal,
}
"""Command -> the source that asks it."""


def _local(at: datetime | None, between: str = "T") -> str:
    """A time as a command takes it whose zone is UTC."""
    if at is None:
        raise ValueError("a command is asked from a time on")
    return f"{at:%Y-%m-%d}{between}{at:%H:%M:%S}"


def _shown(command: Sequence[str]) -> str:
    """A command as it would be typed."""
    return f"TZ=UTC {shlex.join(command)}"


def _called(command: Sequence[str]) -> str:
    """The same without what is asked of each record."""
    return _shown([word for word in command if not word.startswith(("--format=", "format="))])


def _job_numbers(path: Path) -> set[str]:
    """Numbers of the jobs in an answer of sacct."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        names = [name.strip().lower() for name in next(lines, "").split("|")]
        place = names.index("jobidraw") if "jobidraw" in names else 0
        rows = (line.split("|", place + 1) for line in lines)
        return {row[place].strip() for row in rows if len(row) > place}


def _without_remarks(path: Path) -> bool:
    """Takes out the lines of journalctl's own, e.g. `-- No entries --`; whether others are left."""
    aside = path.with_name(f"{path.name}.all")
    path.rename(aside)
    n_lines = 0
    with aside.open("rb") as lines, path.open("wb") as kept:
        for line in lines:
            if not line.startswith(b"-- "):
                kept.write(line)
                n_lines += 1
    aside.unlink()
    return n_lines > 0
