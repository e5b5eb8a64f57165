"""faultline reduce: make raw records of any size into what the store reads."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from data.queries.job_ends import JobEnds
    from data.reduce.manifest import Manifest
    from data.reduce.running import Reduced, Request

EXAMPLE = (
    "printf 'at,node,metric,value\\n1767225600,n1,power_watts,400\\n' > samples.csv && "
    "faultline reduce metrics samples.csv --out reduced && "
    "faultline ingest reduced-metrics reduced --store ./own-store"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The records, the engine and the folder."""
    parser.add_argument(
        "kind",
        choices=("metrics", "events", "jobs"),
        metavar="KIND",
        help="metrics, events or jobs (accounting)",
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="Parquet, CSV or JSON lines: of metrics node, metric, at, value, and gpu, labels and "
        "cluster where there are; of events node, at, check_name or xid, and message, gpu, "
        "severity and more where there are, and logs that `faultline ingest` knows; of jobs the "
        "columns of sacct, and the text of sacct -P; files, folders and patterns, also of objects "
        "(s3://bucket/day=*/part-*.parquet), by the credentials of the environment",
    )
    parser.add_argument(
        "--out",
        type=options.folder,
        required=True,
        metavar="DIR",
        help="folder of the reduction: what is done there stays, what is new or changed is added",
    )
    parser.add_argument(
        "--engine",
        choices=("duckdb", "spark"),
        default="duckdb",
        help="what computes: duckdb on this machine (default), or spark, which needs Java and "
        "pip install -e .[spark]",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Spark's master, e.g. spark://host:7077 (default Spark in this process); inputs and "
        "DIR lie where all its workers reach them",
    )
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="STORE",
        help="of metrics: store whose jobs are known; the samples by which `faultline machines` "
        "and alerts compare machines are kept, of the last half hour of each job on four nodes or "
        "more, and of each day",
    )
    parser.add_argument("--cluster", metavar="NAME", help="cluster that the records belong to")
    parser.add_argument(
        "--timezone", metavar="TZ", help="zone of times that name none (default UTC)"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be read, and estimate time and memory by a measured sample",
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Reduces, and prints what became of the records."""
    from app.actions import checked_zone

    zone = checked_zone(arguments.timezone)
    if arguments.jobs is not None and arguments.kind != "metrics":
        raise DataError(f"--jobs says nothing to {arguments.kind}: leave it out")
    with _jobs(arguments.jobs) as jobs:
        request = _request(arguments, zone, jobs)
        if arguments.dry_run:
            from data.reduce.estimate import estimate

            terminal.print_record(estimate(request), arguments.format)
            return 0
        from data.reduce.records import reduce_records

        result = reduce_records(request)
    terminal.progress_done()
    for text in result.notices:
        terminal.notice(f"faultline reduce: {text}")
    terminal.print_record(_record(result), arguments.format)
    return 2 if result.manifest.refused else 0


@contextmanager
def _jobs(root: Path | None) -> Iterator[JobEnds | None]:
    """The jobs of a store."""
    if root is None:
        yield None
        return
    from data.queries.job_ends import JobEnds
    from data.store import Store

    with closing(Store.open(root)) as store:
        yield JobEnds(store)


def _request(arguments: argparse.Namespace, zone: str | None, jobs: JobEnds | None) -> Request:
    """What was asked for."""
    from data.reduce.running import Request

    if arguments.master is not None and arguments.engine != "spark":
        raise DataError("--master says nothing to duckdb: add --engine spark, or leave it out")
    if arguments.dry_run and arguments.engine == "spark":
        raise DataError("--dry-run measures DuckDB on this machine: leave --engine spark out")
    if arguments.cluster is not None and not arguments.cluster.strip():
        raise DataError("--cluster is empty: name it, or leave the option out")
    return Request(
        tuple(arguments.inputs),
        Path(arguments.out),
        arguments.kind,
        arguments.cluster,
        zone,
        engine=arguments.engine,
        master=arguments.master,
        jobs=jobs,
        progress=terminal.progress,
    )


def _record(result: Reduced) -> dict[str, Any]:
    """Counts over all inputs of the reduction so far, and what this run did."""
    manifest = result.manifest
    return {
        **result.counts,
        "skipped_by_reason": dict(manifest.total("skipped")),
        "rejected_by_reason": dict(manifest.total("rejected")),
        "rows_in": sum(done.rows_in for done in manifest.partitions.values()),
        "rows_out": manifest.rows_out(result.kind.main),
        "rows_out_by_kind": {kind: manifest.rows_out(kind) for kind in result.kind.files},
        "repeated": sum(done.repeated for done in manifest.partitions.values()),
        **_windows(manifest),
        "partitions": len(manifest.partitions),
        "partitions_done": result.days_done,
        "refused": dict(manifest.refused),
        "seconds": round(result.seconds, 3),
    }


def _windows(manifest: Manifest) -> dict[str, Any]:
    """Jobs of which samples are kept, and what is left out; nothing where none were asked for."""
    if not manifest.of_jobs:
        return {}
    made = [done.windows for done in manifest.partitions.values()]
    keys = ("jobs", "jobs_left_out", "samples_left_out")
    return {"windows": {key: sum(one.get(key, 0) for one in made) for key in keys}}
