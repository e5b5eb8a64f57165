"""Which options say something to which source: one that a source ignores is refused, not dropped.

Every source knows its cluster, the zone of local times (records that name their zone are read as
they say, whatever is stated) and what to do with a cut archive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import DataError

if TYPE_CHECKING:
    from data.ingest.reader import Options

_TABLES = ("failure-log", "job-table", "node-facts", "node-inventory", "tickets")
_HEADED = ("sacct", "sacctmgr-events", "sinfo", "training-metrics")
_STORED = ("elasticsearch", "loki")
_BMC = ("ipmi-sel", "redfish")
_METRICS = ("dcgm", "infiniband", "prometheus-json")
KNOWN_BY = {
    "columns": (*_TABLES, *_HEADED),
    "delimiter": (*_TABLES, *_HEADED, "straggler-trace"),
    "node": (
        *_METRICS,
        "gcm-health",
        "gpud",
        "job-log",
        "kernel-log",
        "nvsentinel",
        *_BMC,
        *_STORED,
    ),
    "boot_at": ("kernel-log", *_STORED),
    "year": ("kernel-log", *_STORED),
    "at": (
        "dcgm",
        "gpud",
        "infiniband",
        "k8s-nodes",
        "node-facts",
        "node-inventory",
        "scontrol-nodes",
        "sinfo",
    ),
    "mapping": _TABLES,
    "pattern": ("job-log", *_STORED),
    "first_lines": ("job-log", *_STORED),
    "last_lines": ("job-log", *_STORED),
    "job_id": ("straggler-trace", "training-metrics"),
    "run_id": ("training-metrics",),
    "meta": ("straggler-trace",),
}
"""Option -> the sources that it says something to."""


def ignored(source: str, options: Options) -> list[str]:
    """A sentence for each option that was stated and that the source ignores."""
    return [
        f"--{option.replace('_', '-')} says nothing to {source}, only to {', '.join(sorted(known))}"
        for option, known in KNOWN_BY.items()
        if getattr(options, option) is not None and source not in known
    ]


def refuse_ignored(source: str, options: Options) -> None:
    """Refuses an option that the source ignores; what `auto` finds is told file by file.

    Raises
    ------
    DataError
        Where one was stated.
    """
    if source != "auto" and (told := ignored(source, options)):
        raise DataError(f"{'; '.join(told)}: leave it out, or name another source")
