"""Hosts named above their lines: by Ansible, Salt, dshbak, loops over ssh, a shell's prompt."""

from __future__ import annotations

import re

HEADS = (
    r"^[\w.-]+ \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)|^(?:ok|changed|failed|fatal): \["
    r"|^[=#*-]{2,}>? ?[\w.-]+ ?<?[=#*-]{2,}\s*$|^[A-Za-z][\w.-]+:\s*$|^-{8,}\s*$"
    r"|^\[?[\w.-]+@[\w.-]+[: ].*[#$%] (?:sudo )?(?:dmesg|journalctl)\b"
    r"|^Message from syslogd@|console log show |onsole \[[\w.-]+\] |^\s*NODENAME: "
    r"|^\[\d+\] [\d:]{8} \[(?:SUCCESS|FAILURE)\] |\bLinux \S+ \d+\.\d+\.\d+\S* #"
    r"|^hostname: |\bdebug node/|[#$%] ssh \S+ |^[\w.-]+ login: |^\[?[\w.-]+@[\w.-]+[: ].*[#$%] "
    r"|^<ConMan>|^[>=#*-]{3,} .* [<=#*-]{3,}\s*$"
    r"|^[-=#]+ hostname [-=#]+\s*$"
)
"""What such a line may be, for a first look."""
_HEADS = re.compile(HEADS)
_HOST = r"(?=[A-Za-z.-]*\d)[A-Za-z][\w.-]*"
_OF_ANSIBLE = re.compile(
    r"(?P<host>[\w.-]+) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b"
    r"|(?:ok|changed|failed|fatal): \[(?P<task>[\w.-]+)\]"
)
_OF_LOOPS = re.compile(rf"[=#*-]{{2,}}>? ?(?P<host>{_HOST}) ?<?[=#*-]{{2,}}\s*\Z")
_OF_SALT = re.compile(rf"(?P<host>{_HOST}):\s*\Z")
_ALONE = re.compile(rf"\s*(?P<host>{_HOST})\s*\Z")
_PROMPT = re.compile(
    r"\[?[\w.-]+@(?P<host>[\w.-]+)[: ][^#$%]*[#$%] (?:sudo )?(?:dmesg|journalctl)\b"
    r"(?!.*\s(?:-D|-M|--(?:directory|file|machine))\b)"
)
"""A shell's prompt before a command that prints the kernel's log of the host itself."""
_DASHES = re.compile(r"-{8,}\s*\Z|[-=#]+ hostname [-=#]+\s*\Z")
_OF_ANOTHER = re.compile(
    r"Message from syslogd@|.*console log show |.*onsole \[|hostname: |.*\bdebug node/|.*[#$%] ssh "
    r"|\[?[\w.-]+@[\w.-]+[: ].*[#$%] |<ConMan>|[\w.-]+ login: "
    r"|[>=#*-]{3,} (?!.*\b(?:dmesg|journalctl|date|uname|lspci|nvidia-\w+)\b).* [<=#*-]{3,}\s*\Z"
)
"""Heads that are not understood: what follows them is not of the host that was named before."""
_TOLD = re.compile(
    r"Message from syslogd@(?P<host>[\w.-]+) at "
    r"|.*console log show (?:.* )?(?P<instance>\w[\w.-]*)\s*(?:\||\Z)"
    r"|.*onsole \[(?P<console>[\w.-]+)\] (?:log )?opened|\s*NODENAME: (?P<node>[\w.-]+)"
    r"|\[\d+\] [\d:]{8} \[(?:SUCCESS|FAILURE)\] (?:\S+@)?(?P<ssh>[\w.-]+)"
    r"|(?:uname: |# )?Linux (?!version\b)(?P<uname>[\w.-]+) \d+\.\d+\.\d+\S* #"
    rf"|hostname: (?P<told>{_HOST})\s*\Z|.*\bdebug node/(?P<debug>[\w.-]+) .*\bdmesg\b"
    r"|.*[#$%] ssh (?:\S+@)?(?P<remote>[\w.-]+) (?:sudo )?(?:dmesg|journalctl)\b"
    r"(?!.*\s(?:-D|-M|--(?:directory|file|machine))\b)"
    r"|(?P<login>(?=[A-Za-z.-]*\d)[A-Za-z][\w.-]*) login: "
)
"""Heads of wall, openstack, ConMan, crash, pssh and uname, which name the host."""


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
        if found is None and not _HEADS.search(line):
            self.awaits_host = False
            return
        found = found or _OF_ANSIBLE.match(line) or _OF_LOOPS.match(line)
        found = found or _PROMPT.match(line) or _TOLD.match(line)
        self.awaits_host = _DASHES.match(line) is not None
        if found is not None:
            self.host = next(name for name in found.groups() if name)
            self._indented = False
        elif _OF_ANOTHER.match(line):
            self.host = None
        elif salt := _OF_SALT.match(line):
            self.host, self._indented = salt["host"], True
