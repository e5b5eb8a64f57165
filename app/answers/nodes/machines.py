"""Which machine of a job is faulty by its metrics, and what would have changed the verdict?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics.nodes.machines.detection import SILENCE, HeatMap, Settings, heat_map, pulls, watched
from analytics.nodes.machines.thresholds import calibrated, prioritised
from app.answers.content import Answer, Chart, Missing, Table
from app.answers.described import Rows, field, sheet_of
from app.words import moments, numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.ingest.readers.metrics.machine_samples import read_samples
from data.queries.metrics import last_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from analytics.nodes.machines.asked import Nearest
    from analytics.nodes.machines.detection import Detection
    from analytics.nodes.machines.samples import Samples
    from data.store import Store

MOST_NAMED = 5
"""Sensors and near misses that are named."""
VIEWS = {
    "change": "moved away from where it began",
    "minute": "moved away from where it began, by the mean of a minute",
    "level": "elsewhere all the time",
}
NEAREST = (
    Column("machine", "Machine"),
    Column("metric", "Metric"),
    field("how", "How it is unlike the others", of=lambda near: VIEWS[near.view]),
    Column("score", "Score", "number",
           help=of_nodes.DISTANCE.definition),
    Column("threshold", "Threshold", "number"),
    Column("seconds", "Beyond it (s)", "number"),
    Column("view", "View", shown=False),
)  # fmt: skip
NOTHING = Answer(
    "Which machine is faulty?",
    blocks=(
        Missing(
            "machine_samples",
            "No metrics were given.",
            "They hold at least 4 minutes of samples of at least 4 machines of one job: rows of "
            "node, metric, at and value, or a column a metric or a machine. Send them above, or:",
            ("faultline machines metrics.parquet",),
        ),
    ),
    about="A faulty machine stays unlike all others of its job for 4 minutes",
)


@dataclass(frozen=True)
class Examined:
    """What the metrics of a job show."""

    found: Detection
    picture: HeatMap
    n_machines: int
    metrics: tuple[str, ...]
    start_at: datetime
    """Of the pull that was judged last."""
    covered_seconds: float
    """Of all samples."""
    step_seconds: float
    settings: Settings
    read_seconds: float
    seconds: float
    """That the analysis took, from samples in memory."""

    @property
    def lasting(self) -> float:
        """Seconds that a fault must last."""
        return self.settings.lasting(self.step_seconds)

    @property
    def since_at(self) -> datetime | None:
        """Since when a machine is faulty."""
        since = self.found.since_at
        return None if since is None else _time(since)


def examined(files: Sequence[str], settings: Settings | None = None) -> Examined:
    """Is a machine faulty by the metrics in these files?

    Raises
    ------
    DataError
        Where a file cannot be read.
    AnalysisError
        Where there are too few machines, or too short a time.
    """
    return _examined(lambda: read_samples(files), settings)


def examined_store(
    store: Store,
    cluster: str | None = None,
    job_id: str | None = None,
    settings: Settings | None = None,
) -> Examined:
    """Is a machine faulty by the last samples in the store, of a cluster or of one job?

    Raises
    ------
    DataError
        Where it holds none, or of several clusters none is named.
    AnalysisError
        Where there are too few machines, too short a time, or too few samples.
    """
    return _examined(lambda: last_samples(store, cluster, job_id), settings)


def learnt(
    healthy: Sequence[str], faulty: Sequence[tuple[str, datetime]], settings: Settings | None = None
) -> Settings:
    """Thresholds from healthy files and, where faulty ones are given, the order of metrics.

    Raises
    ------
    DataError
        Where a file cannot be read.
    AnalysisError
        Where nothing is healthy, or the files say too little.
    """
    pulled = [pull for name in healthy for pull in pulls(read_samples([name]))]
    found = calibrated(pulled, settings)
    if not faulty:
        return found
    labelled = [(read_samples([name]), since.timestamp()) for name, since in faulty]
    return prioritised(pulled, labelled, found)


def _examined(read: Callable[[], Samples], settings: Settings | None) -> Examined:
    """What samples show, and how long that took."""
    import sklearn.decomposition  # noqa: F401 - a second of importing is no analysis

    settings = settings or Settings()
    begun = time.perf_counter()
    samples = read()
    read_at = time.perf_counter()
    pull, found = watched(samples, settings)
    judged = time.perf_counter()
    return Examined(
        found,
        heat_map(pull, found),
        len(samples.machines),
        tuple(samples.values),
        _time(pull.start_at),
        samples.n_samples * samples.step_seconds,
        samples.step_seconds,
        settings,
        round(read_at - begun, 4),
        round(judged - read_at, 4),
    )


def answer(of: Examined) -> Answer:
    """The verdict, the metric that decided, and what came nearest."""
    table = _nearest(of)
    return Answer(
        _sentence(of),
        blocks=(_chart(of), table),
        notes=tuple(_notes(of)),
        record=_record(of),
        sheet=sheet_of([_record(of)], ("verdict", "machine", "metric", "since_at", "seconds")),
        about=f"{numbers.counted(of.n_machines, 'machine')}, "
        f"{numbers.counted(len(of.metrics), 'metric')}, {of.covered_seconds:,.0f} s at "
        f"{of.step_seconds:g} s",
    )


def _sentence(of: Examined) -> str:
    """Who is faulty, by what and since when."""
    found = of.found
    if found.machine is None or of.since_at is None:
        minutes = of.lasting / 60
        return f"No machine is faulty: none stays unlike all others for {minutes:.3g} minutes."
    since = f"{moments.second(of.since_at)} UTC"
    if found.metric == SILENCE:
        return f"{found.machine} is faulty: no metric says anything of it from {since} on."
    began = f"{since} or before" if found.since_start else since
    return f"{found.machine} is faulty since {began}, by {found.metric}."


def _nearest(of: Examined) -> Table:
    """What came nearest, or what the verdict rests on."""
    near = [each for each in of.found.nearest if each.score > 0]
    title = "What came nearest" if of.found.machine is None else "What the verdict rests on"
    return Rows(NEAREST, near[:MOST_NAMED]).table(
        "nearest", title, empty="No machine was the farthest for as long as a fault lasts."
    )


def _chart(of: Examined) -> Chart:
    """The deciding metric by machine and time."""
    title = f"{of.picture.metric} by machine and time"
    return Chart("nodes.machine_heat_map", title, title, (of.picture,), whole=True, zoned=True)


def _notes(of: Examined) -> Iterator[str]:
    """What would have changed the verdict, and what was not believed."""
    found, nearest = of.found, of.found.nearest
    if found.machine is not None and nearest:
        yield (
            f"{nearest[0].metric} compared so would not decide at a threshold above "
            f"{numbers.number(nearest[0].score)} (now {nearest[0].threshold:g}), or if a fault "
            f"had to last more than {nearest[0].seconds:,.0f} s (now {of.lasting:g} s)."
        )
    elif found.machine is None and nearest and nearest[0].score > 0:
        yield _would_change(nearest[0])
    if of.step_seconds > 1:
        yield (
            f"Samples are {of.step_seconds:g} s apart, so a fault must last {of.lasting:g} s; what "
            "lasts less, or shows within a step of the training, needs samples of 1 s."
        )
    if found.dead_sensors:
        named = _named(found.dead_sensors)
        yield f"Not believed, for they repeat one value or read zero alone: {named}."
    if found.left_out:
        yield f"Left out, for half of the samples are missing: {_named(found.left_out)}."


def _would_change(nearest: Nearest) -> str:
    """How near the nearest machine came."""
    return (
        f"{nearest.machine} came nearest, by {nearest.metric}: a threshold below "
        f"{numbers.number(nearest.score)} (now {nearest.threshold:g}) would name it."
    )


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    """Some machines and metrics, and how many more there are."""
    text = ", ".join(f"{metric} of {machine}" for machine, metric in pairs[:MOST_NAMED])
    more = len(pairs) - MOST_NAMED
    return f"{text} and {more:,} more" if more > 0 else text


def _record(of: Examined) -> dict[str, Any]:
    """The verdict under the keys of the JSON."""
    found = of.found
    return {
        "verdict": "none" if found.machine is None else "faulty",
        "machine": found.machine,
        "metric": found.metric,
        "since_at": of.since_at,
        "since_start": found.since_start,
        "nearest": [vars(each) for each in found.nearest],
        "dead_sensors": [{"machine": n, "metric": m} for n, m in found.dead_sensors],
        "left_out": [{"machine": n, "metric": m} for n, m in found.left_out],
        "n_machines": of.n_machines,
        "metrics": list(of.metrics),
        "start_at": of.start_at,
        "covered_seconds": of.covered_seconds,
        "step_seconds": of.step_seconds,
        "settings": vars(of.settings),
        "read_seconds": of.read_seconds,
        "seconds": of.seconds,
    }


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
