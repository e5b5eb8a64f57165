"""The process that the driver names in the line of an XID."""

from __future__ import annotations

import re
from typing import NamedTuple

_PID = re.compile(
    r"\): \d+(?:, pid='?(?P<pid>\d+|<unknown>|unknown)'?(?P<rest>, .*)?|(?P<named>, name=.*))$"
)
_NAME = re.compile(r", name='?(?P<rest>.*)$")
_LONGEST_NAME = 15
"""The kernel cuts the name of a process to so many bytes."""
_DETAIL = re.compile(
    r"Ch(?:annel|ID)? |channel 0x|GPU has fallen|Timeout after|Graphics |MMU Fault|Shader|intr |"
    r"Engine |GPC |ESR 0x|errorString|SKED|CE\d|Contained|Uncontained|"
    r"[A-Z][A-Z0-9_/]+ (?:Nonf|F)atal"
)
_UNKNOWN = frozenset({"", "<unknown>", "unknown"})


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
    found = _PID.search(message)
    if found is None:
        return Process()
    pid = int(found["pid"]) if found["pid"] and found["pid"].isdigit() else None
    named = _NAME.match(found["rest"] or found["named"] or "")
    return Process(pid, _name(named["rest"]) if named else None)


def _name(text: str) -> str | None:
    """The name at the beginning of what follows `name=`."""
    parts = text.split(", ")
    ends = range(1, len(parts))
    end = next((end for end in ends if _DETAIL.match(", ".join(parts[end:]))), 1)
    name = ", ".join(parts[:end])
    if len(name.encode()) > _LONGEST_NAME:  # the driver's words only look like the end of a name
        name = parts[0]
    name = name.strip().removesuffix("'").removesuffix(",")
    return None if name in _UNKNOWN else name
