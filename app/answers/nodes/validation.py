"""Which nodes are to be tested next, with what, and which results fall short of the fleet's?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.nodes.validation import SIMILARITY, regressions
from analytics.nodes.validation_plan import BENCHMARKS, NodeRecord, PastIncident, validation_plan
from analytics.reliability.failure_rate import poisson_rate
from app.answers.columns import columns
from app.answers.content import Answer, Missing, Number, Table, composed, estimated
from app.answers.described import JSON, Field, Rows, field
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.errors import DataError
from data.ingest.readers.training.superbench import read_results
from data.queries import validation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.estimate import Estimate
    from analytics.nodes.validation import Regressions
    from analytics.nodes.validation_plan import Benchmark, NodeTest, ValidationPlan
    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

HORIZON_DAYS = 28.0
MOST_NAMED = 3
MOST_ROWS = 50
"""Nodes of the plan that are shown; all are in JSON and CSV."""
FOUND = (
    *columns("node"),
    Column("metric", "Metric"),
    field(
        "ratio",
        "Over the fleet's",
        "ettr",
        names={"csv": ("ratio",)},
        help=of_nodes.OVER_CENTRE.definition,
    ),
    Column("similarity", "Similarity", "decimal"),
    Column("threshold", "Regressed below", "decimal"),
    Column("n_nodes", "Nodes compared", "count"),
)
NO_RESULTS = Missing(
    "results",
    "No results of benchmarks are given.",
    "SuperBench writes `results-summary.jsonl`, one node a line:",
    (
        "sb run -f local.ini -c config.yaml",
        "faultline validate-plan outputs/*/results-summary.jsonl",
    ),
)
RATE, LOSS, STAKE = "rate_per_1000_node_days", "loss_gpu_hours", "at_stake_gpu_hours"
WORTH = "Which nodes are worth the time of a test"
NO_INCIDENT = "no incident of the selection names a node"
NO_TIME = "no job of the selection names its nodes"


@dataclass(frozen=True)
class Fleet:
    """What a plan rests on."""

    records: tuple[NodeRecord, ...]
    n_incidents: int
    """That name a node."""
    gpu_hours_per_incident: float | None
    """Their mean; None where there is none."""
    sight: Sight
    """On which days failures could be seen."""

    @property
    def unseen(self) -> bool:
        """Whether no incident is known because none could be seen."""
        return self.sight.none and not self.n_incidents

    @property
    def lacks(self) -> str:
        """Why no rate is known; empty where one is."""
        if not self.n_incidents:
            return sight.BASIS if self.unseen else NO_INCIDENT
        return "" if any(each.exposure_node_days for each in self.records) else NO_TIME


def fleet(store: Store, selection: Selection) -> Fleet:
    """Incidents and time in jobs of each node; what an incident lost is the mean where nobody knows
    it.

    Raises
    ------
    LedgerMissingError
        Where the ledger, which says what incidents lost, is not built.
    """
    rows = validation.incidents(store, selection)
    rows["gpu_hours"] = rows["gpu_hours"].fillna(rows["gpu_hours"].mean()).fillna(0.0)
    known: dict[tuple[str, str], list[PastIncident]] = {}
    for cluster, node, day, gpu_hours, cause in rows[
        ["cluster", "node", "day", "gpu_hours", "cause"]
    ].itertuples(index=False):
        known.setdefault((cluster, node), []).append(PastIncident(day, gpu_hours, cause))
    records = tuple(
        NodeRecord(
            str(row["cluster"]),
            str(row["node"]),
            float(row["exposure_node_days"]),
            float(row["window_days"]),
            tuple(known.get((row["cluster"], row["node"]), ())),
            float(row["n_gpus"]),
        )
        for row in validation.nodes(store, selection).to_dict("records")
    )
    seen, n = sight.sight(store, selection), validation.n_incidents(store, selection)
    mean = float(rows["gpu_hours"].sum()) / n if n and not seen.jobs_unknown else None
    return Fleet(records, n, mean, seen)


def planned(
    store: Store,
    selection: Selection,
    regressed: frozenset[str],
    *,
    horizon_days: float,
    benchmarks: tuple[Benchmark, ...],
    conf_level: float,
) -> ValidationPlan:
    """The plan of a fleet, some of whose nodes results show regressed."""
    records = [
        replace(each, regressed=each.node in regressed) for each in fleet(store, selection).records
    ]
    return validation_plan(
        records, horizon_days=horizon_days, benchmarks=benchmarks, conf_level=conf_level
    )


@dataclass(frozen=True)
class Judged:
    """Results of benchmarks and what they say."""

    found: Regressions
    n_rejected: int
    """Lines that were left out."""
    rejected_at: str | None
    """File and line of the first of them."""


def judged(names: Sequence[str], *, least_similarity: float = SIMILARITY) -> Judged:
    """What files of results say of their nodes."""
    results = read_results(names)
    found = regressions(results.by_node, least_similarity=least_similarity)
    return Judged(found, results.n_rejected, results.rejected_at)


def answer(
    ask: Ask,
    selection: Selection,
    results: Judged | None = None,
    *,
    horizon_days: float = HORIZON_DAYS,
    minutes: Mapping[str, float] | None = None,
    conf_level: float = CONF_LEVEL,
) -> Answer:
    """Which nodes to test next, with what; results of benchmarks come first."""
    known = ask(fleet, selection)
    regressed = frozenset(results.found.regressed) if results else frozenset[str]()
    plan = ask(
        planned,
        selection,
        regressed,
        horizon_days=horizon_days,
        benchmarks=timed(minutes or {}),
        conf_level=conf_level,
    )
    rows = Rows(PLAN, plan.tests)
    lacks = "" if regressed else known.lacks
    blocks = [
        _missing(lacks, known)
        if lacks
        else rows.table("plan", "What to test next").first(MOST_ROWS)
    ]
    of_results = _result_blocks(results)
    told = Rows(PLAN, ()) if known.unseen and not regressed else rows
    return Answer(
        _sentence(plan, results, known if lacks else None),
        (
            *(_unknown(lacks) if lacks else _headlines(plan, conf_level)),
            *_result_numbers(results),
        ),
        (*of_results, *blocks) if regressed else (*blocks, *of_results),
        notes=(*_notes(known), *sight.notes(known.sight, "nodes"), *_result_notes(results)),
        record={
            "plan": told.records(),
            **_fleet_record(plan, known),
            **_result_record(results),
        },
        sheet=told.sheet(),
    )


def of_results(results: Judged) -> Answer:
    """What results say, where there is no store."""
    return Answer(
        _results_sentence(results.found),
        _result_numbers(results),
        tuple(_result_blocks(results)),
        notes=tuple(_result_notes(results)),
        record=_result_record(results),
        sheet=Rows(FOUND, results.found.found).sheet(),
    )


def timed(minutes: Mapping[str, float]) -> tuple[Benchmark, ...]:
    """The benchmarks with a site's own running times.

    Raises
    ------
    DataError
        For the name of no benchmark.
    """
    names = [each.name for each in BENCHMARKS]
    for name in minutes:
        if name not in names:
            raise DataError(f"--minutes names no benchmark {name!r}: there are {', '.join(names)}")
    return tuple(replace(each, minutes=minutes.get(each.name, each.minutes)) for each in BENCHMARKS)


def _sentence(plan: ValidationPlan, results: Judged | None, unknown: Fleet | None) -> str:
    worth = plan.worthwhile
    first = ", ".join(each.record.node for each in worth[:MOST_NAMED])
    said = f"{_results_sentence(results.found)} " if results else ""
    if unknown is not None and unknown.unseen:
        return said + sight.refused(WORTH, unknown.sight)
    if unknown is not None:
        return f"{said}{WORTH} is not known: {unknown.lacks}."
    if not worth:
        return f"{said}No node is worth the time of a test."
    if len(worth) <= MOST_NAMED:
        return f"{said}Test {first} next."
    return f"{said}Test {first} first; {len(worth):,} nodes are worth the time of a test."


def _results_sentence(found: Regressions) -> str:
    regressed, n = found.regressed, len(found.nodes)
    if not regressed:
        return f"None of {numbers.counted(n, 'node')} with results is regressed."
    named = ", ".join(regressed[:MOST_NAMED])
    verb = "is" if len(regressed) == 1 else "are"
    more = f" and {len(regressed) - MOST_NAMED:,} more" if len(regressed) > MOST_NAMED else ""
    return f"Of {numbers.counted(n, 'node')} with results {named}{more} {verb} regressed."


def _missing(lacks: str, known: Fleet) -> Missing:
    """What stands in place of a plan where no rate is known."""
    if known.unseen:
        return sight.missing("plan", WORTH, known.sight)
    return Missing(
        "plan",
        f"{lacks.capitalize()}, so no rate is known.",
        "Ingest jobs and kernel or health events, or take a longer period:",
        ("faultline ingest sacct sacct.txt", "faultline ingest kernel-log dmesg.txt"),
    )


def _unknown(lacks: str) -> tuple[Number, ...]:
    """The same numbers where there is nothing to rest them on."""
    shown = (
        of_nodes.WORTH_TESTING,
        of_nodes.LOSS_AHEAD,
        of_nodes.AT_STAKE,
        of_nodes.COST_OF_TESTS,
        of_nodes.HARDWARE_INCIDENTS,
    )
    return tuple(Number(term, numbers.UNKNOWN, lacks) for term in shown)


def _headlines(plan: ValidationPlan, conf_level: float) -> tuple[Number, ...]:
    worth = plan.worthwhile
    cost = sum(each.cost_gpu_hours for each in worth)
    horizon = f"in {plan.horizon_days:g} days"
    n = sum(each.record.n_incidents for each in plan.tests)
    exposure = sum(each.record.exposure_node_days for each in plan.tests) / 1_000.0
    return (
        composed(of_nodes.WORTH_TESTING, f"{len(worth):,} of {len(plan.tests):,}", horizon,
                 exact=len(worth)),
        _hours(of_nodes.LOSS_AHEAD, plan.loss_gpu_hours, horizon),
        _hours(of_nodes.AT_STAKE, plan.at_stake_gpu_hours, horizon),
        composed(of_nodes.COST_OF_TESTS, numbers.number(cost), "by running times assumed",
                 exact=cost, unit="GPU-hours"),
        estimated(of_nodes.HARDWARE_INCIDENTS, "rate", poisson_rate(n, exposure, conf_level)),
    )  # fmt: skip


def _hours(term: Term, hours: Estimate, horizon: str) -> Number:
    """GPU-hours that are to come."""
    spread = numbers.interval(hours)
    basis = f"{spread} ({numbers.level(hours)}), n = {hours.n:,}, {horizon}"
    return Number(
        term, numbers.number(hours.value), basis, spread, numbers.count(hours.n), hours, "GPU-hours"
    )


def _why(test: NodeTest) -> str:
    """What speaks for testing a node."""
    ranked = sorted(test.record.causes.items(), key=lambda item: -item[1])
    said = [f"{cause} {n:,}" for cause, n in ranked[:MOST_NAMED]]
    if test.record.regressed:
        said.insert(0, "regressed")
    return ", ".join(said) or "the fleet's rate"


_NODE, _CLUSTER = columns("node", hidden=("cluster",))
PLAN = (
    Field(_NODE, "record.node"),
    field("n_incidents", "Incidents", "count", "record.n_incidents"),
    field(
        RATE,
        "Per 1,000 node-days",
        "rate",
        "rate",
        names={"csv": (RATE,)},
        term=of_nodes.OWN_INCIDENT_RATE,
    ),
    Column("p_incident", "Chance of an incident", "ratio"),
    field(
        "tests",
        "Test with",
        of=lambda test: ", ".join(test.tests) or None,
        on=("table", "csv"),
        none="no test is worth its time",
    ),
    field("tests", of=lambda test: list(test.tests), on=JSON),
    Column("minutes", "Minutes", "number"),
    Column("cost_gpu_hours", "Costs (GPU-h)", "number"),
    field(
        LOSS,
        "Will cost (GPU-h)",
        "rate",
        names={"csv": (LOSS,)},
        help=of_nodes.LOSS_AHEAD.definition,
    ),
    field(STAKE, "At stake (GPU-h)", "rate", names={"csv": (STAKE,)}),
    field("why", "Why", of=_why),
    Field(_CLUSTER, "record.cluster"),
    field("net_gpu_hours", on=JSON),
    field("regressed", of="record.regressed", on=JSON),
)


def _result_numbers(results: Judged | None) -> tuple[Number, ...]:
    if results is None:
        return ()
    n, regressed = len(results.found.nodes), len(results.found.regressed)
    judged_of = f"{len(results.found.criteria):,} metrics judged"
    return (composed(of_nodes.REGRESSED, f"{regressed:,} of {n:,}", judged_of, exact=regressed),)


def _result_blocks(results: Judged | None) -> list[Table | Missing]:
    if results is None:
        return [NO_RESULTS]
    table = Rows(FOUND, results.found.found).table(
        "regressions", "Results that fall short", empty="No metric falls short of the fleet's."
    )
    return [table.first(MOST_ROWS)]


def _notes(known: Fleet) -> Iterator[str]:
    """What the plan rests on."""
    if known.gpu_hours_per_incident is not None:
        yield (
            f"An incident costs {numbers.number(known.gpu_hours_per_incident)} GPU-hours, the mean "
            f"of {known.n_incidents:,}. What tests find of kinds that are rare here is taken from "
            "SuperBench's fleet (arXiv 2402.06194); running times are assumed: give your own with "
            "`--minutes`."
        )
    silent = sum(not each.exposure_node_days for each in known.records)
    if silent:
        yield (
            f"{numbers.counted(silent, 'node')} ran no job in the period: nothing but the fleet's "
            "rate is known of them."
        )


def _result_notes(results: Judged | None) -> Iterator[str]:
    """What the verdict on results rests on."""
    if results is None:
        return
    if results.n_rejected:
        yield (
            f"{numbers.counted(results.n_rejected, 'line')} left out, the first at "
            f"{results.rejected_at}: no JSON object with a node."
        )
    found = results.found
    if found.too_few:
        n = numbers.counted(len(found.too_few), "metric")
        yield f"{n} of fewer than five nodes not judged, e.g. {found.too_few[0]}."
    for node, failed in list(found.failed.items())[:MOST_NAMED]:
        yield f"{node}: {', '.join(failed)} ended with an error."


def _fleet_record(plan: ValidationPlan, known: Fleet) -> dict[str, Any]:
    return {
        "horizon_days": plan.horizon_days,
        "rate_per_1000_node_days": (
            None if known.lacks == NO_TIME or known.unseen else plan.rate_per_1000_node_days
        ),
        LOSS: None if known.lacks else plan.loss_gpu_hours,
        STAKE: None if known.lacks else plan.at_stake_gpu_hours,
        "gpu_hours_per_incident": known.gpu_hours_per_incident,
        "n_incidents": None if known.unseen else known.n_incidents,
        **sight.record(known.sight),
    }


def _result_record(results: Judged | None) -> dict[str, Any]:
    if results is None:
        return {"regressed": None, "regressions": None}
    found = results.found
    return {
        "regressed": list(found.regressed),
        "regressions": list(found.found),
        "criteria": list(found.criteria),
        "failed": {node: list(each) for node, each in found.failed.items()},
        "n_nodes_with_results": len(found.nodes),
        "n_rejected": results.n_rejected,
    }
