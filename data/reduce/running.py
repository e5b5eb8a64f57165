"""Reducing: inputs are surveyed, then day after day is made and recorded; what is done stays."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from data.current import sync
from data.errors import DataError, SourceError
from data.reduce.engine import MINUTES, NO_LAST, Engine, Found, Surveying, told_here
from data.reduce.inputs import identity_now
from data.reduce.keeping import Keeping, left_out, windows_of
from data.reduce.kinds import KINDS, METRICS
from data.reduce.manifest import Done, Manifest, load
from data.reduce.plan import DAY_US, HOUR_US, Day, after, again, before, due, stretches
from data.reduce.windows import MOST_KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from data.reduce.inputs import Partition
    from data.reduce.kinds import Kind
    from data.reduce.windows import Jobs

ASIDE = ".aside-"
DAY = "day="


@dataclass(frozen=True)
class Request:
    """What is to be reduced."""

    inputs: tuple[str, ...]
    out: Path
    kind: str = METRICS
    cluster: str | None = None
    """Cluster of all records; None where they name it or nobody does."""
    timezone: str | None = None
    """Zone of times that name none; None for UTC."""
    most_rows: int | None = None
    """Samples that are reduced at once; None for what the engine can hold."""
    engine: str = "duckdb"
    master: str | None = None
    """Address of Spark's master; None for Spark in this process."""
    jobs: Jobs | None = None
    """Of these raw samples are kept; None for of none."""
    most_kept: int = MOST_KEPT
    """Raw samples of a day that are kept at most."""
    progress: Callable[[str], None] = lambda message: None


@dataclass
class Reduced:
    """What became of it: rows_read = rows_kept + skipped + rejected, over all inputs so far."""

    manifest: Manifest
    days_done: list[str] = field(default_factory=list)
    """Days that this run made."""
    notices: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kind(self) -> Kind:
        """What was reduced."""
        return KINDS[self.manifest.kind]

    @property
    def counts(self) -> Counter[str]:
        """rows_read, rows_kept, rows_skipped and rows_rejected."""
        inputs = self.manifest.inputs.values()
        superseded = sum(sum(one.superseded.values()) for one in self.manifest.partitions.values())
        return Counter(
            rows_read=sum(one.rows for one in inputs),
            rows_kept=sum(one.kept for one in inputs) - superseded,
            rows_skipped=self.manifest.total("skipped").total(),
            rows_rejected=self.manifest.total("rejected").total(),
        )


def opened(request: Request) -> Manifest:
    """The reduction that the folder holds, or a new one.

    Raises
    ------
    DataError
        Where it is another one, or the folder holds something else.
    """
    zone = request.timezone or "UTC"
    manifest = load(request.out)
    if manifest is None:
        if any(not path.name.startswith(".") for path in request.out.glob("*")):
            raise DataError(
                f"{request.out}: holds files and no manifest of a reduction: name a new folder"
            )
        return Manifest(request.kind, zone, request.cluster, request.jobs is not None)
    if manifest.of_jobs != (request.jobs is not None):
        made = "with" if manifest.of_jobs else "without"
        raise DataError(
            f"{request.out}: is a reduction {made} --jobs: say the same, or name another folder"
        )
    stated = (request.kind, zone, request.cluster)
    if (manifest.kind, manifest.zone, manifest.cluster) != stated:
        raise DataError(
            f"{request.out}: is a reduction of {manifest.kind} with zone {manifest.zone} and "
            f"cluster {manifest.cluster or 'as stated'}: say the same, or name another folder"
        )
    return manifest


def survey_inputs(
    engine: Surveying, request: Request, given: Sequence[Partition], result: Reduced
) -> None:
    """Counts the rows of each input that is new or changed; one that cannot be read is told."""
    manifest, paths = result.manifest, {partition.path for partition in given}
    manifest.refused = {path: why for path, why in manifest.refused.items() if path in paths}
    new = [
        partition
        for partition in given
        if (known := manifest.inputs.get(partition.path)) is None
        or known.identity != partition.identity
    ]
    engine.prepare(new)
    for number, partition in enumerate(new, 1):
        request.progress(f"{number:,} of {len(new):,} inputs read")
        try:
            found = engine.survey(partition)
        except SourceError as error:
            manifest.refused[partition.path] = told_here(str(error))
            continue
        manifest.inputs[partition.path] = found
        manifest.refused.pop(partition.path, None)
    if not paths & manifest.inputs.keys():
        raise SourceError(next(iter(manifest.refused.values())))
    _refuse_changed(manifest, given)
    manifest.save(request.out)


def _refuse_changed(manifest: Manifest, given: Sequence[Partition]) -> None:
    """Refuses to go on where an input that was reduced is damaged now: its days would lose it."""
    for partition in given:
        known = manifest.inputs.get(partition.path)
        if known is not None and known.identity != partition.identity:
            raise SourceError(f"{manifest.refused[partition.path]}; it was reduced before")


def make_days(
    engine: Engine, request: Request, given: Sequence[Partition], result: Reduced
) -> None:
    """Makes each day that is due, and the next where its counters count on from another end."""
    manifest = result.manifest
    marks = request.jobs.marks() if request.jobs else None
    todo = {day.day: day for day in due(manifest, given, marks)}
    n_days = len(todo)
    while todo:
        day = todo.pop(min(todo))
        request.progress(f"{day.day}: {len(result.days_done) + 1:,} of {n_days:,} days")
        if day.late:
            late = f"{sum(day.late.values()):,} {result.kind.called} of {', '.join(day.late)}"
            result.notices.append(f"{day.day}: {late} came when the day was done: it was made anew")
        _make_day(engine, request, given, day, manifest, (marks or {}).get(day.day, ""))
        result.days_done.append(day.day)
        following = _following(manifest, day.day, given)
        if following is not None:
            todo.setdefault(following.day, following)
    result.notices += left_out(manifest, result.days_done, marks or {}, request.most_kept)
    manifest.save(request.out)


def _following(manifest: Manifest, day: str, given: Sequence[Partition]) -> Day | None:
    """The next day, where it is done and counted on from another end of this one."""
    next_day = after(day)
    this, done = manifest.partitions.get(day), manifest.partitions.get(next_day)
    if done is None or done.before == (this.last if this else NO_LAST):
        return None
    return again(manifest, next_day, given)


def _make_day(
    engine: Engine,
    request: Request,
    given: Sequence[Partition],
    day: Day,
    manifest: Manifest,
    mark: str,
) -> None:
    """Makes one day: files are written aside, named, then the manifest names them."""
    out, old = request.out, manifest.partitions.pop(day.day, None)
    if day.inputs:
        of_day = [partition for partition in given if partition.path in day.inputs]
        clean = {path for path in day.inputs if manifest.inputs[path].is_clean}
        earlier = manifest.partitions.get(before(day.day))
        minutes = [out / name for name in earlier.files.get(MINUTES, ())] if earlier else []
        names = {name for path in day.inputs for name in manifest.inputs[path].metrics}
        engine.begin(names, minutes, day.begin_us - HOUR_US)
        windows = windows_of(manifest, request.jobs, day) if request.jobs else None
        keeping = Keeping(engine, windows, request.most_kept, mark)
        files, counts = _write(engine, request, Found(of_day, clean), day, keeping)
        refuse_moved(of_day)
        last_us = day.begin_us + DAY_US - HOUR_US
        manifest.partitions[day.day] = Done(
            day.inputs,
            files,
            counts["rows_in"],
            counts["repeated"],
            {kind: counts[kind] for kind in KINDS[request.kind].files},
            earlier.last if earlier else NO_LAST,
            engine.last([out / name for name in files.get(MINUTES, ())], last_us),
            windows=keeping.told,
        )
    manifest.save(out)
    for names_of in old.files.values() if old else ():
        for name in names_of:
            (out / name).unlink(missing_ok=True)


def _write(
    engine: Engine, request: Request, found: Found, day: Day, keeping: Keeping
) -> tuple[dict[str, list[str]], Counter[str]]:
    """Files of a day, in their places, and how many rows they and the samples are."""
    run, out, number = secrets.token_hex(4), request.out, 0
    files: dict[str, list[str]] = {kind: [] for kind in KINDS[request.kind].files}
    counts: Counter[str] = Counter()
    aside = out / f"{ASIDE}{run}"
    aside.mkdir()

    def place(path: Path, kind: str, number: int) -> None:
        name = f"{kind}/{DAY}{day.day}/{run}-{number}.parquet"
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        sync(path)
        path.rename(out / name)
        files[kind].append(name)

    for stretch in stretches(day.hours, request.most_rows or engine.most_rows):
        for share in range(stretch.shares):
            period = stretch.begin_us, stretch.end_us
            made = engine.reduce(found, period, (share, stretch.shares), aside)
            engine.keep_last(stretch.end_us - HOUR_US)
            counts.update(rows_in=made.rows_in, repeated=made.repeated)
            others = keeping.lay_aside(made.files, aside)
            counts.update(others)
            for kind in others:
                place(aside / kind, kind, number)
            number += 1
        engine.pass_on()
    written = keeping.written(aside)
    counts.update(written)
    for kind in written:
        place(aside / kind, kind, 0)
    aside.rmdir()
    return files, counts


def refuse_moved(of_day: Sequence[Partition]) -> None:
    """Refuses what was read of an input that changed meanwhile."""
    for partition in of_day:
        identity = identity_now(partition)
        if identity is None:
            raise SourceError(f"{partition.path}: went while it was read: run it again")
        if identity != partition.identity:
            raise SourceError(f"{partition.path}: changed while it was read: run it again")


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keeps others from reducing into the folder."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DataError(f"{out}: another process reduces into it: wait for its end") from None
    finally:
        os.close(descriptor)


def clear(out: Path, manifest: Manifest) -> None:
    """Removes what a run left that ended early."""
    for path in out.glob(f"{ASIDE}*"):
        shutil.rmtree(path)
    for path in out.glob(".manifest.json-*.part"):
        path.unlink()
    kinds = KINDS[manifest.kind].files
    named = {name for kind in kinds for name in manifest.files(kind)}
    for kind in kinds:
        for path in (out / kind).glob(f"{DAY}*/*.parquet"):
            if str(path.relative_to(out)) not in named:
                path.unlink()


def told_inputs(manifest: Manifest, request: Request) -> Iterator[str]:
    """What has to be known of the inputs."""
    yield from manifest.refused.values()
    n_local = sum(one.local for one in manifest.inputs.values())
    if n_local and request.timezone is None:
        yield f"times without a zone, read as UTC (pass --timezone): {n_local:,}"
