"""Raw samples of a day that are kept: laid aside by stretches, joined as far as they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.reduce.engine import KEPT, WINDOWS
from data.reduce.windows import Windows, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from data.reduce.engine import Engine
    from data.reduce.manifest import Manifest
    from data.reduce.plan import Day
    from data.reduce.windows import Jobs


class Keeping:
    """The samples of a day's windows, none where there are no windows."""

    def __init__(self, engine: Engine, windows: Windows | None, most: int, mark: str = "") -> None:
        self.told: dict[str, Any] = {}
        """What of it stands in the manifest."""
        self._engine, self._windows, self._most, self._mark = engine, windows, most, mark
        self._parts: list[Path] = []
        engine.want(windows)

    def lay_aside(self, files: Mapping[str, int], aside: Path) -> dict[str, int]:
        """Takes the samples that a stretch left, until the day is over; the other files."""
        if WINDOWS in files:
            part = aside / f"{WINDOWS}-{len(self._parts)}"
            (aside / WINDOWS).rename(part)
            self._parts.append(part)
        return {kind: n for kind, n in files.items() if kind != WINDOWS}

    def written(self, aside: Path) -> dict[str, int]:
        """Writes the samples and of which stretches they are: kind -> rows, each in a file."""
        if self._windows is None:
            return {}
        counts = self._engine.places(self._parts)
        last = within(counts, self._most)
        n_rows = self._engine.join(self._parts, last, aside / WINDOWS)
        for part in self._parts:
            part.unlink()
        n_stretches = _write(self._windows, last, aside / KEPT)
        self.told = {
            "mark": self._mark,
            "jobs": sum(0 < place <= last for place, _ in counts),
            "jobs_left_out": sum(place > max(0, last) for place, _ in counts),
            "samples_left_out": sum(n for place, n in counts if place > last),
        }
        found = {WINDOWS: n_rows, KEPT: n_stretches}
        return {kind: n for kind, n in found.items() if n}


def windows_of(manifest: Manifest, jobs: Jobs, day: Day) -> Windows:
    """What is wanted of a day, by its inputs and the jobs that ended on it."""
    ends: dict[str, int] = {}
    for path in day.inputs:
        for cluster, of_cluster in manifest.inputs[path].ends.items():
            if day.day in of_cluster:
                last_us = of_cluster[day.day]
                ends[cluster] = max(ends.get(cluster, last_us), last_us)
    return Windows(ends, jobs.windows(day.day), day.begin_us)


def left_out(
    manifest: Manifest, days: Sequence[str], marks: Mapping[str, str], most: int
) -> Iterator[str]:
    """What has to be known of samples that are not kept: of days of this run, and of earlier ones
    whose jobs were known too late.
    """
    if not manifest.of_jobs:
        return
    made = [manifest.partitions[day].windows for day in days if day in manifest.partitions]
    jobs, samples = (sum(one[f"{of}_left_out"] for one in made) for of in ("jobs", "samples"))
    if samples:
        yield (
            f"left out of the raw samples, of which at most {most:,} a day are kept: {samples:,}; "
            f"jobs that have none therefore: {jobs:,}"
        )
    late = [
        day
        for day, done in sorted(manifest.partitions.items())
        if done.windows.get("mark", "") != marks.get(day, "")
    ]
    if late:
        yield (
            f"{len(late):,} days, {late[0]} first, were done before all of their jobs were known, "
            "and their inputs are no longer given: samples around these jobs are not kept"
        )


def _write(windows: Windows, last_place: int, path: Path) -> int:
    """Writes the stretches of which all samples are kept; how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(*host, begin, end) for host, begin, end in windows.kept(last_place)]
    if rows:
        clusters, nodes, begins, ends = zip(*rows, strict=True)
        columns = {
            "cluster": pa.array([name or None for name in clusters], pa.string()),
            "node": pa.array(nodes, pa.string()),
            "from_us": pa.array(begins, pa.int64()),
            "until_us": pa.array(ends, pa.int64()),
        }
        pq.write_table(pa.table(columns), path)
    return len(rows)
