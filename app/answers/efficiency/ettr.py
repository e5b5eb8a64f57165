"""What did runs get out of their time, beside what their failure rate lets expect?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from analytics.efficiency.beside_expected import expected_at_own_rate, expected_curve_of_runs
from analytics.efficiency.ettr import (
    EttrReport,
    ettr_report,
    in_hours,
    runs_of_size,
    runs_of_week,
)
from analytics.efficiency.habits import Habits, recorded_habits
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import DEFINITION
from app.answers.columns import columns, values
from app.answers.content import Answer, Chart, Missing, Number, Part, Table, estimated
from app.answers.described import Rows, field
from app.answers.efficiency import untold
from app.answers.reliability import detection, mttf, sight
from app.ask import EVERYTHING, FEW
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_efficiency
from data.filters import MTTF_MIN_GPUS
from data.queries import efficiency, exposure
from data.queries.clocks import zones

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analytics.efficiency.beside_expected import ExpectedCurve
    from analytics.efficiency.group_ettr import GroupEttr
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

COUNTED = (
    *("cluster", "run_id", "n_gpus", "n_attempts", "n_interruptions", "n_failures"),
    *("first_start_at", "queued_s", "scheduled_s", "startup_s", "checkpoint_s", "lost_s"),
    *("productive_s", "lower_productive_s", "upper_productive_s", "shared_productive_s"),
    *("variance_productive_s2", "unrecorded_s"),
)
"""Columns of runs that an ETTR is computed from."""
HOURS = ("queued", "scheduled", "startup", "checkpoint", "lost", "productive")
_HOURS = {
    "queued": "Queued (h)", "scheduled": "Ran (h)", "startup": "Start-up (h)",
    "checkpoint": "Checkpoints (h)", "lost": "Lost work (h)", "productive": "Productive (h)",
}  # fmt: skip
RUNS = (
    *columns("run_id", "name", "n_gpus"),
    Column("ettr", "ETTR", "decimal"),
    Column("lower", "At least", "decimal"),
    Column("upper", "At most", "decimal"),
    Column("basis", "Measured by", help=of_efficiency.MEASURED_BY.definition),
    Column("n_attempts", "Attempts", "count"),
    Column("n_interruptions", "Interruptions", "count", none=sight.NOT_SEEN),
    Column("n_failures", "Failures", "count", none=sight.NOT_SEEN, wide=True),
    *(Column(f"{part}_h", title, "number", wide=part not in ("queued", "scheduled"))
      for part, title in _HOURS.items()),
    Column("first_start_at", "First start", "time", wide=True),
    Column("last_end_at", "Last end", "time", none="has not ended", wide=True),
    *columns("user", "account", "partition", wide=("user", "account", "partition")),
    Column("joined_by", "Joined by", help=of_efficiency.JOINED_BY.definition, wide=True),
    *columns("cluster", wide=("cluster",)),
)  # fmt: skip
RECORDED = ("ettr", "of_these_runs", "median", "wait_hours", "mean_wait_hours",
            "failures_per_run", "shares", "n_runs", "notes")  # fmt: skip
"""Keys of the JSON."""
GOT = "what runs got out of them"
LISTED = 20
"""Runs that a terminal shows, those with most GPU-time."""
_SPENT = {
    "queued": "waiting in the queue",
    "startup": "starting up",
    "checkpoint": "writing checkpoints",
    "lost": "work lost at interruptions",
}
LEAST_WIDTH = 0.0005
"""Of an interval that a sentence names."""


def measured(
    store: Store,
    selection: Selection,
    *,
    user: str | None = None,
    limit: int | None = None,
    conf_level: float = CONF_LEVEL,
) -> EttrReport:
    """ETTR of the runs of a selection, or of one user there; `by_run` lists the `limit` with most
    GPU-time.

    Raises
    ------
    LedgerMissingError
        Where the ledger, which joins attempts to runs, is not built.
    """
    notes = efficiency.ledger_notes(store)
    runs = efficiency.run_rows(store, selection, ("*",) if limit is None else COUNTED, user=user)
    of_several = {"several_nodes": notes["several_nodes"]}
    report = ettr_report(
        runs, notes=of_several, zones=zones(store), conf_level=conf_level, limit=limit
    )
    if not report.failures_per_run.n and sight.sight(store, selection).none:
        report = replace(report, failures_per_run=unknown(conf_level, 0))
    if limit is None:
        return report
    named = efficiency.runs_named(store, report.by_run)
    kept = ["cluster", "run_id", "ettr", "lower", "upper"]
    return replace(report, by_run=report.by_run[kept].merge(named, on=kept[:2], how="left"))


def habits(store: Store) -> Habits:
    """How jobs on several nodes start up and save, as the ledger takes it."""
    return recorded_habits(efficiency.ledger_notes(store)["several_nodes"])


def answer(ask: Ask, selection: Selection, *, conf_level: float = CONF_LEVEL) -> Answer:
    """ETTR of all runs and of the median one, by size and week, and of each."""
    report = ask(measured, selection, conf_level=conf_level)
    sized = _sized(ask, selection, report)
    expected = expected_by_size(sized, ask(habits))
    hours = ask(exposure.node_hours, selection)
    notes = _notes(ask, selection, report, hours)
    return Answer(
        _said(ask, selection, report, hours),
        headlines(report, selection) if report.n_runs else (),
        (
            by_size(sized, expected, selection),
            by_week(report, selection),
            listed(by_run(report).head(LISTED)),
        ),
        notes,
        record=record(report, sized, expected) | {"node_hours": hours, "notes": notes},
        sheet=by_run(report),
    )


def answer_beside_expected(ask: Ask, selection: Selection) -> Answer:
    """The same of the runs with most GPU-time, beside the ETTR to expect of them."""
    report = ask(measured, selection, limit=FEW)
    hours = ask(exposure.node_hours, selection)
    if not report.n_runs:
        said = _said(ask, selection, report, hours)
        return Answer(said, blocks=(_missing(),), notes=report.notes)
    everything = Part("Runs", runs, (selection,), total=report.n_runs)
    taken, failures = ask(habits), ask(mttf.measured, selection)
    curve = expected_curve_of_runs(report, taken, failures.gpus_per_node)
    sized = _sized(ask, selection, report)
    expected = expected_by_size(sized, taken)
    return Answer(
        sentence(report, selection.min_gpus, hours),
        headlines(report, selection),
        (
            chart(report, curve),
            size_chart(sized, expected, selection),
            by_size(sized, expected, selection),
            by_week(report, selection),
            listed(by_run(report), everything=everything),
        ),
        _notes(ask, selection, report, hours),
    )


def _notes(
    ask: Ask, selection: Selection, report: EttrReport, node_hours: Mapping[str, float]
) -> tuple[str, ...]:
    """What the ratio leaves out, takes for granted, and could not see."""
    return (
        *untold.node_hours(node_hours, GOT),
        *report.notes,
        *detection.notes(ask(mttf.measured, selection), selection),
    )


def _said(
    ask: Ask, selection: Selection, report: EttrReport, node_hours: Mapping[str, float]
) -> str:
    """The sentence; where no job of the time was recorded, that nobody knows what runs got."""
    seen = ask(sight.sight, selection)
    if not report.n_runs and not node_hours and seen.jobs_unknown:
        return sight.refused("What runs got", seen)
    return sentence(report, selection.min_gpus, node_hours)


def sentence(report: EttrReport, min_gpus: int, node_hours: Mapping[str, float]) -> str:
    """What did the runs get out of their time?"""
    of = f" of {min_gpus:,} GPUs and more" if min_gpus > 1 else ""
    if report.ettr.value is None and node_hours:
        return untold.node_hours_in_words(node_hours, GOT)
    if report.ettr.value is None:
        return f"No run{of} on several nodes is known in this selection."
    runs = f"{numbers.counted(report.n_runs, 'run')}{of}"
    whose = "its" if report.n_runs == 1 else "their"
    text = f"{runs} trained {in_words(report.ettr, whose)}"
    part, share = max(report.shares.items(), key=lambda each: each[1])
    return f"{text}; {_SPENT[part]} took {numbers.percent(share)}." if share > 0 else f"{text}."


def in_words(ettr: Estimate, whose: str) -> str:
    """A share of time, with its interval where that has a width that shows."""
    low, high = ettr.lower, ettr.upper
    wide = low is not None and high is not None and high - low >= LEAST_WIDTH
    assumed = ", assumed" if ettr.assumed else ""
    bounds = f" ({numbers.percent_interval(ettr)}{assumed})" if wide else ""
    return f"{numbers.percent(ettr.value)} of {whose} time{bounds}"


def headlines(report: EttrReport, selection: Selection) -> tuple[Number, ...]:
    """ETTR of all runs, of the median one, how many, how often ended, how long they waited."""
    opens, least = _runs(report, selection), selection.min_gpus
    return (
        estimated(
            terms.ettr_from(least) if least > 1 else terms.ETTR, "ettr", report.ettr, opens=opens
        ),
        estimated(terms.ETTR_MEDIAN, "ettr", report.median, opens=opens),
        Number(
            terms.RUNS,
            numbers.count(report.n_runs),
            f"{numbers.number(report.gpu_hours)} GPU-hours",
            exact=report.n_runs,
            unit="runs",
            opens=opens,
        ),
        sight.number(terms.FAILURES_PER_RUN)
        if report.failures_per_run.value is None
        else estimated(terms.FAILURES_PER_RUN, "rate", report.failures_per_run, opens=opens),
        estimated(terms.RUN_WAIT, "mttf", report.mean_wait_hours, opens=opens),
    )


def of_large_runs(selection: Selection) -> Selection:
    """Runs of 129 GPUs and more, or as many as were asked for."""
    return replace(selection, min_gpus=selection.by_size_min_gpus or MTTF_MIN_GPUS)


def large_runs(ask: Ask, selection: Selection) -> tuple[Number, ...]:
    """ETTR of runs of 129 GPUs and more, or as many as were asked for, where any ran.

    Empty where the ledger is not built: a page that only mentions it does not wait for it.
    """
    if not ask(efficiency.has_ledger):
        return ()
    large = of_large_runs(selection)
    report = ask(measured, large, limit=FEW)
    if not report.n_runs:
        return ()
    term, opens = terms.ettr_from(large.min_gpus), _runs(report, large)
    return (estimated(term, "ettr", report.ettr, opens=opens),)


def chart(report: EttrReport, curve: ExpectedCurve | None) -> Chart:
    """Runs by size with the expected ETTR over them; a point opens its run."""
    return Chart(
        "efficiency.runs_and_expected",
        "What did runs get out of their time?",
        expectation(curve),
        (report, curve),
        "ettr_runs",
        captioned=True,
        opens="run",
    )


def expected_by_size(report: EttrReport, taken: Habits) -> tuple[Estimate, ...]:
    """ETTR to expect of each class of GPUs, at the rate of its own interruptions."""
    return tuple(
        expected_at_own_rate(group.totals, taken.central, conf_level=report.conf_level)
        for group in report.by_size
    )


def _sized(ask: Ask, selection: Selection, report: EttrReport) -> EttrReport:
    """The report whose size classes are shown: as for MTTF, of all sizes where none was asked."""
    if selection.by_size == selection:
        return report
    return ask(measured, selection.by_size, limit=FEW, conf_level=report.conf_level)


SIZES_DRAWN = (
    field("gpus", of="group.group"),
    field("n_runs", of="group.totals.n_runs"),
    field("n_interruptions", of="group.totals.n_interruptions"),
    field("gpu_hours", of="group.gpu_hours"),
    field(
        "ettr", "", "ettr", "group.ettr",
        names={"chart": ("ettr", "ettr_lower", "ettr_upper", "conf_level")},
    ),
    field("expected_ettr", "", "ettr", "expected"),
)  # fmt: skip
"""A class of sizes beside what its own interruptions let expect."""


def size_chart(sized: EttrReport, expected: tuple[Estimate, ...], selection: Selection) -> Chart:
    """ETTR by class of sizes; a mark opens the runs of its class."""
    return Chart(
        "efficiency.ettr_by_size",
        "What do runs of each size get out of their time?",
        "ETTR of each class of sizes with its interval, weighted by GPU-time, beside what the "
        "rate of its own interruptions lets expect.",
        (sized.by_size, expected),
        "ettr_sizes",
        rows=Rows(
            SIZES_DRAWN,
            [{"group": g, "expected": e} for g, e in zip(sized.by_size, expected, strict=True)],
        ),
        opens=Part("Runs of this size", of_size, (selection,), ("mark",)),
    )


def by_size(sized: EttrReport, expected: tuple[Estimate, ...], selection: Selection) -> Table:
    """ETTR by class of sizes, beside what its own interruptions let expect."""
    beside = Column("expected", "Expected ETTR", "ettr", help=terms.EXPECTED_ETTR.definition)
    columns_of = (
        Column("gpus", "GPUs", shown=False),
        Column("job_size", "Job size"),
        *_GROUP[:3],
        beside,
        *_GROUP[3:],
    )
    rows = tuple(
        (group.group, numbers.job_size(group.group), *values[:3], value, *values[3:])
        for group, value in zip(sized.by_size, expected, strict=True)
        for values in (_values(group, sized),)
    )
    every = selection.min_gpus > 1 and not selection.by_size.min_gpus
    note = f"Runs of all sizes, those below {selection.min_gpus:,} GPUs too." if every else ""
    opens = Part("Runs of this size", of_size, (selection,), ("gpus",))
    return Table("ettr_by_gpus", "By size", columns_of, rows, "No run.", note, opens)


def by_week(report: EttrReport, selection: Selection) -> Table:
    """ETTR by ISO week of the first start."""
    columns_of = (
        Column("week", "Week", shown=False),
        Column("monday", "Week of", "day"),
        *_GROUP,
    )
    rows = tuple((g.group, _monday(g.group), *_values(g, report)) for g in report.by_week)
    opens = Part("Runs of this week", of_week, (selection,), ("week",))
    title = "By week of the first start"
    return Table("ettr_by_week", title, columns_of, rows, "No run.", opens=opens)


_GROUP = (
    Column("runs", "Runs", "count"),
    Column("ettr", "ETTR", "ettr", help=of_efficiency.GROUP_ETTR.definition),
    Column("of_these_runs", "Of these runs", "ettr", shown=False,
           help=of_efficiency.OF_THESE_RUNS.definition),
    Column("interruptions", "Interruptions", "count", none=sight.NOT_SEEN),
    Column("gpu_hours", "GPU-hours", "number"),
)  # fmt: skip
"""Columns of a class of sizes or a week."""


def _values(group: GroupEttr, report: EttrReport) -> tuple[Any, ...]:
    """A class of sizes or a week, in these columns."""
    return (
        group.totals.n_runs,
        group.ettr,
        group.of_these_runs,
        _interruptions(group, report),
        group.gpu_hours,
    )


def by_run(report: EttrReport) -> pd.DataFrame:
    """The runs; interruptions of which none is known are unknown where none could be seen."""
    runs, counts = report.by_run, ["n_interruptions", "n_failures"]
    if report.failures_per_run.value is not None or not report.n_runs:
        return runs
    return runs.assign(**{name: runs[name].astype(object).where(runs[name] > 0) for name in counts})


def _interruptions(group: GroupEttr, report: EttrReport) -> int | None:
    """Interruptions of a group; None where none is known because no failure could be seen."""
    n = group.totals.n_interruptions
    return None if not n and report.failures_per_run.value is None else n


def _monday(week: str) -> datetime:
    """The first day of an ISO week."""
    return datetime.strptime(f"{week}-1", "%G-W%V-%u")  # noqa: DTZ007 - a day has no zone


def of_size(ask: Ask, selection: Selection, size: str, *, limit: int = EVERYTHING) -> Table:
    """Runs of one class of sizes, those with most GPU-time first."""
    runs_of = runs_of_size(by_run(ask(measured, selection.by_size)), size)
    title = f"Runs of {numbers.job_size(size)}"
    return replace(listed(runs_of.head(limit)), key="runs_of_size", title=title)


def of_week(ask: Ask, selection: Selection, week: str, *, limit: int = EVERYTHING) -> Table:
    """Runs of one week, those with most GPU-time first."""
    runs_of = runs_of_week(by_run(ask(measured, selection)), week, ask(zones))
    return replace(listed(runs_of.head(limit)), key="runs_of_week")


def runs(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """Runs with their ETTR, those with most GPU-time first."""
    few = limit if limit <= FEW else None
    return listed(by_run(ask(measured, selection, limit=few)).head(limit))


def _behind(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The same behind a number of a page that lists them too."""
    return replace(runs(ask, selection, limit=limit), key="runs_behind")


def listed(by_run: pd.DataFrame, *, everything: Part | None = None) -> Table:
    """Runs, times in hours."""
    rows = in_hours(by_run, HOURS)[[column.key for column in RUNS]]
    return Table("runs", "Runs", RUNS, rows, "No run.", everything=everything)


def _runs(report: EttrReport, selection: Selection) -> Part:
    """The runs that an ETTR counts."""
    return Part("Runs behind the number", _behind, (selection,), total=report.n_runs)


def record(report: EttrReport, sized: EttrReport, expected: tuple[Estimate, ...]) -> dict[str, Any]:
    """The JSON of the command."""
    by_size = [
        _group(group, report) | {"expected": value}
        for group, value in zip(sized.by_size, expected, strict=True)
    ]
    return {name: getattr(report, name) for name in RECORDED} | {
        "definition": DEFINITION,
        "by_run": _per_run(by_run(report), report.conf_level),
        "by_size": by_size,
        "by_week": [_group(group, report) for group in report.by_week],
    }


def _group(group: GroupEttr, report: EttrReport) -> dict[str, Any]:
    """A class of sizes or a week."""
    return {
        "group": group.group,
        "n_runs": group.totals.n_runs,
        "n_interruptions": _interruptions(group, report),
        "gpu_hours": group.gpu_hours,
        "ettr": group.ettr,
        "of_these_runs": group.of_these_runs,
    }


def _per_run(runs: pd.DataFrame, conf_level: float) -> list[dict[str, Any]]:
    """Each run; its ETTR is an estimate."""
    held: dict[Any, list[Any]] = {name: values(runs[name]) for name in runs}
    assumed = (runs["lower_productive_s"] < runs["upper_productive_s"]).tolist()
    levels = [None if of_run else conf_level for of_run in assumed]
    bounds = [held.pop(name) for name in ("ettr", "lower", "upper")]
    ettr = [Estimate(*each) for each in zip(*bounds, levels, held["n_interruptions"], strict=True)]
    columns = {"run_id": held.pop("run_id"), "ettr": ettr} | held
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def expectation(curve: ExpectedCurve | None) -> str:
    """What the expected ETTR takes for granted."""
    if curve is None:
        return "No expected ETTR: no run of this selection got work done."
    rate, taken = curve.rate_per_1000_node_days, curve.settings
    how_often = (
        f"{numbers.number(rate.value)} per 1,000 node-days ({numbers.interval(rate)}, the band; "
        f"{numbers.counted(rate.n, 'interruption')})"
        if rate.n
        else f"none was seen: {numbers.interval(rate)} per 1,000 node-days, down to which the band "
        "reaches"
    )
    return (
        "Expected: exact form at the rate of these runs' own interruptions (failures of "
        f"infrastructure, preemptions, requeues), {how_often}; a start-up of "
        f"{numbers.number(taken.restart_min)} min, a checkpoint every "
        f"{numbers.number(taken.checkpoint_min)} min that takes {numbers.number(taken.write_min)} "
        f"min, and a wait of {numbers.duration(taken.queue_min / 60)} before each start (the mean "
        "of these runs). A long run pays its first wait and start-up once; those on the dotted "
        "line are as long as these runs in the mean."
    )


def _missing() -> Missing:
    """No run on several nodes in the selection."""
    return Missing(
        "ettr_runs",
        "No run on several nodes is known in this selection.",
        "Lower the smallest job, choose a longer period, or reset the filters. Runs come from the "
        "scheduler's records of jobs with their GPUs:",
        sight.JOBS,
    )
