"""Which machine of a job is faulty by its metrics, and what would have changed the verdict?"""

from __future__ import annotations

import fnmatch
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics.nodes.machines.detection import SILENCE, HeatMap, Settings, heat_map, pulls, watched
from analytics.nodes.machines.samples import LEAST_MACHINES
from analytics.nodes.machines.thresholds import calibrated
from app.answers.content import Answer, Chart, Missing
from app.answers.described import Rows, field, sheet_of
from app.words import moments, numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.errors import DataError
from data.ingest.readers.metrics.machine_samples import read_samples
from data.queries import metrics as stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from analytics.nodes.machines.detection import Detection
    from analytics.nodes.machines.samples import Samples
    from data.store import Store

    Roles = Sequence[tuple[str, str]]

MOST_NAMED = 5
"""Sensors and near misses that are named."""
MOST_TOLD = 50
KINDS = {
    "idle": "rests, as a spare does",
    "silent": "its metrics stopped while the job went on, as where an exporter died",
    "frozen": "its metrics repeat what they said, as where an exporter hangs",
    "sensor": "one metric alone is off, as where a sensor is wrong",
    "role": "unlike the others from the first sample on, as a role of its own is",
    "alone": "its role has fewer than four machines: nothing to compare it with",
}
"""What a machine is that is unlike the others and not known to be faulty."""
FAULTY = (
    Column("machine", "Machine"),
    Column("metric", "Surest metric"),
    field("since_at", "Since (UTC)", of=lambda each: _time(each.since_at), kind="time"),
    Column("score", "Score", "number", help=of_nodes.DISTANCE.definition),
    field("metrics", "All metrics that moved", of=lambda each: ", ".join(each.metrics)),
)
TOLD = (
    Column("machine", "Machine"),
    field("what", "What it is", of=lambda each: KINDS[each.kind]),
    field("metrics", "Metrics", of=lambda each: ", ".join(each.metrics) or "all"),
    Column("kind", "Kind", shown=False),
)
NEAREST = (
    Column("machine", "Machine"),
    Column("metric", "Surest metric"),
    Column("score", "Score", "number", help=of_nodes.DISTANCE.definition),
    Column("threshold", "Threshold", "number"),
    Column("seconds", "Moved for (s)", "number"),
)
SHEET = ("verdict", "machine", "metric", "since_at", "seconds")
"""Columns of the CSV."""
NOTHING = Answer(
    "Which machine is faulty?",
    blocks=(
        Missing(
            "machine_samples",
            "No metrics were given.",
            "They hold at least 8 minutes of samples of at least 4 machines of one job, an hour or "
            "two where samples are 30 s apart: rows of node, metric, at and value, or a column a "
            "metric or a machine. Send them above, or:",
            ("faultline machines metrics.parquet",),
        ),
    ),
    about="A faulty machine moves away from the others of its job, and stays away",
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
        return _known_time(self.found.since_at)


def examined(files: Sequence[str], settings: Settings | None = None, roles: Roles = ()) -> Examined:
    """Is a machine faulty by the metrics in these files?

    Raises
    ------
    DataError
        Where a file cannot be read.
    AnalysisError
        Where there are too few machines, or too short a time.
    """
    return _examined(lambda: read_samples(files), settings, roles)


def examined_store(
    store: Store,
    cluster: str | None = None,
    job_id: str | None = None,
    settings: Settings | None = None,
    roles: Roles = (),
) -> Examined:
    """Is a machine faulty by the last samples in the store, of a cluster or of one job?

    Raises
    ------
    DataError
        Where it holds none, or of several clusters none is named.
    AnalysisError
        Where there are too few machines, too short a time, or too few samples.
    """
    return _examined(lambda: stored.last_samples(store, cluster, job_id), settings, roles)


def has_samples(store: Store) -> bool:
    """Whether the store holds samples of metrics."""
    return stored.has_samples(store)


def learnt(healthy: Sequence[str], settings: Settings | None = None) -> Settings:
    """The threshold that machines of healthy files stay below.

    Raises
    ------
    DataError
        Where a file cannot be read.
    AnalysisError
        Where nothing is healthy, or the files say too little.
    """
    return calibrated([pull for name in healthy for pull in pulls(read_samples([name]))], settings)


def stated_roles(words: Sequence[str]) -> list[tuple[str, str]]:
    """Roles as they are stated, each with the names that it fits.

    >>> stated_roles(["embedding=gpu-00*"])
    [('embedding', 'gpu-00*')]

    Raises
    ------
    DataError
        Where one is stated otherwise.
    """
    pairs = [word.partition("=") for word in words]
    for role, equals, pattern in pairs:
        if not (role and equals and pattern):
            raise DataError(f"a role is stated as embedding=gpu-00*, got {role + equals + pattern}")
    return [(role, pattern) for role, _, pattern in pairs]


def roles_of(machines: Sequence[str], stated: Roles) -> dict[str, str]:
    """Machine -> its role, by the first pattern that its name fits.

    >>> roles_of(["gpu-1", "gpu-2"], [("loss", "gpu-2")])
    {'gpu-2': 'loss'}

    Raises
    ------
    DataError
        Where a pattern fits no machine.
    """
    for role, pattern in stated:
        if not fnmatch.filter(machines, pattern):
            raise DataError(f"role {role}: no machine is called {pattern}, as {machines[0]} is")
    fitting = {
        machine: next((role for role, pattern in stated if fnmatch.fnmatch(machine, pattern)), "")
        for machine in machines
    }
    return {machine: role for machine, role in fitting.items() if role}


def _examined(read: Callable[[], Samples], settings: Settings | None, roles: Roles) -> Examined:
    """What samples show, and how long that took."""
    settings = settings or Settings()
    begun = time.perf_counter()
    samples = read()
    read_at = time.perf_counter()
    pull, found = watched(samples, settings, roles_of(samples.machines, roles))
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
    """The verdict, the machines it names, what else is unlike the others, what came nearest."""
    found = of.found
    tables = [
        Rows(FAULTY, list(found.faulty)).table("faulty", "Faulty machines", empty="None."),
        Rows(TOLD, list(found.told)[:MOST_TOLD]).table(
            "told", "Unlike the others, and not known to be faulty", empty="None."
        ),
        Rows(NEAREST, [near for near in found.nearest if near.score > 0][:MOST_NAMED]).table(
            "nearest", "Largest scores", empty="No machine moved away from the others."
        ),
    ]
    return Answer(
        _sentence(of),
        blocks=(_chart(of), *tables),
        notes=tuple(_notes(of)),
        record=_record(of),
        sheet=sheet_of(rows_of(_record(of)), SHEET),
        about=f"{numbers.counted(of.n_machines, 'machine')}, "
        f"{numbers.counted(len(of.metrics), 'metric')}, {of.covered_seconds:,.0f} s at "
        f"{of.step_seconds:g} s",
    )


def _sentence(of: Examined) -> str:
    """Who is faulty, by what and since when."""
    found = of.found
    if not found.faulty and found.n_judged < LEAST_MACHINES:
        return (
            f"Cannot be judged: {numbers.counted(found.n_judged, 'machine')} with metrics that "
            f"tell enough, {LEAST_MACHINES} are needed."
        )
    if not found.faulty:
        minutes = of.lasting / 60
        return (
            f"No machine is faulty: none moved away from the others for {minutes:.3g} minutes and "
            "more."
        )
    if len(found.faulty) > 1:
        *some, last = (each.machine for each in found.faulty)
        return f"{', '.join(some)} and {last} are faulty."
    (each,) = found.faulty
    since = f"{moments.second(_time(each.since_at))} UTC"
    if each.metric == SILENCE:
        return f"{each.machine} is faulty: no metric says anything of it from {since} on."
    return f"{each.machine} is faulty since {since}, by {each.metric}."


def _chart(of: Examined) -> Chart:
    """The deciding metric by machine and time."""
    title = f"{of.picture.metric} by machine and time"
    return Chart("nodes.machine_heat_map", title, title, (of.picture,), whole=True, zoned=True)


def _notes(of: Examined) -> Iterator[str]:
    """What would have changed the verdict, and what was not believed."""
    found = of.found
    if not found.faulty and found.nearest:
        near = found.nearest[0]
        yield (
            f"{near.machine} came nearest, by {near.metric}: its score is "
            f"{numbers.number(near.score)}, the threshold {near.threshold:g}."
        )
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
    unseen = of.n_machines - found.n_judged
    if unseen:
        yield (
            f"{numbers.counted(unseen, 'machine')} of {of.n_machines:,} could not be judged: at "
            "rest, without samples, or alone in a role."
        )
    if any(each.kind in ("role", "sensor") and each.since_at is None for each in found.told):
        yield (
            "What was so from the first sample on is called no fault: nothing says whether it is a "
            "role, a sensor or a fault."
        )


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    """Some machines and metrics, and how many more there are."""
    text = ", ".join(f"{metric} of {machine}" for machine, metric in pairs[:MOST_NAMED])
    more = len(pairs) - MOST_NAMED
    return f"{text} and {more:,} more" if more > 0 else text


def _verdict(found: Detection) -> str:
    """In a word."""
    if found.faulty:
        return "faulty"
    return "none" if found.n_judged >= LEAST_MACHINES else "unknown"


def _record(of: Examined) -> dict[str, Any]:
    """The verdict under the keys of the JSON."""
    found = of.found
    return {
        "verdict": _verdict(found),
        "machine": found.machine,
        "metric": found.metric,
        "since_at": of.since_at,
        "faulty": [vars(each) | {"since_at": _time(each.since_at)} for each in found.faulty],
        "told": [vars(each) | {"since_at": _known_time(each.since_at)} for each in found.told],
        "nearest": [vars(each) for each in found.nearest],
        "dead_sensors": [{"machine": n, "metric": m} for n, m in found.dead_sensors],
        "left_out": [{"machine": n, "metric": m} for n, m in found.left_out],
        "n_machines": of.n_machines,
        "n_judged": found.n_judged,
        "metrics": list(of.metrics),
        "start_at": of.start_at,
        "covered_seconds": of.covered_seconds,
        "step_seconds": of.step_seconds,
        "settings": vars(of.settings),
        "read_seconds": of.read_seconds,
        "seconds": of.seconds,
    }


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A row of the CSV for each faulty machine of a record, or one."""
    named = ("machine", "metric", "since_at")
    return [record | {key: each[key] for key in named} for each in record["faulty"]] or [record]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _known_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else _time(seconds)
