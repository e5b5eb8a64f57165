"""How often should a job of so many GPUs save?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.efficiency.best_interval import BestInterval, best_interval
from analytics.estimate import CONF_LEVEL
from app.answers.content import Number
from app.answers.efficiency import ettr
from app.answers.reliability import mttf
from app.words import numbers
from app.words.glossary.of_efficiency import BEST_INTERVAL
from data.queries import efficiency

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection

KNOWN_GPUS = 1024
CHOSEN_PERIOD = "chosen period"
"""What the Planner calls the period of the filters."""


def of_size(
    ask: Ask, selection: Selection, gpus: int | None = None, *, conf_level: float = CONF_LEVEL
) -> BestInterval | None:
    """For a job of so many GPUs, else of the largest usual size; None where no job states GPUs.

    Raises
    ------
    OutOfRangeError
        For a size that is not > 0.
    LedgerMissingError
        Where the ledger, which knows how runs save, is not built.
    """
    size = ask(mttf.usual_size, selection) if gpus is None else gpus
    if size is None:
        return None
    report = ask(mttf.measured, selection)
    return best_interval(
        size,
        report.rate.rate_per_1000_node_days,
        ask(ettr.habits),
        gpus_per_node=report.gpus_per_node,
        conf_level=conf_level,
    )


def if_built(
    ask: Ask, selection: Selection, gpus: int | None = None, *, conf_level: float = CONF_LEVEL
) -> BestInterval | None:
    """The same; None where the ledger is not built yet, which the caller does not wait for."""
    if not ask(efficiency.has_ledger):
        return None
    return of_size(ask, selection, gpus, conf_level=conf_level)


def number(found: BestInterval | None) -> Number:
    """The interval as a headline number."""
    if found is None:
        return Number(term(None), numbers.UNKNOWN, "no job states GPUs")
    best = found.exact_min
    if best.value is None and best.lower is None:
        return Number(term(found.gpus), numbers.UNKNOWN, _why_unknown(found), exact=best)
    minutes = in_minutes(best)
    value = minutes_of(best.value) if best.value else minutes
    level = f"{minutes} ({numbers.level(best)})" if best.value else "no failure was seen"
    basis = f"{level}; {_daly_young(found)}, n = {best.n:,}"
    return Number(term(found.gpus), value, basis, minutes, numbers.count(best.n), best, "min")


def in_minutes(best: Estimate) -> str:
    """The bounds of an interval."""
    return f"{numbers.interval(best)} min"


def minutes_of(minutes: float | None) -> str:
    """An interval."""
    return numbers.UNKNOWN if minutes is None else f"{numbers.number(minutes)} min"


def _daly_young(found: BestInterval) -> str:
    """What Daly and Young say."""
    return f"Daly-Young {minutes_of(found.daly_young_min.value)}"


def _why_unknown(found: BestInterval) -> str:
    """Why no interval is best."""
    if not found.write_min.value:
        return "writing stops no run, so the shorter, the better"
    if found.rate_per_1000_node_days.value == 0:
        return "no failure was seen, and writing may stop no run"
    return "the failure rate is unknown"


def sentence(found: BestInterval | None) -> str:
    """How often to save, and what that rests on."""
    if found is None:
        return ""
    best, rate, write = found.exact_min, found.rate_per_1000_node_days, found.write_min
    job = _job(found)
    if best.value is None and best.lower is None:
        return f"How often {job} should save is not known: {_why_unknown(found)}."
    assumed = ", assumed" if write.assumed else ""
    between = f" ({numbers.interval(write)}{assumed})" if write.has_width else ""
    rests = (
        f"at {numbers.number(rate.value)} failures per 1,000 node-days ({numbers.interval(rate)}) "
        f"and {numbers.number(write.value)} min to write one{between}"
    )
    if best.value is None:
        least = minutes_of(best.lower)
        return f"Checkpoint {job} no more often than every {least}: no failure was seen, {rests}."
    also = f"; Daly and Young's rule says {minutes_of(found.daly_young_min.value)}"
    return (
        f"Checkpoint {job} every {minutes_of(best.value)} ({in_minutes(best)}) {rests}"
        f"{also if found.apart else ''}."
    )


def _job(found: BestInterval) -> str:
    return f"a job of {numbers.counted(found.gpus, 'GPU')}"


def in_short(found: BestInterval) -> str:
    """How often to save, in a few words; the sentence says which job, and what that rests on."""
    best = found.exact_min
    size = numbers.counted(found.gpus, "GPU")
    if best.value is None and best.lower is None:
        return "How often to save is not known"
    if best.value is None:
        return f"Checkpoint {size} no more often than every {minutes_of(best.lower)}"
    return f"Checkpoint {size} every {minutes_of(best.value)}"


def term(gpus: int | None) -> Term:
    """The interval of one size."""
    size = "" if gpus is None else f", {gpus:,} GPUs"
    return replace(BEST_INTERVAL, label=f"{BEST_INTERVAL.label}{size}")


def as_address(found: BestInterval) -> dict[str, str]:
    """The same job as the address of the Planner names it."""
    rate, write = found.rate_per_1000_node_days.value, found.write_min.value
    known = {"gpus": float(found.gpus), "rate": rate, "write": write}
    given = {name: f"{round(value, 3):g}" for name, value in known.items() if value is not None}
    return {"planner_tab": "One job"} | given


def as_question(gpus: int) -> dict[str, str]:
    """A job of so many GPUs and the chosen period as the address of the Planner names them."""
    return {"of_gpus": f"{gpus}", "over": CHOSEN_PERIOD}


def sizes(found: BestInterval) -> list[int]:
    """Sizes of jobs that a page offers: the present one, twice that, and one known to all."""
    return sorted({found.gpus, 2 * found.gpus, KNOWN_GPUS})
