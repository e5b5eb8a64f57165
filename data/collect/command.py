"""Commands of this host whose answer is a source: run with a time limit, read only when whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.limits import Limits

ENVIRONMENT = {
    "TZ": "UTC",
    "SLURM_TIME_FORMAT": "%s",
    "LC_ALL": "C.UTF-8",
    "SYSTEMD_COLORS": "0",
}
"""No time without its zone: Slurm's are seconds since 1970, and what ignores that is UTC."""
_LOOK_S = 0.5
_TOLD = 300
"""Characters of an error that are told."""


class CommandError(SourceError):
    """A command that could not be run, failed, hung or was cut off."""

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(message)
        self.said = said
        """What it wrote to standard error."""


def answer(
    command: Sequence[str],
    target: Path,
    *,
    timeout_s: float,
    limits: Limits,
    environment: dict[str, str] | None = None,
) -> str:
    """Writes what a command prints to `target`; what it says on standard error.

    Raises
    ------
    CommandError
        Where it is not there, exits with another code than 0, runs longer than `timeout_s`, prints
        more than `limits.unpacked_gb`, or ends in the middle of a line.
    """
    program = shutil.which(command[0])
    if program is None:
        raise CommandError(f"{command[0]}: no such command on the PATH of this host")
    errors = target.with_name(f"{target.name}.stderr")
    with target.open("wb") as out, errors.open("wb") as err:
        try:
            process = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **ENVIRONMENT, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(
                f"{program}: cannot be run ({error.strerror}): check access"
            ) from None
        try:
            code = _waited_for(process, command[0], target, timeout_s=timeout_s, limits=limits)
        finally:
            _end(process)
    said = errors.read_text("utf-8", "replace").strip()
    errors.unlink()
    if code != 0:
        ended = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
        raise CommandError(f"{command[0]} {ended}: {_shown(said)}", said)
    if not _ends_a_line(target):
        raise CommandError(f"{command[0]}: its answer ends in the middle of a line", said)
    return said


def _waited_for(
    process: subprocess.Popen[bytes],
    name: str,
    target: Path,
    *,
    timeout_s: float,
    limits: Limits,
) -> int:
    """Exit code of a command that keeps its limits."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            return process.wait(min(_LOOK_S, max(0.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                raise CommandError(f"{name}: gave no answer within {timeout_s:g} s") from None
            if target.stat().st_size > limits.unpacked_gb * 1e9:
                raise CommandError(
                    f"{name}: printed more than the limit of {limits.unpacked_gb:g} GB"
                ) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command that still runs, and what it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ends_a_line(path: Path) -> bool:
    """Whether a file is empty or ends with a line end."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        return stream.read() in (b"", b"\n")


def _shown(said: str) -> str:
    """What a command said, on one line, cut where it is long."""
    line = " ".join(said.split())
    return (line if len(line) <= _TOLD else f"{line[:_TOLD]}...") or "it does not say why"
