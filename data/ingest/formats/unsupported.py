"""Formats that no reader takes yet: how each begins, and the nearest that one does take."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Format(NamedTuple):
    """A format by its beginning."""

    mark: re.Pattern[str]
    what: str
    nearest: str


def _format(mark: str, what: str, nearest: str) -> _Format:
    return _Format(re.compile(mark), what, nearest)


_TEXTS = (
    _format(r"\s*=+NVSMI LOG=+", "output of nvidia-smi -q",
            "the kernel log (kernel-log) tells faults of GPUs"),
    _format(r"GPU \d+: .*UUID.*\n\s+Link \d+:", "output of nvidia-smi nvlink",
            "the kernel log (kernel-log) tells faults of links"),
    _format(r"\+-+\+\n\| NVIDIA-SMI|.*\n\+-+\+\n\| NVIDIA-SMI", "output of nvidia-smi",
            "the kernel log (kernel-log) tells faults of GPUs"),
    _format(r"(?:Successfully ran diagnostic|\+-+\+-+\+\n\| Diagnostic)", "output of dcgmi diag",
            "results of health checks as JSON lines (gcm-health)"),
    _format(r"Linux \S+ \([^)]*\)\s+\d", "output of sar or another tool of sysstat",
            "the kernel log (kernel-log) and results of health checks (gcm-health)"),
    _format(r"(?:JobId=\d+ .*|JobId=\d+\s*\n)", "output of scontrol show job",
            "the accounting: sacct -P (sacct) or sacct --json (sacct-json)"),
    _format(r"\s*JOBID\s+PARTITION\s+NAME", "output of squeue",
            "the accounting: sacct -P (sacct) or sacct --json (sacct-json)"),
    _format(r"\*+\n?sdiag output", "output of sdiag", "the accounting (sacct)"),
    _format(r"(?:- )?apiVersion: |---\s*\napiVersion: ", "YAML of Kubernetes",
            "JSON: kubectl get pods -A -o json (k8s-pods), nodes (k8s-nodes), events (k8s-events), "
            "workloads.kueue.x-k8s.io (k8s-workloads)"),
    _format(r"(?:#+ |<!DOCTYPE|<html)", "a document", "give the file that a tool wrote"),
    _format(r'\{\s*"cells"\s*:', "a notebook", "give the file that a tool wrote"),
)  # fmt: skip
_BINARIES = {
    b"PK\x03\x04": ("a zip archive or a workbook of Excel", "unpack it, or save the sheet as CSV"),
    b"%PDF-": ("a PDF", "give the file that a tool wrote"),
    b"\x89PNG": ("a picture", "give the file that a tool wrote"),
    b"\xff\xd8\xff": ("a picture", "give the file that a tool wrote"),
    b"SQLite format 3\0": ("a database of SQLite", "export its table as CSV"),
    b"\xd4\xc3\xb2\xa1": ("a capture of packets", "give logs"),
    b"LPKSHHRH": ("a journal of systemd", "give what `journalctl -k -o short-iso-precise` prints"),
    b"\x7fELF": ("a program", "give the file that a tool wrote"),
}


def told_text(head: str) -> str | None:
    """What the text is that begins so, and the nearest format that is read; None if not known.

    Examples
    --------
    >>> told_text("JobId=7 JobName=train")
    'is output of scontrol show job, which is not supported yet: the accounting: sacct -P (sacct) or
    sacct --json (sacct-json)'
    """
    head = head.lstrip("\ufeff\n\r ")
    found = next((one for one in _TEXTS if one.mark.match(head)), None)
    return (
        None if found is None else f"is {found.what}, which is not supported yet: {found.nearest}"
    )


def told_binary(head: bytes) -> str | None:
    """The same for a file that is no text."""
    found = next((told for mark, told in _BINARIES.items() if head.startswith(mark)), None)
    return None if found is None else f"is {found[0]}: {found[1]}"
