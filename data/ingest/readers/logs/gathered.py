"""Hosts named above their lines: by Ansible, Salt, dshbak, loops over ssh, a shell's prompt."""

from __future__ import annotations

import re

_ANOTHER = (
    r"^Message from syslogd@|console log show |onsole \[[\w.-]+\] |^<ConMan>|^hostname: "
    r"|\bdebug node/|[#$%] ssh \S+ |^\[?[\w.-]+@[\w.-]+[: ].*[#$%] |^[\w.-]+ login: "
)
"""Heads of one host's lines: of those that are not understood no host is known."""
HEADS = (
    r"^[\w.-]+ \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)|^(?:ok|changed|failed|fatal): \["
    r"|^[=#*-]{2,}>? ?[\w.-]+ ?<?[=#*-]{2,}\s*$|^[A-Za-z][\w.-]+:\s*$|^-{8,}\s*$"
    r"|^\s*NODENAME: |^\[\d+\] [\d:]{8} \[(?:SUCCESS|FAILURE)\] |\bLinux \S+ \d+\.\d+\.\d+\S* #"
    rf"|^[>=#*-]{{3,}} .* [<=#*-]{{3,}}\s*$|{_ANOTHER}"
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
_DASHES = re.compile(r"-{8,}\s*\Z|[-=#]+ hostname [-=#]+\s*\Z")
_OF_ITSELF = r"(?:sudo )?(?:dmesg|journalctl)\b(?!.*\s(?:-D|-M|--(?:directory|file|machine))\b)"
"""A command that prints the kernel's log of the host on which it runs."""
_TOLD = re.compile(
    rf"\[?[\w.-]+@(?P<prompt>[\w.-]+)[: ][^#$%]*[#$%] {_OF_ITSELF}"
    rf"|.*[#$%] ssh (?:\S+@)?(?P<remote>[\w.-]+) {_OF_ITSELF}"
    r"|Message from syslogd@(?P<wall>[\w.-]+) at "
    r"|.*console log show (?:.* )?(?P<instance>\w[\w.-]*)\s*(?:\||\Z)"
    r"|.*onsole \[(?P<console>[\w.-]+)\] (?:log )?opened|\s*NODENAME: (?P<node>[\w.-]+)"
    r"|\[\d+\] [\d:]{8} \[(?:SUCCESS|FAILURE)\] (?:\S+@)?(?P<ssh>[\w.-]+)"
    r"|(?:uname: |# )?Linux (?!version\b)(?P<uname>[\w.-]+) \d+\.\d+\.\d+\S* #"
    rf"|hostname: (?P<told>{_HOST})\s*\Z|.*\bdebug node/(?P<debug>[\w.-]+) .*\bdmesg\b"
    rf"|(?P<login>{_HOST}) login: "
)
"""Heads of shells, wall, openstack, ConMan, crash, pssh and uname, which name the host."""
_OF_ANOTHER = re.compile(
    rf"{_ANOTHER}|^[>=#*-]{{3,}} (?!.*\b(?:dmesg|journalctl|date|uname|lspci|nvidia-\w+)\b)"
    r".* [<=#*-]{3,}\s*$"
)


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
        found = found or _OF_ANSIBLE.match(line) or _OF_LOOPS.match(line) or _TOLD.match(line)
        self.awaits_host = _DASHES.match(line) is not None
        if found is not None:
            self.host = next(name for name in found.groups() if name)
            self._indented = False
        elif _OF_ANOTHER.search(line):
            self.host = None
        elif salt := _OF_SALT.match(line):
            self.host, self._indented = salt["host"], True
