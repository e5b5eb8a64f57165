"""What the ledger of GPU-hours comes to, in a row of numbers; what failures cost on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.content import Number, Part
from app.answers.efficiency.ledger_parts import behind, out_of_service
from app.answers.reliability import sight
from app.words import numbers, terms

if TYPE_CHECKING:
    from analytics.efficiency.goodput import Bucket, GoodputLedger
    from analytics.estimate import Estimate
    from app.words.terms import Term
    from data.filters import Selection

NOT_BUILT = "the ledger is not built: the page Ledger or faultline ledger builds it"


def lost_to_failures(
    ledger: GoodputLedger | None, selection: Selection
) -> tuple[Number] | tuple[Number, Number]:
    """What failures cost, on every page and report that says it; then, where there are any, what
    unexplained failures would add."""
    if ledger is None:
        unknown = Number(terms.LOST_TO_FAILURES, numbers.UNKNOWN, NOT_BUILT, unit="GPU-hours")
        return (unknown,)
    lost = _of_bucket(ledger, "lost_work", terms.LOST_TO_FAILURES, selection)
    most = ledger.if_unexplained_count
    if not most.upper:
        return (lost,)
    may_be = Number(
        terms.IF_UNEXPLAINED_COUNT,
        f"up to {numbers.number(most.upper)}",
        f"a bound, not an estimate: {numbers.counted(most.n, 'unexplained failure')}, by the "
        "30-minute rule",
        n=numbers.count(most.n),
        exact=most,
        unit="GPU-hours",
    )
    return (lost, may_be)


def headlines(
    ledger: GoodputLedger, selection: Selection, *, idle_rests_on: str = ""
) -> tuple[Number, ...]:
    """What was kept, what was lost to what, and what was not used."""
    preempted = f"; {numbers.number(ledger.second_order_gpu_hours)} of second order"
    shown = [
        _productive(ledger, selection),
        *lost_to_failures(ledger, selection),
        _of_bucket(
            ledger, "lost_work_preempted", terms.LOST_TO_PREEMPTION, selection, more=preempted
        ),
    ]
    if ledger.covers_fleet:
        shown += [
            _out_of_service(ledger, selection),
            _of_bucket(ledger, "idle", terms.IDLE_HOURS, selection, more=idle_rests_on),
        ]
    else:
        shown.append(_hours(terms.HELD_HOURS, ledger.total_gpu_hours, "as recorded",
                            _rows("productive", selection)))  # fmt: skip
    return (*shown, _cost(ledger, selection)) if ledger.currency is not None else tuple(shown)


def _productive(ledger: GoodputLedger, selection: Selection) -> Number:
    """The productive share, of all and of the time that jobs held."""
    share = ledger.productive_ratio
    interval = numbers.percent_interval(share)
    of_jobs = numbers.percent(ledger.runtime_goodput.value)
    return Number(
        terms.PRODUCTIVE_SHARE,
        numbers.percent(share.value),
        f"{interval} ({'bounds' if ledger.bounded else _level(share)})"
        + (f"; {of_jobs} of what jobs held" if ledger.covers_fleet else ""),
        interval,
        numbers.count(share.n),
        share,
        "ratio",
        opens=_rows("productive", selection),
    )


def _of_bucket(
    ledger: GoodputLedger, name: str, term: Term, selection: Selection, *, more: str = ""
) -> Number:
    """GPU-hours of a bucket: interval and n of an estimate, the share of what is recorded."""
    bucket, opens = ledger.bucket(name), _rows(name, selection)
    if bucket is None:
        return Number(term, numbers.UNKNOWN, opens=opens)
    hours = bucket.gpu_hours
    return Number(
        term,
        numbers.spread(hours) if bucket.bounded else numbers.number(hours.value),
        f"{_basis(bucket, total_known=bool(ledger.total_gpu_seconds))}{more}",
        numbers.spread(hours),
        numbers.count(hours.n) if hours.n else "",
        hours,
        "GPU-hours",
        opens=opens,
    )


def _basis(bucket: Bucket, *, total_known: bool) -> str:
    """The interval and n of an estimate; the share of what records fix."""
    hours, spread = bucket.gpu_hours, numbers.spread(bucket.gpu_hours)
    if hours.value is None:
        return sight.BASIS if total_known else "no GPU-hour is known"
    if not spread:
        return f"{numbers.percent(bucket.ratio.value)}, as recorded"
    n = f", n = {hours.n:,}" if hours.n else ""
    if bucket.bounded:
        return f"bounds: {numbers.number(hours.value)} of the attempts recorded{n}"
    return f"{spread} ({_level(hours)}){n}"


def _level(estimate: Estimate) -> str:
    """The level of an interval, or that it is assumed."""
    return "assumed range" if estimate.assumed else numbers.percent(estimate.conf_level)


def _out_of_service(ledger: GoodputLedger, selection: Selection) -> Number:
    """Capacity out of service; unknown where no record says when nodes were."""
    opens = Part("Down or drained", out_of_service, (selection,))
    if not ledger.states_known:
        return _hours(terms.OUT_OF_SERVICE_HOURS, None, "no record of nodes' states", opens)
    if bounds := ledger.out_of_service_bounds:
        spread, value = numbers.spread(bounds), numbers.number(bounds.value)
        basis = f"bounds: {value} by the attempts recorded"
        term = terms.OUT_OF_SERVICE_HOURS
        return Number(term, spread, basis, spread, "", bounds, "GPU-hours", opens=opens)
    basis = f"{numbers.percent(ledger.out_of_service_ratio)}, as recorded"
    if ledger.without_states:
        basis += f"; unknown of {', '.join(ledger.without_states)}"
    return _hours(terms.OUT_OF_SERVICE_HOURS, ledger.out_of_service_gpu_hours, basis, opens)


def _hours(term: Term, gpu_hours: float | None, basis: str, opens: Part) -> Number:
    """GPU-hours that records fix."""
    value = numbers.number(gpu_hours)
    return Number(term, value, basis, exact=gpu_hours, unit="GPU-hours", opens=opens)


def _cost(ledger: GoodputLedger, selection: Selection) -> Number:
    """What the losses cost."""
    lost, currency = ledger.bucket("lost_work"), ledger.currency or ""
    of_failures = "" if lost is None else _money(lost.cost, currency) + " of them by failures"
    if ledger.bounded:
        of_failures += "; of the attempts recorded"
    return Number(
        terms.LOSSES_COST,
        _money(ledger.losses_cost, currency),
        of_failures,
        exact=ledger.losses_cost,
        unit=currency,
        opens=_rows("lost_work", selection),
    )


def _money(cost: float | None, currency: str) -> str:
    """A cost in its currency."""
    return f"{numbers.number(cost)} {currency}".strip()


def _rows(bucket: str, selection: Selection) -> Part:
    """What stands behind a bucket."""
    return Part("Rows behind the bucket", behind, (selection, bucket))
