"""Codes of GPU (XID) and switch (SXid) errors on lines of a job's log."""

from __future__ import annotations

import re

from analytics.failures.log_classifier.tracebacks import Meaning
from analytics.failures.taxonomy import taxonomy
from analytics.failures.xid import SxidEntry, XidEntry, sxid_entries, xid_entries

_XID = re.compile(
    r"(?<![s-])xid(?:_errors?)?\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(?:errors?|codes?|events?|detected|number)?"
    r"\s*[:=#]?\s*(\d{1,3})\b",
    re.IGNORECASE,
)
_SXID = re.compile(r"sxid\b\s*(?:\([^)]*\))?\s*[:=#]?\s*(\d{5})\b", re.IGNORECASE)
_REPORTED = re.compile(r"NVRM: Xid \(|nvidia-nvswitch\d*:? SXid \(")
_CLEANUP = frozenset({43, 45})  # the driver stops channels of a process that is gone
_GPU_ALSO = (("gpu_fault", 0.3, "this XID comes from a defective GPU as well"),)


def xid_meaning(text: str) -> Meaning | None:
    """What the code on a line says; None where there is no known code.

    Examples
    --------
    >>> xid_meaning("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.").cause
    'gpu_unavailable'
    """
    if "xid" not in text.lower():
        return None
    switch = _SXID.search(text)
    if switch is not None:
        return _meaning(sxid_entries().get(int(switch[1])))
    found = _XID.search(text)
    if found is None:
        return None
    code = int(found[1])
    if code in _CLEANUP:
        return Meaning("unknown", "teardown", 9, 0.1)
    return _meaning(xid_entries().get(code))


def is_from_driver(text: str) -> bool:
    """Whether a line has the form in which the driver itself reports a code.

    Examples
    --------
    >>> is_from_driver("NVRM: Xid (PCI:0000:3b:00): 94, Contained. RST: No")
    True
    """
    return _REPORTED.search(text) is not None


def _meaning(entry: XidEntry | SxidEntry | None) -> Meaning | None:
    """Role by domain and severity."""
    if entry is None or entry.cause == "unknown":
        return None
    cause, severity, domain = entry.cause, entry.severity, taxonomy().domain_of(entry.cause)
    if domain == "user":
        return Meaning(cause, "symptom", 7, 0.6, _GPU_ALSO)
    if domain == "hardware" and severity != "info":
        return Meaning(cause, "root", 9, 0.94 if severity in ("critical", "fatal") else 0.88)
    if severity in ("critical", "fatal"):
        return Meaning(cause, "root", 9, 0.88)
    return Meaning(cause, "sign", 8, 0.55)
