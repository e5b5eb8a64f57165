"""One line of a fabric manager's log: the switch error that it reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.ingest.kernel_line import pci_address, prefix_of

if TYPE_CHECKING:
    from data.ingest.kernel_line import Prefix

_ERROR = re.compile(
    r"(?P<before>.*?\]\s+)\[[A-Z]+\]\s+\[tid \d+\]\s+"
    r"(?P<message>detected NVSwitch (?:non-)?fatal error (?P<code>\d{1,6}) on .*?"
    r"pci bus id (?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?).*)"
)


@dataclass(frozen=True, slots=True)
class SwitchError:
    """A switch error (SXid) as the fabric manager reports it."""

    code: int
    address: str
    """Of the switch, e.g. ``0000:86:00``."""
    message: str
    prefix: Prefix


def switch_error(text: str) -> SwitchError | None:
    """The switch error on a line; None where there is none.

    Raises
    ------
    LineError
        Where what stands before the message is none of the known forms.

    Examples
    --------
    >>> line = "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch non-fatal error 12028 on "
    >>> found = switch_error(line + "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3")
    >>> found.code, found.address
    (12028, '0000:86:00')
    """
    match = _ERROR.match(text)
    prefix = prefix_of(match["before"]) if match else None
    if match is None or prefix is None:
        return None
    return SwitchError(
        int(match["code"]), pci_address(match["address"]), match["message"].strip(), prefix
    )
