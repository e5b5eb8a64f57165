"""How many failures are to come, and what are the odds of a job?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import DEFINITION
from analytics.reliability.fleet_forecast import FleetForecast, fleet_forecast, job_forecast
from analytics.reliability.forecast import FEWEST_WEEKS, Forecast, JobOdds, job_odds
from analytics.reliability.shelf import ENOUGH
from analytics.reliability.shelf import shelf as parts_to_keep
from app.answers.content import Answer, Missing, Number, estimated
from app.answers.described import Rows, field, quantities
from app.answers.efficiency import best_interval
from app.answers.failures import verdicts
from app.answers.reliability import sight
from app.answers.reliability.mttf import EARLIEST
from app.words import numbers
from app.words.glossary import of_reliability
from data.errors import DataError
from data.queries import exposure, reliability
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.efficiency.best_interval import BestInterval
    from analytics.reliability.shelf import Part
    from analytics.reliability.sight import Sight
    from app.answers.content import Block
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

WHAT = "How many failures are to come"
COUNTED = ("hardware", "system_software")
HALF_A_YEAR = timedelta(days=182)
"""What is looked back on at least: of 28 days alone little can be foretold."""
MOST_CAUSES = 8
NO_PART = ("facility", "network", "node")
"""Components that nobody keeps on a shelf."""
LEAD_DAYS = 28.0
LEAST_CHANCE = 1e-4
"""Chance below which its size tells nothing more."""


@dataclass(frozen=True)
class Measured:
    """What a selection foretells."""

    fleet: FleetForecast
    causes: dict[str, int]
    """Failures that count, by cause."""
    titles: dict[str, str]
    """Cause -> its title."""
    components: dict[str, str]
    """Cause of hardware -> the part that it is of."""
    sight: Sight
    gpus_per_node: float | None
    largest_gpus: int | None
    """Of the largest job that ran."""


def measured(
    store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL, seed: int = 0
) -> Measured:
    """Failures that are to come, by those that count in the selection and what came before it, so
    that half a year is known."""
    known = _from_half_a_year(selection)
    counts = reliability.failure_counts(store, known)
    found = verdicts.summarised(store, known)
    causes = {
        each.cause: each.rate_per_1000_node_days.n
        for each in found.causes_of(COUNTED)
        if each.rate_per_1000_node_days.n and selection.definition == DEFINITION
    }
    ran = exposure.runs(store, known)
    sizes = ran["n_gpus"][~ran["node_time"].astype(bool) & (ran["running_days"] > 0)]
    return Measured(
        fleet_forecast(counts, causes, conf_level=conf_level, seed=seed),
        causes,
        dict(found.titles),
        {
            name: cause.component
            for name, cause in load_site(store.root).causes.causes.items()
            if cause.domain == "hardware" and cause.component not in NO_PART
        },
        sight.sight(store, selection),
        counts.gpus_per_node,
        int(np.max(sizes)) if len(sizes) else None,
    )


def _from_half_a_year(selection: Selection) -> Selection:
    """The same to its end, from half a year before it on where it begins later."""
    begin, end = selection.from_at, selection.to_at
    if begin is None or end is None or end - EARLIEST < HALF_A_YEAR:
        return selection
    return replace(selection, from_at=min(begin, end - HALF_A_YEAR))


def answer(ask: Ask, /, selection: Selection, **chance: Any) -> Answer:
    """How many failures the next 28 days bring; `chance` holds conf_level and seed."""
    found = ask(measured, selection, **chance)
    return Answer(
        _sentence(found),
        tuple(_headlines(found)),
        tuple(_blocks(found)),
        notes=tuple(_notes(found)),
        record=_record(found),
        sheet=quantities(
            [
                ("failures_28_days", found.fleet.month.failures),
                ("failures_91_days", found.fleet.quarter.failures),
                ("rate", found.fleet.month.rate),
            ]
        ),
    )


def shelf(ask: Ask, selection: Selection, lead_days: float = LEAD_DAYS, *, seed: int = 0) -> Answer:
    """How many parts of each kind to keep for a lead time."""
    found = ask(measured, selection, seed=seed)
    parts: tuple[Part, ...] = ()
    if _known(found):
        parts = parts_to_keep(
            found.fleet, found.causes, found.components, lead_days=lead_days, seed=seed
        )
    rows = Rows(PARTS, parts)
    lead = _days(lead_days)
    if not _known(found):
        said = _sentence(found)
    elif selection.definition != DEFINITION:
        said = f"What to keep is told of failures by the definition {DEFINITION} alone."
    elif not parts:
        said = "No failure had a cause that a part mends: what to keep cannot be told."
    else:
        named = ", ".join(f"{part.keep:,} for {part.component}" for part in parts[:MOST_NAMED])
        more = len(parts) - MOST_NAMED
        others = f", and {numbers.counted(more, 'other part')}" if more > 0 else ""
        said = f"Spare parts that last a lead time of {lead}, in 19 of 20: {named}{others}."
    return Answer(
        said,
        blocks=(rows.table("shelf", "Parts to keep"),) if parts else (),
        notes=(A_PART_EACH,) if parts else (),
        record={
            "lead_days": lead_days,
            "lasts_ratio": ENOUGH,
            "parts": rows.records(),
            **sight.record(found.sight),
        },
        sheet=rows.sheet(),
    )


PARTS = (
    field("component", "Part"),
    field("keep", "Keep", "count"),
    field("foretold", "Foretold", "number", "expected", unit="failures"),
    field("seen", "Seen before", "count"),
)
MOST_NAMED = 3
A_PART_EACH = (
    "If each failure takes a part: an upper bound where a reset or a cable helps. Parts that come "
    "back mended count as kept. Failures without a cause are of no part: keep more where many have "
    "none."
)


def of_job(ask: Ask, selection: Selection, gpus: int, days: float, **chance: Any) -> Answer:
    """What a job of so many GPUs that computes for so many days meets.

    Raises
    ------
    DataError
        Where the GPUs of a node are not known.
    """
    found = ask(measured, selection, **chance)
    per_node = found.gpus_per_node
    if per_node is None:
        raise DataError(
            "the GPUs of a node are not known, or differ between clusters: name a --cluster, or "
            "state gpus_per_node in site.toml"
        )
    if len(found.fleet.weeks) > 1:
        names = ", ".join(found.fleet.weeks)
        raise DataError(f"a job runs on one cluster, of {names}: name it by --cluster")
    nodes = gpus / per_node
    known = _known(found) and found.fleet.unit == "node-day"
    own = job_forecast(found.fleet, nodes, days, **_level(chance)) if known else None
    odds = job_odds(
        np.zeros(0) if own is None else own.rates,
        nodes,
        days,
        largest_nodes=None if found.largest_gpus is None else found.largest_gpus / per_node,
        n=found.fleet.month.failures.n,
        **chance,
    )
    sentence, save = _job_sentence(found, odds, gpus), None
    if odds.failures.value is not None:
        save = best_interval.if_built(ask, selection, gpus, conf_level=_level(chance)["conf_level"])
    return Answer(
        sentence,
        (*_job_numbers(odds), best_interval.number(save)) if save else tuple(_job_numbers(odds)),
        notes=tuple(_job_notes(found, odds, save)),
        record={
            "gpus": gpus,
            "save_every_min": None if save is None else save.exact_min,
            "batch_script": _lines(sentence, odds, save),
            "job_days": days,
            "failures": _prediction(odds.failures),
            "p_uninterrupted": odds.p_uninterrupted,
            "mttf_hours": odds.mttf_hours,
            "largest_gpus": found.largest_gpus,
            "widened": odds.widened,
            **sight.record(found.sight),
        },
        sheet=quantities(
            [
                ("failures", odds.failures),
                ("p_uninterrupted", odds.p_uninterrupted),
                ("mttf_hours", odds.mttf_hours),
            ]
        ),
    )


def _lines(sentence: str, odds: JobOdds, save: BestInterval | None) -> list[str]:
    """Lines for a batch script; nothing where nothing is known of the job.

    Slurm reads no directive after the first command: the export stands apart.
    """
    if odds.failures.value is None:
        return []
    lines = [f"# {sentence}", "#SBATCH --requeue", "#SBATCH --open-mode=append"]
    minutes = None if save is None else save.exact_min.value
    if save is not None and minutes and minutes < odds.days * 24 * 60:
        lines.append(f"# {best_interval.sentence(save)}")
        lines.append("# Below the last #SBATCH line, as Slurm reads none after a command:")
        lines.append(f"export CHECKPOINT_INTERVAL_MIN={max(1, round(minutes))}")
    return lines


def _days(days: float) -> str:
    """Days as they were asked for.

    >>> _days(14.0), _days(1.0), _days(0.5)
    ('14 days', '1 day', '0.5 days')
    """
    return f"{days:g} day" + ("" if days == 1 else "s")


def _level(chance: dict[str, Any]) -> dict[str, Any]:
    """conf_level and seed, also where they were not given."""
    return {"conf_level": CONF_LEVEL, "seed": 0} | chance


def _known(found: Measured) -> bool:
    return not found.sight.none and found.fleet.month.failures.value is not None


def _sentence(found: Measured) -> str:
    if found.sight.none:
        return sight.refused(WHAT, found.sight)
    if found.fleet.scope == "range":
        return f"{WHAT} {sight.CANNOT}: too little of the time could be seen."
    month = found.fleet.month.failures
    if month.value is None:
        weeks = f"{FEWEST_WEEKS} weeks that were seen, and some of the last 28 days"
        return f"{WHAT} {sight.CANNOT}: it takes {weeks}."
    without = ", ".join(found.fleet.not_foretold)
    but = f", without those of {without}" if without else ""
    return f"{_count(month.value)} failures in the next 28 days ({_interval(month)}){but}."


def _count(value: float | None) -> str:
    return numbers.number(value) if value is None or value < 10 else numbers.count(round(value))


def _interval(estimate: Estimate) -> str:
    return f"{numbers.count(estimate.lower)} to {numbers.count(estimate.upper)}"


def _headlines(found: Measured) -> Iterator[Number]:
    fleet = found.fleet
    yield _foretold(found, of_reliability.NEXT_MONTH, fleet.month)
    yield _foretold(found, of_reliability.NEXT_QUARTER, fleet.quarter)
    earlier = fleet.earlier
    if earlier is None:
        yield Number(of_reliability.FORETOLD, numbers.UNKNOWN, "too few weeks before")
        return
    shown = _foretold(found, of_reliability.FORETOLD, earlier.forecast)
    came = numbers.counted(earlier.came, "failure")
    verb = "came" if earlier.held else "came, outside of it"
    if _known(found):
        said = f"{shown.interval}; {came} {verb}"
        shown = replace(shown, says=said, basis=f"{shown.basis}; {came} {verb}")
    yield shown


def _foretold(found: Measured, term: Term, forecast: Forecast) -> Number:
    if found.sight.none:
        return sight.number(term)
    value = forecast.failures
    if value.value is None:
        return Number(term, numbers.UNKNOWN, "too few weeks")
    interval = _interval(value)
    basis = f"{numbers.level(value)} of such times: {interval}; from {value.n:,} failures"
    return Number(
        term, _count(value.value), basis, interval, numbers.count(value.n), value, "failures"
    )


CAUSES = (
    field("cause", "Cause", of="title"),
    field("failures", "Failures, next 28 days", of="printed"),
    field("interval", "Interval"),
    field("seen", "Seen before", "count"),
)


@dataclass(frozen=True)
class _OfCause:
    """One row of the table of causes."""

    title: str
    estimate: Estimate

    @property
    def printed(self) -> str:
        return _count(self.estimate.value)

    @property
    def interval(self) -> str:
        return _interval(self.estimate)

    @property
    def seen(self) -> int:
        return self.estimate.n


def _blocks(found: Measured) -> Iterator[Block]:
    if found.sight.none:
        yield sight.missing("forecast", WHAT, found.sight)
        return
    if not _known(found):
        yield Missing("forecast", _sentence(found), "Choose a period that ends with the records.")
        return
    rows = [
        _OfCause(found.titles.get(cause, cause) or "No cause known", estimate)
        for place, (cause, estimate) in enumerate(found.fleet.by_cause)
        if place < MOST_CAUSES or not cause
    ]
    if rows:
        yield Rows(CAUSES, rows).table("forecast_by_cause", "What is to come, by cause")


def _notes(found: Measured) -> Iterator[str]:
    if not _known(found):
        return
    fleet = found.fleet
    if fleet.unit == "node-day":
        yield (
            f"Foretold for {numbers.number(fleet.exposure_ahead)} node-days a day, as in the last "
            "28 days: twice as many bring twice as many failures."
        )
    else:
        yield "It is not known which nodes could fail: foretold for a fleet that stays as it is."
    if fleet.last is not None:
        yield (
            f"What is to come begins after {numbers.day(fleet.last)}, the last day that ran; it "
            "rests on half a year before the end of the period, or all of a longer one."
        )
    if fleet.not_foretold:
        yield (
            f"{', '.join(fleet.not_foretold)} ran, but fewer than {FEWEST_WEEKS} weeks of it were "
            "seen, or none of the last 28 days: its failures come on top."
        )
    if fleet.month.moves > 0.05:
        lost = numbers.percent(fleet.month.moves)
        yield (
            f"The rate moves: of what is known of it {lost} is lost from week to week, so that the "
            "interval widens with time."
        )
    if fleet.earlier is not None and not fleet.earlier.held:
        yield (
            "What came in the last 28 days lay outside what was foretold: the rate changed, and a "
            "change is foretold by nothing. See Trend."
        )
    yield from sight.notes(found.sight, "the failures")


def _job_sentence(found: Measured, odds: JobOdds, gpus: int) -> str:
    job = f"A job of {numbers.counted(gpus, 'GPU')} that computes {_days(odds.days)}"
    if found.sight.none:
        return sight.refused("What a job meets", found.sight)
    if odds.failures.value is None:
        return (
            f"What a job meets {sight.CANNOT}: it takes {FEWEST_WEEKS} weeks in which jobs ran on "
            "known nodes."
        )
    none = _chance(odds.p_uninterrupted.value)
    return (
        f"{job} meets {_count(odds.failures.value)} failures ({_interval(odds.failures)}); none "
        f"with a chance of {none}."
    )


def _chance(share: float | None) -> str:
    """A chance; of one that is next to none that alone."""
    least = f"less than {numbers.percent(LEAST_CHANCE)}"
    return least if share is not None and share < LEAST_CHANCE else numbers.percent(share)


def _job_numbers(odds: JobOdds) -> Iterator[Number]:
    value = odds.failures
    known = value.value is not None
    interval = _interval(value) if known else ""
    yield Number(
        of_reliability.JOB_FAILURES,
        _count(value.value) if known else numbers.UNKNOWN,
        f"{numbers.level(value)} of such jobs: {interval}" if known else "too little to tell",
        interval,
        numbers.count(value.n),
        value,
        "failures",
    )
    shown = estimated(of_reliability.NO_FAILURE, "share", odds.p_uninterrupted)
    if (odds.p_uninterrupted.value or 1.0) < LEAST_CHANCE:
        shown = replace(shown, value=_chance(odds.p_uninterrupted.value), basis="", interval="")
    yield shown
    yield estimated(of_reliability.BETWEEN_OF_JOB, "mttf", odds.mttf_hours)


def _job_notes(found: Measured, odds: JobOdds, save: BestInterval | None) -> Iterator[str]:
    if save is None and odds.failures.value is not None:
        yield "How often to save is known once `faultline ledger` has shown how runs save."
    if odds.widened > 1 and found.largest_gpus is not None:
        yield (
            f"The largest job that ran had {numbers.counted(found.largest_gpus, 'GPU')}: the rate "
            f"of a larger one may differ by a factor of {numbers.number(odds.widened)}."
        )


def _prediction(estimate: Estimate) -> dict[str, Any]:
    return asdict(estimate) | {"kind": "prediction"}


def _record(found: Measured) -> dict[str, Any]:
    fleet, earlier = found.fleet, found.fleet.earlier
    blind = found.sight.none
    return {
        "failures": _prediction(fleet.month.failures),
        "failures_91_days": _prediction(fleet.quarter.failures),
        "rate_ahead_per_1000_node_days": fleet.month.rate.scaled(1000.0)
        if fleet.unit == "node-day"
        else unknown(fleet.month.rate.conf_level or CONF_LEVEL, fleet.month.rate.n),
        "by_cause": [
            {"cause": cause or None, "failures": _prediction(estimate)}
            for cause, estimate in fleet.by_cause
        ],
        "earlier": None
        if earlier is None or blind
        else {
            "failures": _prediction(earlier.forecast.failures),
            "came": earlier.came,
            "held": earlier.held,
        },
        "from": fleet.last,
        "node_days_a_day": fleet.exposure_ahead if fleet.unit == "node-day" else None,
        "clusters_not_foretold": list(fleet.not_foretold),
        "moves_weekly_ratio": fleet.month.moves,
        "scatter": fleet.month.scatter,
        "scope": fleet.scope,
        **sight.record(found.sight),
    }
