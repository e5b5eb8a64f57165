"""Hosts that gatherers name above the lines of each: Ansible, Salt, dshbak, loops over ssh."""

from __future__ import annotations

import re

HEADS = (
    r"^[\w.-]+ \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)|^(?:ok|changed|failed|fatal): \["
    r"|^[=#*-]{2,}>? ?[\w.-]+ ?<?[=#*-]{2,}\s*$|^[A-Za-z][\w.-]+:\s*$|^-{8,}\s*$"
)
"""What such a line may be, for a first look."""
_HOST = r"(?=[A-Za-z.-]*\d)[A-Za-z][\w.-]*"
_OF_ANSIBLE = re.compile(
    r"(?P<host>[\w.-]+) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b"
    r"|(?:ok|changed|failed|fatal): \[(?P<task>[\w.-]+)\]"
)
_OF_LOOPS = re.compile(rf"[=#*-]{{2,}}>? ?(?P<host>{_HOST}) ?<?[=#*-]{{2,}}\s*\Z")
_OF_SALT = re.compile(rf"(?P<host>{_HOST}):\s*\Z")
_ALONE = re.compile(rf"\s*(?P<host>{_HOST})\s*\Z")
_DASHES = re.compile(r"-{8,}\s*\Z")


class Gathered:
    """The host of which the lines stand below the last head.

    Examples
    --------
    >>> gathered = Gathered()
    >>> for line in ("gpu7 | CHANGED | rc=0 >>", "[ 9.1] NVRM: x"):
    ...     gathered.take(line)
    >>> gathered.host
    'gpu7'
    """

    def __init__(self) -> None:
        self.host: str | None = None
        self.awaits_host = False
        """Whether a line of dashes came, after which a host may stand by itself."""
        self._indented = False

    def take(self, line: str) -> None:
        """Looks at one line of the file, with what it begins with."""
        if self._indented and line[:1].strip():
            self.host, self._indented = None, False
        found = _ALONE.match(line) if self.awaits_host else None
        found = found or _OF_ANSIBLE.match(line) or _OF_LOOPS.match(line)
        self.awaits_host = _DASHES.match(line) is not None
        if found is not None:
            named = found.groupdict()
            self.host, self._indented = named["host"] or named.get("task"), False
        elif salt := _OF_SALT.match(line):
            self.host, self._indented = salt["host"], True
