"""The headline numbers of the ledger, each with the rows that it opens, and its sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.components import glossary, ledger_rows
from app.components.headline import Headline
from app.figures import numbers
from app.figures.efficiency import buckets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.efficiency.goodput import Bucket, GoodputLedger
    from app.components.scope import Scope

OUT = ("drained", "down_planned", "down_unplanned")
LOST = ("lost_work", "lost_work_preempted")


def verdict(ledger: GoodputLedger) -> str:
    """How much was productive, and how much did failures take?"""
    productive, lost = ledger.bucket("productive"), ledger.bucket("lost_work")
    held = "" if is_fleet(ledger) else " that jobs held"
    total = numbers.number(ledger.total_gpu_hours)
    if productive is None or lost is None:
        return f"{total} GPU-hours{held}."
    share = productive.ratio
    bounds = f" ({numbers.percent_interval(share)})" if buckets.spread(share) else ""
    first = f"{numbers.percent(share.value)} of {total} GPU-hours{held} were productive{bounds}"
    if not lost.gpu_hours.upper:
        return f"{first}; no work is known to be lost to failures."
    spread = buckets.spread(lost.gpu_hours)
    return (
        f"{first}; {numbers.number(lost.gpu_hours.value)} were lost to failures"
        f"{f' ({spread})' if spread else ''}."
    )


def of(ledger: GoodputLedger, scope: Scope) -> list[Headline]:
    """What was kept, what was lost to what, and what was not used."""
    shown = [_productive(ledger, scope), _lost(ledger, scope), _preempted(ledger, scope)]
    if is_fleet(ledger):
        shown += [_out(ledger, scope), _one(ledger, "idle", glossary.IDLE_HOURS, scope)]
    else:
        shown.append(_held(ledger, scope))
    if ledger.currency is not None:
        shown.append(_cost(ledger, scope))
    return shown


def is_fleet(ledger: GoodputLedger) -> bool:
    """Whether time that no job held is in it: no filter leaves jobs alone."""
    return any(not each.kind.of_jobs for each in ledger.buckets)


def _productive(ledger: GoodputLedger, scope: Scope) -> Headline:
    """The productive share, of all and of the time that jobs held."""
    found, of_jobs = ledger.bucket("productive"), ledger.runtime_goodput
    share = of_jobs if found is None else found.ratio
    basis = f"{numbers.percent_interval(share)} ({numbers.percent(share.conf_level)})"
    more = f"; {numbers.percent(of_jobs.value)} of what jobs held" if is_fleet(ledger) else ""
    return Headline(
        glossary.PRODUCTIVE_SHARE,
        numbers.percent(share.value),
        f"{basis}{more}",
        partial(ledger_rows.bucket, scope, "productive"),
    )


def _lost(ledger: GoodputLedger, scope: Scope) -> Headline:
    """Work lost to failures, with the attempts that lost it."""
    return _one(ledger, "lost_work", glossary.LOST_TO_FAILURES, scope)


def _preempted(ledger: GoodputLedger, scope: Scope) -> Headline:
    """Work lost to preemption, and how much of it failures caused."""
    second = sum(
        loss.gpu_hours.value or 0.0
        for loss in ledger.losses
        if loss.bucket == "lost_work_preempted" and loss.cause is not None
    )
    also = f"; {numbers.number(second)} of second order"
    return _one(ledger, "lost_work_preempted", glossary.LOST_TO_PREEMPTION, scope, also=also)


def _one(
    ledger: GoodputLedger, name: str, term: glossary.Term, scope: Scope, *, also: str = ""
) -> Headline:
    """GPU-hours of a bucket, their interval or share, and what they rest on."""
    found = ledger.bucket(name)
    if found is None:
        return Headline(term, numbers.UNKNOWN, "", partial(ledger_rows.bucket, scope, name))
    return Headline(
        term,
        numbers.number(found.gpu_hours.value),
        f"{_basis(found)}{also}",
        partial(ledger_rows.bucket, scope, name),
    )


def _basis(found: Bucket) -> str:
    """The interval and n of an estimate; of what records fix, its share."""
    spread, n = buckets.spread(found.gpu_hours), found.gpu_hours.n
    if not spread:
        return f"{numbers.percent(found.ratio.value)}, as recorded"
    level = numbers.percent(found.gpu_hours.conf_level)
    return f"{spread} ({level}){f', n = {n:,}' if n else ''}"


def _out(ledger: GoodputLedger, scope: Scope) -> Headline:
    """Capacity out of service; not known where no record says when nodes were."""
    opens = partial(ledger_rows.out_of_service, scope)
    if ledger.clusters and ledger.without_states == ledger.clusters:
        basis = "no record of nodes' states"
        return Headline(glossary.OUT_OF_SERVICE_HOURS, numbers.UNKNOWN, basis, opens)
    found = _present(ledger, OUT)
    hours = sum(each.gpu_hours.value or 0.0 for each in found)
    ratio = sum(each.ratio.value or 0.0 for each in found)
    return Headline(
        glossary.OUT_OF_SERVICE_HOURS,
        numbers.number(hours),
        f"{numbers.percent(ratio)}, as recorded"
        + (f"; unknown of {', '.join(ledger.without_states)}" if ledger.without_states else ""),
        opens,
    )


def _held(ledger: GoodputLedger, scope: Scope) -> Headline:
    """All time that jobs held, where that is the whole."""
    return Headline(
        glossary.HELD_HOURS,
        numbers.number(ledger.total_gpu_hours),
        "as recorded",
        partial(ledger_rows.bucket, scope, "productive"),
    )


def _cost(ledger: GoodputLedger, scope: Scope) -> Headline:
    """What the losses cost."""
    costs = [each.cost for each in _present(ledger, (*LOST, *OUT))]
    known = [cost for cost in costs if cost is not None]
    whole = len(known) == len(costs)
    lost = ledger.bucket("lost_work")
    of_failures = "" if lost is None else f"{money(lost.cost, ledger)} of them by failures"
    return Headline(
        glossary.LOSSES_COST,
        money(sum(known) if whole else None, ledger),
        of_failures,
        partial(ledger_rows.bucket, scope, "lost_work"),
    )


def money(cost: float | None, ledger: GoodputLedger) -> str:
    """A cost in the currency of the ledger."""
    return f"{numbers.number(cost)} {ledger.currency or ''}".strip()


def _present(ledger: GoodputLedger, names: Iterable[str]) -> list[Bucket]:
    """The buckets of these names that the selection has."""
    return [each for name in names if (each := ledger.bucket(name)) is not None]
