"""The fault in a message of the kernel, and where the message begins on its line."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from data.ingest.reader import RecordError
from data.ingest.readers.logs.kernel_prefix import begun_again, prefix_of

if TYPE_CHECKING:
    from data.ingest.readers.logs.prefix import Prefix

_ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2,4}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_FULL_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"

_START = re.compile(
    r"NVRM:|nvidia-nvswitch\d*:?\s"
    rf"|(?:(?:nvidia|GPU) (?:at )?(?:PCI:)?{_FULL_ADDRESS}|GPU has fallen)(?!.*NVRM:)"
)
_XID = re.compile(
    # `GPU-I:05` names an instance of a GPU divided by MIG; old drivers print no `PCI:`
    rf"NVRM:\s?Xid\s?\((?:(?i:PCI):)?(?:(?P<address>{_ADDRESS})|(?=GPU-[0-9a-f]))[^()]{{0,80}}\):\s?"
    r"(?P<code>\d{1,5})(?!\w|\s*\Z)"
)
_SXID = re.compile(
    rf"nvidia-nvswitch\d*:? SXid \((?:(?i:PCI):)?(?P<address>{_ADDRESS})[^()]{{0,80}}\):\s?"
    r"(?P<code>\d{1,6})(?!\w|\s*\Z)(?P<detail>, (?:Data\b|Severity \d+ Engine))?"
)
_ANNOUNCED = re.compile(rf"NVRM: The NVIDIA GPU (?P<address>{_FULL_ADDRESS})")
_ANY_ADDRESS = re.compile(_FULL_ADDRESS)
_REPEATED = re.compile(  # rsyslog, for runs of one line
    r"message repeated \d+ times: \[\s*(?:\[\s*\d+\.\d+\]\s*)?$"
)


_REPORT = re.compile(r"NVRM:\s?Xid\s?\(|nvidia-nvswitch\d*:? SXid \(")
_LINE_END = re.compile(r"[\r\n]+|#01[25]|\\r|\\n")
"""As it stands, or as rsyslog and others write it within a line."""
_MARKS_OF_ENDS = ("\r", "\n", "#01", "\\")
_CUT_START = re.compile(r"\A(?:VRM|RM|M)(?=: Xid \()")
_OTHER_CASE = re.compile(
    r"(?i)\bnvrm:\s?xid (?=\()|\bsxid (?=\()|\bnvidia-nvswitch(?=\d*:)|\bkernel:|\bnvrm:"
    r"|gpu has fallen off the bus"
)
_USUAL_CASE = {
    "nvrm: xid ": "NVRM: Xid ", "nvrm:xid ": "NVRM:Xid ", "sxid ": "SXid ", "nvrm:": "NVRM:",
    "gpu has fallen off the bus": "GPU has fallen off the bus",
}  # fmt: skip
OTHER_SPELLINGS = ("nvrm: xid (", "NVRM: XID (", "sxid (pci", "SXID (PCI")
"""The driver's words where a pipeline changed the case of all letters."""
_ESCAPES = re.compile(r"\\([\[\]()_])")
_QUOTED = re.compile(r"(?:>\s?)+|[“„«]")
"""What people put before a line that they quote."""
_CUT_STAMP = re.compile(r"\A[\d:. ]{1,24}\]\s+(?=NVRM:|nvidia-nvswitch)")
_CONTROLS = re.compile(
    r"(?:\x1b|#033|\\x1b|\\033|\\u001b|\^\[)(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])|\^@"
    r"|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_ESCAPED = ("33[", "1b[", "^[[", "^@")
_CUT_HEAD = re.compile(
    r"(?:NVRM:\s?Xid|nvidia-nvswitch\d*:? SXid)\s?(?:\((?:PCI?:?)?[0-9a-fA-F:.]*\)?:?\s?\d{0,5})?$"
)
_MENTIONED = re.compile(
    r"(?:[\"'`(]|\b(?:see|saw|seen|like|as|cf|after|previous|prior|before|match\w*|found|with|for|of|to|"
    r"by|e\.g)[.:]?\s+)\Z"
)
"""How a message ends that goes on to speak of another report."""
_LONGEST_HEAD = 60
_CODE_GOES_ON = re.compile(r"\d{1,4}, [A-Za-z]")


@dataclass(frozen=True, slots=True)
class Fault:
    """What the driver reports in one message."""

    check_name: str
    """xid, sxid or gpu_lost."""
    message: str
    """The kernel's message, without what logging put before it."""
    address: str | None
    """PCI address of the GPU or switch without its function, e.g. `0000:9b:00`."""
    code: int | None = None
    """The XID or SXid."""


def cleaned(text: str) -> str:
    """A text without what a terminal is told by it: colours, moves of the cursor, bells.

    Examples
    --------
    >>> cleaned("\\x1b[33m[  7.0]\\x1b[0m NVRM: ok#033[0m")
    '[  7.0] NVRM: ok'
    """
    if text.isprintable() and not any(mark in text for mark in _ESCAPED):
        return text
    return _CONTROLS.sub("", text)


def parts_of(text: str) -> list[str]:
    """The lines in a text: line ends may be written out, and of some the end is lost.

    Examples
    --------
    >>> xid = "NVRM: Xid (PCI:0000:3b:00): "
    >>> parts_of(f"[1.000001] {xid}79, lost.[1.000002] {xid}45, Ch 1")[1]
    '[1.000002] NVRM: Xid (PCI:0000:3b:00): 45, Ch 1'
    """
    if not any(mark in text for mark in _MARKS_OF_ENDS):
        return _unglued(text)
    return [part for line in _LINE_END.split(text) if line.strip() for part in _unglued(line)]


def _unglued(text: str) -> list[str]:
    """A line that holds several reports, in parts of one each.

    Each begins where its own prefix does; where it has none, that of the report before counts.
    """
    if text.count("NVRM:") + text.count("nvidia-nvswitch") < 2:
        return [text]
    starts = [found.start() for found in _REPORT.finditer(text)]
    first = _START.search(text)
    if first is not None and starts and first.start() < starts[0]:
        starts.insert(0, first.start())
    parts, begin, end = [], 0, len(text)
    for one, other in pairwise(starts):
        own = begun_again(text[one:other], behind_kernel=True)
        cut = one + own[0] if own else other
        if not own and _MENTIONED.search(text[begin:other]):
            continue
        parts.append(text[begin:cut])
        begin = cut
    parts.append(text[begin:end])
    return parts


def goes_on(text: str, next_text: str) -> str | None:
    """A report that was cut within its head, with the line that completes it; None where none does.

    Terminals wrap lines, and runtimes of containers split them.
    """
    if _CUT_HEAD.search(text) is None or (
        _CODE_GOES_ON.match(next_text) is None and (text[-1:].isdigit() and ")" in text[-8:])
    ):
        return None
    joined = text + next_text
    parts = split_line(joined)
    with suppress(RecordError):
        if parts is not None and isinstance(fault_of(parts[1]), Fault):
            return joined
    return None


def whole_start(text: str) -> str:
    """The first line of a file, with what was cut off the beginning of a report on it."""
    return _CUT_START.sub("NVRM", text)


def bare(text: str) -> str:
    """A line without marks of quotation and half of a time before it, in the driver's spelling.

    Examples
    --------
    >>> bare("> > [ 9.1] NVRM: x"), bare(".118220] NVRM: x"), bare("nvrm: xid (pci:0:1:2): 79, x")
    ('[ 9.1] NVRM: x', 'NVRM: x', 'NVRM: Xid (pci:0:1:2): 79, x')
    """
    if quoted := _QUOTED.match(text):
        text = text[quoted.end() :].rstrip("”“»").strip()
    if text.startswith("\\["):  # as wikis keep it
        text = _ESCAPES.sub(r"\1", text)
    if "xid (" in text or "XID (" in text:
        text = _OTHER_CASE.sub(lambda said: _USUAL_CASE.get(said[0].lower(), said[0].lower()), text)
    return _CUT_STAMP.sub("", text)


def may_go_on(text: str) -> bool:
    """Whether a line ends within the head of a report."""
    at = text.rfind("Xid", max(0, len(text) - _LONGEST_HEAD))
    return at >= 0 and "," not in text[at:] and _CUT_HEAD.search(text) is not None


def split_line(text: str) -> tuple[str, str] | None:
    """What stands before the driver's message, and the message; None where no driver speaks."""
    start = _START.search(text)
    if start is None:
        return None
    before = text[: start.start()]
    return before, without_frame(before, text[start.start() :].strip())


def without_frame(before: str, message: str) -> str:
    """A message without what closes the frame that was opened before it.

    Examples
    --------
    >>> without_frame("message repeated 3 times: [ ", "NVRM: x]")
    'NVRM: x'
    """
    if _REPEATED.search(before):
        return message.removesuffix("]").rstrip()
    if before.endswith("Message:"):  # of node-problem-detector
        return message.partition("}")[0]
    return message


def fault_of(message: str) -> Fault | str:
    """The fault in a message, else why it is none: `no_fault` or `sxid_detail`.

    Raises
    ------
    RecordError
        Where the message begins like a fault but is mutilated.
    """
    if message.startswith(("NVRM: Xid", "NVRM:Xid")):
        match = _XID.match(message)
        if match is None:
            raise RecordError("mutilated XID line")
        return Fault("xid", message, pci_address(match["address"]), int(match["code"]))
    if message.startswith("nvidia-nvswitch") and "SXid" in message:
        match = _SXID.match(message)
        if match is None:
            raise RecordError("mutilated SXid line")
        if match["detail"]:  # registers and engine of one SXid stand on lines of their own
            return "sxid_detail"
        return Fault("sxid", message, pci_address(match["address"]), int(match["code"]))
    if "fallen off the bus" in message:
        found = _ANY_ADDRESS.search(message)
        return Fault("gpu_lost", message, pci_address(found[0]) if found else None)
    return "no_fault"


def announced_gpu(message: str) -> str | None:
    """Address in `NVRM: The NVIDIA GPU 0000:b3:00.0`, of which the lines after it speak."""
    match = _ANNOUNCED.match(message)
    return pci_address(match["address"]) if match else None


@lru_cache(maxsize=4096)
def pci_address(text: str) -> str:
    """A PCI address as domain:bus:device in lower case: `00000000:9B:00.0` is `0000:9b:00`."""
    *domain, bus, device = text.partition(".")[0].lower().split(":")
    return f"{int(domain[0], 16) if domain else 0:04x}:{int(bus, 16):02x}:{device}"


_SWITCH_ERROR = re.compile(
    r"(?:(?P<before>.*?\]\s+)\[[A-Z]+\]\s+\[tid \d+\]\s+"
    r"|(?P<tagged>.*?)\b(?:nv-|nvidia-)?fabricmanager(?:\[\d+\])?:\s+(?:\[.*?\]\s+)*)"
    r"(?P<message>detected NVSwitch (?:non-)?fatal error (?P<code>\d{1,6}) on .*?"
    r"pci bus id (?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?).*)"
)


def switch_error(text: str) -> tuple[Fault, Prefix] | None:
    """The switch error (SXid) that a fabric manager reports on a line, and what stands before it.

    None where there is none.

    Raises
    ------
    RecordError
        Where what stands before the message is none of the known forms.

    Examples
    --------
    >>> line = "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch non-fatal error 12028 on "
    >>> line += "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3"
    >>> fault, prefix = switch_error(line)
    >>> fault.code, fault.address
    (12028, '0000:86:00')
    """
    match = _SWITCH_ERROR.match(text)
    prefix = None
    if match is not None:
        before = match["before"] if match["tagged"] is None else f"{match['tagged']}kernel: "
        prefix = prefix_of(before)
    if match is None or prefix is None:
        return None
    address, message = pci_address(match["address"]), match["message"].strip()
    return Fault("sxid", message, address, int(match["code"])), prefix
