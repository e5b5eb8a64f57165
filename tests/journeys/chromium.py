"""The Chromium that the browser tests drive; run as a script, it gets one where there is none."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REMEDY = "install one (Debian: apt-get install chromium) or name one with CHROMIUM=/its/path"
PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
)


class ChromiumMissingError(RuntimeError):
    """There is no Chromium that starts; the message says what to do."""


@functools.cache
def find_chromium() -> Path:
    """Program of $CHROMIUM, of the PATH or of Playwright, the first that starts.

    Raises
    ------
    ChromiumMissingError
        There is none, or $CHROMIUM does not start.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        program = shutil.which(named)
        if program is not None and _starts(program):
            return Path(program)
        raise ChromiumMissingError(f"CHROMIUM={named} does not start: {REMEDY}")
    for name in NAMES:
        program = shutil.which(name)
        if program is not None and _starts(program):
            return Path(program)
    own = _run([sys.executable, "-c", PLAYWRIGHT], seconds=60)
    if own is not None and _starts(own.strip()):
        return Path(own.strip())
    raise ChromiumMissingError(f"no Chromium starts on this machine: {REMEDY}")


def _starts(program: str) -> bool:
    """Whether it answers: a snap's stand-in or one without its libraries does not."""
    return _run([program, "--version"], seconds=60) is not None


def _run(command: list[str], seconds: float) -> str | None:
    """Output of a command; None where it cannot be run, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _ways() -> list[list[list[str]]]:
    """Commands of each way to get a Chromium, in the order they are tried."""
    playwright = [sys.executable, "-m", "playwright", "install"]
    if os.geteuid() != 0:
        return [[[*playwright, "chromium"]]]
    apt = ["apt-get", "-qq", "-y", "--no-install-recommends"]
    return [
        [[*apt, "update"], [*apt, "install", "chromium"]],
        [[*playwright, "--with-deps", "chromium"]],
    ]


def get_chromium() -> Path:
    """Chromium as found, else fetched by apt (as root) or Playwright's installer.

    Raises
    ------
    ChromiumMissingError
        None of these works, or $CHROMIUM does not start.
    """
    with contextlib.suppress(ChromiumMissingError):
        return find_chromium()
    for way in [] if os.environ.get("CHROMIUM") else _ways():
        print(f"Getting a Chromium for the browser tests: {' '.join(way[-1])}", file=sys.stderr)
        if all(_run(command, seconds=240) is not None for command in way):
            with contextlib.suppress(ChromiumMissingError):
                return find_chromium()
    return find_chromium()


if __name__ == "__main__":
    try:
        get_chromium()
    except ChromiumMissingError as missing:
        sys.exit(str(missing))
