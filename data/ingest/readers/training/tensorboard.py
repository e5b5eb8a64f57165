"""Reader of TensorBoard's event files: the scalars of a run, or of all runs below a folder."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.formats.event_files import events
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.training.joined import Point, add_joined
from data.ingest.readers.training.run_folders import RunFolder
from data.ingest.readers.training.step_records import MEASURED, OF_A_RUN, StepRecords
from data.ingest.rows import PROGRESS_RECORDS

if TYPE_CHECKING:
    import duckdb

_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800
_OTHER_AXIS = re.compile(r"[ _]vs[ _](?:samples|tokens|gigaflops|steps)\b")
"""Series of Megatron-LM whose step counts something else."""


def sniff(head: str) -> bool:
    """Whether the first record states the version of the format."""
    return "brain.Event:" in head[:64] and "\0" in head[:16]


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Scalars of an event file as rows of `training_metrics`, those of one step joined.

    Graphs, histograms, images and texts are skipped. Of a file that is cut off or damaged what
    comes before is kept.

    Raises
    ------
    SourceError
        Where it holds no scalar, or nobody stated whose run it is.
    """
    reading = _Reading(StepRecords(source, options, MEASURED | OF_A_RUN), [])
    reading.take(source, None)
    return reading.batch(connection)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,
    workdir: Path,
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The event files below a folder: those of one folder are one run, named by its path.

    Raises
    ------
    SourceError
        Where no event file lies below it, or none holds a scalar.
    """
    found = RunFolder(folder, called or str(folder))
    reading = _Reading(StepRecords(found.source(), options, MEASURED | OF_A_RUN), [])
    none = "no event file lies in it: give the folder of --logdir"
    for relative, source in found.files(_is_event_file, reading.records, workdir, none=none):
        parent = PurePosixPath(relative).parent.as_posix()
        run = folder.name if parent == "." else parent
        reading.take(source, run)
    return found.source(), reading.batch(connection)


def _is_event_file(relative: str) -> bool:
    return "tfevents" in PurePosixPath(relative).name


class _Reading(NamedTuple):
    """What has been read so far."""

    records: StepRecords
    points: list[Point]

    def take(self, source: Source, run: str | None) -> None:
        """Takes the scalars of a file."""
        records, writer = self.records, len(self.points)
        with source.path.open("rb") as stream:
            for number, event in enumerate(events(stream), 1):
                if number % PROGRESS_RECORDS == 0:
                    records.options.progress(f"{source.name}: {number:,} records")
                if isinstance(event, RecordError):
                    records.rejected.reject(number, str(event), source.name)
                    continue
                if event is None:
                    records.skipped["no_summary"] += 1
                    continue
                at_s = event.wall_time
                if at_s is not None and not _EARLIEST_S <= at_s < _LATEST_S:
                    at_s = None
                records.skipped["no_scalar"] += event.n_others
                for tag, value in event.scalars:
                    if _OTHER_AXIS.search(tag):
                        records.skipped["other_axis"] += 1
                    else:
                        point = Point(run, tag, event.step, at_s, value, number, writer)
                        self.points.append(point)

    def batch(self, connection: duckdb.DuckDBPyConnection) -> Batch:
        """All of it; a single run is called as the caller says."""
        options, points = self.records.options, self.points
        if (options.job_id or options.run_id) and len({point.run for point in points}) == 1:
            points = [point._replace(run=None) for point in points]
        add_joined(points, self.records)
        return self.records.batch(connection)


READER = Reader(
    "tensorboard",
    "event files of TensorBoard",
    export="events.out.tfevents.*, or the folder of --logdir",
    reads=(
        "event files of TensorBoard, or a folder of them (a folder inside is a run): scalars of "
        "both forms, joined by step; graphs, histograms and images are skipped; of a cut file what "
        "comes before; `--job-id` or `--run-id` of a single file"
    ),
    script="# the folder that --logdir of tensorboard names",
    example="runs/ --job-id 4711",
    advice="Of one run several files, as restarts leave them, are read together by their folder.",
    fills=("training_metrics",),
    place=7.3,
    options=("job_id", "run_id"),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    read_folder=read_folder,
)
