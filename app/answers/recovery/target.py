"""What must be true for a job to train a target share of its time, and what moves it most?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.recovery.sensitivity import (
    INTERVAL,
    PARAMETERS,
    RATE,
    TARGET,
    Form,
    Sensitivity,
    by_size,
    grid,
    sensitivity,
)
from app.answers.content import Answer, Chart, Missing, estimated, ranged
from app.answers.described import Rows, field
from app.answers.efficiency import usual_job
from app.answers.recovery import sites
from app.answers.reliability import mttf
from app.words import numbers
from app.words.glossary import of_recovery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.efficiency.expected_ettr import EttrSettings
    from analytics.estimate import Estimate
    from analytics.recovery.sensitivity import Required
    from app.answers.content import Block, Number, Table
    from app.ask import Ask
    from data.filters import Selection

WORDS = {
    RATE: "failure rate",
    "write_min": "checkpoint write",
    "restart_min": "restart",
    INTERVAL: "checkpoint interval",
    "queue_min": "queue",
}
SIZES = tuple(float(2**k) for k in range(5, 18))
STEPS = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
"""Of the present interval and restart that the heat map shows."""


def of_store(
    ask: Ask, selection: Selection, *, conf_level: float = CONF_LEVEL
) -> tuple[EttrSettings, Estimate] | Missing:
    """A job like the largest run and the rate measured; what is missing where it is not known."""
    report = ask(mttf.measured, selection, conf_level=conf_level)
    rate = report.rate.rate_per_1000_node_days
    if not rate.value:
        return missing(rate)
    return usual_job.job_like_runs(ask, selection), rate


def missing(rate: Estimate) -> Missing:
    """Why nothing can be planned at a rate."""
    why = f"What a target would take cannot be judged: {sites.why_not(rate)}"
    return Missing(
        "required", why, "At a rate of your own:",
        ("faultline plan --gpus 1024 --rate-per-1000-node-days 6.5",),
    )  # fmt: skip


def unknown(why: Missing) -> Answer:
    """Where no rate is known."""
    return Answer(
        why.finding,
        blocks=(why,),
        record={"ettr": None, "required": [], "sensitivity": [], "halved": []},
        sheet=Rows(REQUIRED, []).sheet(),
    )


def answer(
    settings: EttrSettings,
    rate: Estimate,
    *,
    target: float = TARGET,
    form: Form = "exact",
    told: tuple[str, ...] = (),
) -> Answer:
    """Required values, tornado, halved costs, sizes and the heat map of a job; `told` is what its
    settings rest on.

    Raises
    ------
    OutOfRangeError
        For a target outside (0, 1), or a job that never fails.
    """
    found = sensitivity(settings, rate, target=target, form=form)
    required = Rows(REQUIRED, [_row(each) for each in found.required])
    halved = Rows(
        HALVED,
        [
            {"parameter": each.parameter, "named": WORDS[each.parameter], "value": each.value,
             "ettr": each.ettr, "won": each.won,
             "gpu_hours_won": _in_gpu_hours(each.won, settings).value}
            for each in found.halved
        ],
    )  # fmt: skip
    return Answer(
        _sentence(found),
        tuple(_headlines(found)),
        tuple(_blocks(found, required, halved, form)),
        notes=(*_notes(found, form), *told),
        record={
            "gpus": settings.gpus,
            "target_ettr": target,
            "form": form,
            "ettr": found.ettr,
            "required": required.records(),
            "sensitivity": [
                {
                    "parameter": each.parameter, "low": each.low, "high": each.high,
                    "ettr_low": each.ettr_low, "ettr_high": each.ettr_high,
                    "measured": each.measured,
                }
                for each in found.moved
            ],
            "halved": halved.records(),
        },
        sheet=required.sheet(),
    )  # fmt: skip


def compared(kept: Sequence[tuple[EttrSettings, Estimate]]) -> Table:
    """Scenarios side by side, each with its expected ETTR and what it has beyond the first."""
    first = kept[0][1].value or 0.0
    rows = [
        {"job": job, "interval": job.checkpoint_min, "ettr": ettr,
         "beyond": (ettr.value or 0.0) - first,
         "won": ((ettr.value or 0.0) - first) * 24 * DAYS * job.gpus}
        for job, ettr in kept
    ]  # fmt: skip
    return Rows(SCENARIOS, rows).table(
        "scenarios", "Scenarios kept", note="What each has beyond the first, for its own GPUs.",
    )  # fmt: skip


DAYS = 28
SCENARIOS = (
    field("gpus", "GPUs", "count", "job.gpus"),
    field("rate_per_1000_node_days", "Failures per 1,000 node-days", "number",
          "job.rate_per_1000_node_days"),
    field("restart_min", "Restart (min)", "number", "job.restart_min"),
    field("write_min", "Write (min)", "number", "job.write_min"),
    field("interval_min", "Interval (min)", "number", "interval"),
    field("queue_min", "Queue (min)", "number", "job.queue_min"),
    field("ettr", "Expected ETTR", "ettr"),
    field("beyond_first", "Beyond the first", "decimal", "beyond"),
    field("won_gpu_hours", f"Won in {DAYS} days", "number", "won", unit="GPU-h"),
)  # fmt: skip
REQUIRED = (
    field("parameter", on=("json", "csv")),
    field("named", "Alone", on=("table",)),
    field("now", "Now", "number", unit="min or rate"),
    field("value", "For the target", "number", unit="min or rate", none="not enough alone"),
    field("unit", "Unit"),
    field("verdict", "Verdict", on=("table",)),
    field("met", on=("json",)),
    field("best", "Best that it can give", "decimal"),
)
HALVED = (
    field("parameter", on=("json", "csv")),
    field("named", "Half of", on=("table",)),
    field("value", "That is", "number", unit="min or rate"),
    field("ettr", "ETTR then", "decimal"),
    field("won", "ETTR won", "ettr"),
    field("gpu_hours_won", f"Won in {DAYS} days", "number", unit="GPU-h"),
)


def _in_gpu_hours(won: Estimate, settings: EttrSettings) -> Estimate:
    """ETTR won as GPU-hours that the job trains more."""
    return won.scaled(24 * DAYS * settings.gpus)


def _row(each: Required) -> dict[str, Any]:
    """One required value."""
    return {
        "parameter": each.parameter, "named": WORDS[each.parameter], "now": each.now,
        "value": each.value, "unit": PARAMETERS[each.parameter], "met": each.met,
        "best": each.best,
        "verdict": _verdict(each),
    }  # fmt: skip


def _verdict(each: Required) -> str:
    """Whether it is enough, in words."""
    if each.value is None:
        return "any will do" if each.met else "not enough alone"
    return "room up to that" if each.met else "enough alone"


def _sentence(found: Sensitivity) -> str:
    job, target = numbers.gpu_count(found.settings.gpus), numbers.decimals(found.target)
    if found.required[0].met:
        reached = numbers.decimals(found.ettr.value)
        return (
            f"A job of {job} can expect an ETTR of {reached} as it is: above the target of "
            f"{target}."
        )
    ways = [
        f"{WORDS[each.parameter]} of {numbers.number(each.value)}"
        + ("" if each.parameter == RATE else " min")
        for each in found.required
        if each.value is not None
    ]
    if not ways:
        return f"For an ETTR of {target} of {job} no single change is enough."
    rest = f", else a {' or a '.join(ways[1:])}" if ways[1:] else ""
    return f"An ETTR of {target} of {job} takes a {ways[0]} alone{rest}."


def _headlines(found: Sensitivity) -> Iterator[Number]:
    yield estimated(of_recovery.ETTR_OF_JOB, "ettr", found.ettr)
    if found.halved:
        best = found.halved[0]
        won = _in_gpu_hours(best.won, found.settings)
        what = f"half of {WORDS[best.parameter]}: ETTR {numbers.decimals(best.ettr)}"
        yield ranged(of_recovery.WORTH_MOST, won, what, unit="GPU-h")


def _blocks(found: Sensitivity, required: Rows, halved: Rows, form: Form) -> Iterator[Block]:
    job = found.settings
    yield required.table("required", "What it would take, each alone")
    yield Chart(
        "recovery.tornado", "What moves it most",
        "Expected ETTR with each parameter at the bounds of its estimate, else at half and double.",
        (found,),
    )  # fmt: skip
    sizes = tuple(sorted({*SIZES, job.gpus}))
    here = (job.gpus, found.ettr.value or 0.0)
    yield Chart(
        "recovery.ettr_by_gpus", "The same job at other sizes",
        "Expected ETTR over the GPUs of the job; the band is what the rate leaves open.",
        (sizes, by_size(job, sizes, found.rate, form)),
        options={"target": found.target, "here": here},
    )  # fmt: skip
    interval, restart = job.checkpoint_min, job.restart_min
    if 0 < interval < np.inf and restart > 0:
        intervals, restarts = interval * STEPS, restart * STEPS
        yield Chart(
            "recovery.ettr_heat_map", "Interval and restart together",
            "Expected ETTR by checkpoint interval and restart time.",
            (intervals, restarts, grid(job, intervals, restarts, form)),
            options={"here": (interval, restart)},
        )  # fmt: skip
    yield halved.table("halved", "What halving each is worth")


def _notes(found: Sensitivity, form: Form) -> Iterator[str]:
    job = found.settings
    yield (
        f"Restart {numbers.number(job.restart_min)} min, write {numbers.number(job.write_min)} "
        f"min, interval {numbers.number(job.checkpoint_min)} min"
        + ("" if job.interval_min is not None else " (Daly-Young's, again for each change)")
        + f", queue {numbers.number(job.queue_min)} min."
    )
    if form == "v2":
        yield "By the first-order form of Kokolis et al. (v2), which leaves the queue out."
    else:
        yield "By the exact form for Poisson failures of a long run."
    if found.ettr.lower is None:
        yield "The rate is stated: the ETTR has no interval."
