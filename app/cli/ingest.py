"""faultline ingest: read log files into the store."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from app.actions import IngestResult

EXAMPLE = (
    "echo 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus' | "
    "faultline ingest kernel-log - --node n1 --store ./own-store"
)


STATED = (
    "cluster", "delimiter", "node", "boot_at", "at", "year", "mapping", "pattern", "first_lines",
    "last_lines", "job_id", "run_id", "meta", "partial",
)  # fmt: skip
"""What readers are told as it was given."""
_TEXTS = {
    "cluster": ("NAME", "cluster that the records belong to"),
    "timezone": (
        "TZ",
        "zone of local times (default the cluster's, else UTC), not of times that name one",
    ),
    "file-timezone": (
        "TZ",
        "zone of local times in these files alone, whatever the cluster's is",
    ),
    "columns": ("LIST", "names of the fields, comma-separated"),
    "preset": (
        "NAME",
        "columns: xdmod (sacct), acme, helios, alibaba-pai (job-table), lanl, pnnl (failure-log)",
    ),
    "delimiter": ("D", "between fields (default the format's own)"),
    "mapping": ("NAME", "columns of a CSV: a TOML file; of a failure log also lanl or pnnl"),
    "node": ("NAME", "host of a log whose lines name none"),
    "pattern": ("NAME", "name of a job's log in the words of sbatch, e.g. slurm-%%j.out"),
    "run-id": ("NAME", "run of training metrics that name neither run nor job"),
    "job-id": ("ID", "job of training metrics or a straggler trace"),
    "meta": ("FILE", "meta YAML of a straggler trace"),
}
"""Option -> what stands for its value, and what it says."""
_TYPED = {
    "boot-at": (options.moment, "TIME", "boot time, for times since boot"),
    "at": (
        options.moment,
        "TIME",
        "when an inventory of nodes was made (default what it says, else the file's time)",
    ),
    "year": (options.whole, "Y", "year of times without one"),
    "first-lines": (options.whole, "N", "first lines of a job's log that are kept"),
    "last-lines": (options.whole, "N", "last lines of a job's log that are kept"),
}
"""The same of what is more than a text, with what reads it."""
COUNTS = ("rows_read", "rows_kept", "rows_skipped", "rows_rejected")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The source, the files and what is known of them."""
    options.add(parser, "store")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="one of --list, or auto")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files; - is standard input")
    parser.add_argument("--list", action="store_true", help="list the sources and end")
    for name, (metavar, told) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=told)
    for name, (read, metavar, told) in _TYPED.items():
        parser.add_argument(f"--{name}", type=read, metavar=metavar, help=told)
    options.add(parser, "partial")
    options.add_wait(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Reads the files and prints what became of their records."""
    from app import actions

    if arguments.list:
        rows = [(name, source.help) for name, source in actions.sources().items()]
        terminal.print_rows(["source", "reads"], rows, arguments.format)
        return 0
    if arguments.source is None or not arguments.files:
        raise DataError("name a SOURCE and a FILE, e.g. `faultline ingest sacct sacct.txt`")
    results, errors = actions.ingest_files(
        arguments.store,
        arguments.source,
        arguments.files,
        _options(arguments),
        wait_s=arguments.wait,
    )
    terminal.progress_done()
    for error in errors:
        terminal.notice(f"faultline ingest: {error}")
    for result in results:
        for text in filter(None, [result.told_rejected, *result.notices]):
            terminal.notice(f"{result.path}: {text}")
    if results:
        for text in actions.tell_alerts(arguments.store):
            terminal.notice(f"faultline ingest: {text}")
    terminal.print_record(_record(results), arguments.format)
    return 2 if errors else 0


def _options(arguments: argparse.Namespace) -> Any:
    """What was said about the files."""
    from app.actions import Options, checked_zone, stated_by

    preset: dict[str, Any] = {}
    columns = tuple(arguments.columns.replace("|", ",").split(",")) if arguments.columns else None
    if arguments.preset is not None:
        if columns:
            raise DataError("--columns and --preset both name the columns: give one of them")
        if arguments.mapping:
            raise DataError("--mapping and --preset both name the columns: give one of them")
        preset = stated_by(arguments.preset, arguments.source)
    own_zone = arguments.file_timezone
    if own_zone is not None and arguments.timezone is not None:
        raise DataError("--timezone and --file-timezone exclude one another: give one of them")
    for name in ("cluster", "job_id", "run_id", "node"):
        if (stated := getattr(arguments, name)) is not None and not stated.strip():
            option = name.replace("_", "-")
            raise DataError(f"--{option} is empty: name it, or leave the option out")
    return Options(
        **{name: getattr(arguments, name) for name in STATED} | {"columns": columns} | preset,
        timezone=checked_zone(own_zone or arguments.timezone),
        own_zone=own_zone is not None,
        progress=terminal.progress,
    )


def _record(results: list[IngestResult]) -> terminal.Row:
    """Totals over the files; `files` lists each where there are several."""

    def total(name: str) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for result in results:
            counts.update(getattr(result, name))
        return dict(counts)

    record: terminal.Row = {
        "ingest_id": results[0].ingest_id,
        "source": results[0].source,
        **{name: sum(getattr(result, name) for result in results) for name in COUNTS},
        "skipped_by_reason": total("skipped_by_reason"),
        "rejected_by_reason": total("rejected_by_reason"),
        "tables": total("tables"),
        "clusters": sorted({name for result in results for name in result.clusters}),
        "zones": {name: zone for result in results for name, zone in result.zones.items()},
        "notices": [text for result in results for text in result.notices],
    }
    if len(results) > 1:
        keys = ("ingest_id", "path", *COUNTS)
        record["files"] = [{key: getattr(result, key) for key in keys} for result in results]
    return record
