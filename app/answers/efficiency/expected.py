"""What share of its time is a job expected to train, and what would change that? Needs no store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.efficiency.expected_ettr import ExpectedEttr, expected_ettr
from analytics.efficiency.published_ettr import (
    PUBLISHED_INCONSISTENCIES,
    PUBLISHED_WHAT_IFS,
    ettr_range,
)
from analytics.estimate import CONF_LEVEL
from app.answers.content import Answer, Chart, Missing, Number, Sheet, Table, estimated
from app.answers.described import Rows, field, quantities
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_efficiency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.efficiency.expected_ettr import EttrSettings
    from analytics.estimate import Estimate

PLAIN = ("v1", "v2", "full", "exact", "exact_of_run", "interval_min", "daly_young_interval_min",
         "optimal_interval_min", "optimal_interval_first_order_min", "exact_at_optimum",
         "mttf_hours")  # fmt: skip
"""Plain numbers among the keys of the JSON."""
LEFT_OUT = {
    "exact": "nothing of these; a long run",
    "full": "second and further failures within one interval",
    "v2": "as full, and queue and length of the run",
    "v1": "as full, and what writing a checkpoint takes",
}
"""What each form leaves out."""
NOTHING_FAILS = "At a rate of 0 no input changes the expected ETTR."
SENSITIVITIES = (
    Column("parameter", "1 % more of"),
    Column("value", "At", "number"),
    Column("elasticity", "Changes the ETTR by (%)", "number"),
)
PUBLISHED = (
    Column("form", "Form"),
    field("gpus", "GPUs", "count", "settings.gpus"),
    field(
        "rate_per_1000_node_days",
        "Failures per 1,000 node-days",
        "number",
        "settings.rate_per_1000_node_days",
    ),
    field("restart_min", "Restart (min)", "number", "settings.restart_min"),
    field("write_min", "Write (min)", "number", "settings.write_min"),
    field("interval_min", "Interval (min)", "number", "settings.checkpoint_min"),
    field("queue_min", "Queue (min)", "number", "settings.queue_min"),
    Column("paper", "Paper"),
    Column("ours", "Ours", "decimal"),
    field("follows", "Follows", of=lambda each: "yes" if each.follows else "does not follow"),
    Column("source", "Source"),
)


def answer(
    settings: EttrSettings,
    *,
    rate_per_1000_node_days: Estimate | None = None,
    simulations: int = 0,
    seed: int = 0,
    conf_level: float = CONF_LEVEL,
) -> Answer:
    """Expected ETTR by every form, the best intervals, and what 1 % more of each input changes.

    Where the failure rate was measured, `rate_per_1000_node_days` is that: a note says what its
    interval leaves open.
    """
    expected = expected_ettr(settings, simulations=simulations, seed=seed, conf_level=conf_level)
    return Answer(
        sentence(expected),
        tuple(_numbers(expected)),
        (
            forms(expected),
            chart(expected),
            Rows(SENSITIVITIES, expected.sensitivities).table(
                "elasticities", "What 1 % more of each input changes", empty=NOTHING_FAILS
            ),
        ),
        (*_open(settings, rate_per_1000_node_days), *expected.notes),
        record=record(expected),
        sheet=_sheet(expected),
    )


def sentence(expected: ExpectedEttr) -> str:
    """The best interval and what it gives; empty where no interval is best."""
    best, daly_young = expected.optimal_interval_min, expected.daly_young_interval_min
    if best is None or expected.exact_at_optimum is None:
        return ""
    return (
        f"Checkpoint every {numbers.number(best)} min for an ETTR of "
        f"{numbers.decimals(expected.exact_at_optimum)} (exact form); Daly-Young's rule says "
        f"{numbers.number(daly_young)} min. Mean time to failure of the job: "
        f"{numbers.duration(expected.mttf_hours)}."
    )


def _open(settings: EttrSettings, rate: Estimate | None) -> Iterator[str]:
    """What the interval of a measured rate leaves open, or that there is none."""
    if rate is None:
        return
    found = ettr_range(settings, rate)
    of_rate, ettr = found.rate_per_1000_node_days, found.ettr
    between = f"{numbers.interval(of_rate)} per 1,000 node-days"
    if rate.upper is None:
        known = (
            "The failure rate of this selection is unknown: the values are of RSC-1's. Between the "
            f"rates of two published fleets ({between}, assumed)"
        )
    elif rate.value is None:
        known = f"The failure rate of this selection lies anywhere from {between}. Within that"
    elif not rate.value:
        known = (
            f"No failure was seen in this selection: {between} ({numbers.level(rate)}), of which "
            "the values are. Down to a rate of 0"
        )
    else:
        known = f"Over the interval of the measured rate ({between})"
    shortest, longest = found.interval_min
    best = "no interval is best" if shortest is None else _best_between(shortest, longest)
    yield f"{known} the exact form gives {numbers.decimals_interval(ettr)}, and {best}."


def _best_between(shortest: float, longest: float | None) -> str:
    """The best interval at the bounds of a rate."""
    if longest is None:
        return f"the best interval is {numbers.number(shortest)} min or longer"
    return f"the best interval is {numbers.number(shortest)} to {numbers.number(longest)} min"


def forms(expected: ExpectedEttr) -> Table:
    """ETTR by each form."""
    return Table(
        "ettr_by_form",
        "Expected ETTR by form",
        (
            Column("form", "Form"),
            Column("ettr", "ETTR", "decimal"),
            Column("leaves_out", "Leaves out"),
        ),
        tuple((form, getattr(expected, form), left_out) for form, left_out in LEFT_OUT.items()),
    )


def chart(expected: ExpectedEttr) -> Chart | Missing:
    """Which of the inputs moves the ETTR most."""
    if not expected.sensitivities:
        return Missing("sensitivities", "At a rate of 0 nothing fails.", NOTHING_FAILS)
    return Chart(
        "efficiency.sensitivity_bars",
        "What moves the expected ETTR most?",
        "By how much 1 % more of each input changes the ETTR, all others kept.",
        (expected.sensitivities,),
        "sensitivities",
        whole=True,
        rows=Rows(list(vars(expected.sensitivities[0])), expected.sensitivities),
    )


def _numbers(expected: ExpectedEttr) -> Iterator[Number]:
    """What a simulation gives, and the intervals."""
    if expected.exact_of_run is not None:
        value = expected.exact_of_run
        yield Number(of_efficiency.LENGTH_ETTR, numbers.decimals(value), exact=value, unit="ratio")
    if expected.simulated is not None:
        of = replace(of_efficiency.SIMULATED_ETTR, label=f"ETTR, simulated {expected.simulated.of}")
        yield estimated(of, "ettr", expected.simulated.ettr)
    for term, minutes in (
        (of_efficiency.CHECKPOINT_INTERVAL, expected.interval_min),
        (of_efficiency.DALY_YOUNG, expected.daly_young_interval_min),
        (of_efficiency.BEST_EXACT, expected.optimal_interval_min),
        (of_efficiency.BEST_FIRST_ORDER, expected.optimal_interval_first_order_min),
    ):
        text = "none" if minutes is None else f"{numbers.number(minutes)} min"
        yield Number(term, text, exact=minutes, unit="min")
    at_best, hours = expected.exact_at_optimum, expected.mttf_hours
    yield Number(of_efficiency.ETTR_AT_BEST, numbers.decimals(at_best), exact=at_best, unit="ratio")
    yield Number(of_efficiency.JOB_MTTF, numbers.duration(hours), exact=hours, unit="h")


def record(expected: ExpectedEttr) -> dict[str, Any]:
    """The JSON of the command."""
    simulated = expected.simulated
    return {name: getattr(expected, name) for name in PLAIN} | {
        "simulated": simulated.ettr if simulated else None,
        "simulated_standard_error": simulated.standard_error if simulated else None,
        "simulated_of": simulated.of if simulated else None,
        "sensitivities": expected.sensitivities,
        "settings": expected.settings,
        "notes": expected.notes,
    }


def _sheet(expected: ExpectedEttr) -> Sheet:
    """A row for each quantity; plain numbers have no interval."""
    rows = [(name, getattr(expected, name)) for name in PLAIN]
    simulated = expected.simulated
    return quantities([*rows, *(() if simulated is None else (("simulated", simulated.ettr),))])


def published() -> Answer:
    """Published what-ifs beside ours, and what would be needed where a figure does not follow."""
    return Answer(
        "Each what-if by the form and with the inputs of its paper. Nothing here is tuned to hide "
        "what does not follow.",
        blocks=(
            Rows(PUBLISHED, PUBLISHED_WHAT_IFS).table(
                "published_ettr", "Published figures and ours"
            ),
        ),
        notes=tuple(
            f"{each.quantity}: {_with_unit(each.paper, each.unit)} published, "
            f"{_with_unit(each.own_formula, each.unit)} by its own formula; {each.remark}."
            for each in PUBLISHED_INCONSISTENCIES
        ),
    )


def _with_unit(value: float, unit: str) -> str:
    """A value, and its unit where it has one."""
    return f"{numbers.number(value)} {unit}".rstrip()
