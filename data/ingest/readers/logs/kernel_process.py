"""The process that the NVIDIA driver names on the line of an XID."""

from __future__ import annotations

import re
from typing import NamedTuple

_PID = re.compile(
    r"\): \d+(?:, pid='?(?P<pid>\d+|<unknown>|unknown)'?(?P<rest>, .*)?|(?P<named>, name=.*))$"
)
_PROCESS_NAME = re.compile(r", name='?(?P<rest>.*)$")
_LONGEST_PROCESS_NAME = 15
"""The kernel cuts the name of a process to so many bytes."""
_DRIVERS_WORDS = re.compile(
    r"Ch(?:annel|ID)? |channel 0x|GPU has fallen|Timeout after|Graphics |MMU Fault|Shader|intr |"
    r"Engine |GPC |ESR 0x|errorString|SKED|CE\d|Contained|Uncontained|"
    r"[A-Z][A-Z0-9_/]+ (?:Nonf|F)atal"
)
_NO_PROCESS = frozenset({"", "<unknown>", "unknown"})


class Process(NamedTuple):
    """A process as the driver names it; None for what it does not know."""

    pid: int | None = None
    name: str | None = None


def process_of(message: str) -> Process:
    """The process in an XID line such as ``NVRM: Xid (...): 31, pid=77, name=python3, Ch 0``.

    A name may hold blanks and commas. It ends before the comma behind which the driver's own
    words begin, where that leaves it no longer than a name can be, else before the first comma.

    Examples
    --------
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 119, pid=202, name=nvidia-smi, Timeout after 6s")
    Process(pid=202, name='nvidia-smi')
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU")
    Process(pid=None, name=None)
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, b c, Ch 00000008").name
    'a, b c'
    """
    match = _PID.search(message)
    if match is None:
        return Process()
    pid = int(match["pid"]) if match["pid"] and match["pid"].isdigit() else None
    named = _PROCESS_NAME.match(match["rest"] or match["named"] or "")
    return Process(pid, _process_name(named["rest"]) if named else None)


def _process_name(text: str) -> str | None:
    """The name at the beginning of what follows `name=`."""
    parts = text.split(", ")
    ends = range(1, len(parts))
    end = next((end for end in ends if _DRIVERS_WORDS.match(", ".join(parts[end:]))), 1)
    name = ", ".join(parts[:end])
    if len(name.encode()) > _LONGEST_PROCESS_NAME:  # not the driver's words
        name = parts[0]
    name = name.strip().removesuffix("'").removesuffix(",")
    return None if name in _NO_PROCESS else name
