"""Which groups and rows are the buckets of the ledger made of, and what do they come to?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.efficiency.buckets import (
    BUCKETS,
    DAY,
    HoursOverTime,
    LossesByGroup,
    bucket_columns,
    gpu_hours_by,
    hours_over_time,
    losses_by_group,
)
from analytics.efficiency.fleet_time import OUT_OF_SERVICE
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Number, Part, Table
from app.answers.failures.taxonomy import named
from app.answers.reliability import sight
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from data.queries import efficiency, fleet

if TYPE_CHECKING:
    from analytics.efficiency.goodput import Bucket, GoodputLedger
    from analytics.estimate import Estimate
    from analytics.frames import LedgerGroup
    from app.ask import Ask
    from app.words.cells import Kind
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

NOTHING_RAN = (
    "No GPU-time of a job is recorded in this selection.",
    "Choose a longer period, a smaller job size, or reset the filters.",
)
TITLES: dict[LedgerGroup, str] = {
    "day": "Day (UTC)", "partition": "Partition", "account": "Account",
    "size_class": "Job size (GPUs)",
}  # fmt: skip
NAMES: dict[str, LedgerGroup] = {
    "size": "size_class", "partition": "partition", "account": "account",
}  # fmt: skip
"""What an address calls the groups of jobs."""
WORDS: dict[LedgerGroup, str] = {
    "day": "day", "partition": "partition", "account": "account", "size_class": "size",
}  # fmt: skip


def measured(store: Store, selection: Selection, by: LedgerGroup) -> pd.DataFrame:
    """GPU-hours of each bucket by day, partition, account or size.

    Raises
    ------
    LedgerMissingError
        Where the ledger of these records is not built.
    """
    efficiency.ledger_notes(store)
    return gpu_hours_by(efficiency.ledger_rows(store, selection, (by,)), by)


def measured_over_time(store: Store, selection: Selection) -> HoursOverTime:
    """GPU-hours per day of each bucket, over the period or, without one, over the ledger's days."""
    by_day = measured(store, selection, "day")
    days = pd.to_datetime(by_day["day"], utc=True)
    first, last = days.min(), days.max() + DAY
    if selection.from_at is not None and selection.to_at is not None:
        first = pd.Timestamp(selection.from_at).floor("D")
        last = pd.Timestamp(selection.to_at).ceil("D")
    recorded = fleet.coverage_days(store, selection)
    jobs = recorded.loc[recorded["source"].eq("jobs"), "day"]
    return hours_over_time(by_day, span=(first, last), recorded=set(pd.to_datetime(jobs, utc=True)))


def answer(ask: Ask, selection: Selection, by: LedgerGroup) -> Answer:
    """GPU-hours of each bucket, a row for each group; 0 where a group has none of one."""
    rows = ask(measured, selection, by)
    wide = bucket_columns(rows, by)
    return Answer(
        "",
        blocks=(chart(ask, selection, by), _table(wide, by)),
        record=wide,
        sheet=wide,
    )


def chart(ask: Ask, selection: Selection, by: LedgerGroup) -> Chart | Missing:
    """Days on top of one another; of other groups, how much of their GPU-hours was lost to what."""
    if ask(measured, selection, by).empty:
        return Missing(f"ledger_by_{by}", *NOTHING_RAN)
    if by == "day":
        over_time = ask(measured_over_time, selection)
        return Chart(
            "efficiency.ledger_over_time",
            "Where did GPU-hours go, day by day?",
            "GPU-hours per day of each bucket; days without a record of a job are hatched.",
            (over_time,),
            "ledger_by_day",
            rows=over_time.by_day,
        )
    losses: LossesByGroup = losses_by_group(ask(measured, selection, by), by)
    if losses.rows.empty:
        return Missing(f"ledger_by_{by}", *NOTHING_RAN)
    return Chart(
        "efficiency.ledger_by_group",
        f"How much of their GPU-hours was not productive, by {WORDS[by]}?",
        "The share of each bucket in the GPU-hours that the jobs of a group held.",
        (losses,),
        f"ledger_by_{by}",
        rows=losses.rows,
    )


def _table(wide: pd.DataFrame, by: LedgerGroup) -> Table:
    """The groups, one column for each bucket."""
    kind: Kind = "day" if by == "day" else "text"
    buckets = (name for name in BUCKETS if name in wide)
    return Table(
        f"gpu_hours_by_{by}",
        f"GPU-hours by {WORDS[by]}",
        (
            Column(by, TITLES[by], kind, none="none stated"),
            *(Column(name, BUCKETS[name].title, "number", "GPU-h") for name in buckets),
        ),
        wide,
        "No GPU-hours are known.",
    )


DAYS = (
    Column("day", "Day (UTC)", "day"),
    *columns("cluster", "partition", "account"),
    Column("size_class", "Job size (GPUs)", none="held by no job"),
    Column("n_gpus", "GPUs", "count", none="held by no job"),
    Column("cause", "Cause", none="no cause"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("lower_gpu_hours", "At least", "number", "GPU-h"),
    Column("upper_gpu_hours", "At most", "number", "GPU-h"),
    Column("n_attempts", "Attempts", "count"),
)
ATTEMPTS = (
    *columns("job_id", "attempt", "cluster", "cause", "domain", "state", "name", "user", "account",
             "partition", "n_gpus", "start_at", "end_at", "node", "lost_gpu_hours",
             hidden=("attempt_key",)),
)  # fmt: skip
UNKNOWN = "unknown"
"""A verdict's cause where there is no evidence of one; the ledger holds none then."""


def behind(ask: Ask, selection: Selection, bucket: str, *, limit: int = EVERYTHING) -> Table:
    """Days, accounts and sizes of a bucket, the largest first; of lost work its attempts too."""
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=limit)
    beside = (Part("Attempts", lost_attempts, (selection,)),) if bucket == "lost_work" else ()
    return _days(ask, rows, bucket, "By day" if beside else BUCKETS[bucket].title, beside)


def out_of_service(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The same of each bucket of nodes drained or down."""
    first, *others = (name for name in BUCKETS if name in OUT_OF_SERVICE)
    rows = ask(efficiency.bucket_rows, selection, bucket=first, limit=limit)
    beside = tuple(Part(BUCKETS[name].title, behind, (selection, name)) for name in others)
    return _days(ask, rows, first, BUCKETS[first].title, beside)


def behind_loss(
    ask: Ask, selection: Selection, bucket: str, cause: object, *, limit: int = EVERYTHING
) -> Table:
    """The attempts of a cause of lost work; of other losses its days, accounts and sizes."""
    named = cause if isinstance(cause, str) else None
    if bucket == "lost_work":
        return lost_attempts(ask, selection, named or UNKNOWN, limit=limit)
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=EVERYTHING)
    of_cause = rows["cause"].isna() if named is None else rows["cause"].eq(named)
    return _days(ask, rows[of_cause].head(limit), bucket, BUCKETS[bucket].title)


def lost_attempts(
    ask: Ask, selection: Selection, cause: str | None = None, *, limit: int = EVERYTHING
) -> Table:
    """Attempts that infrastructure ended, those that lost most first."""
    kept = limit if cause is None else EVERYTHING
    rows = ask(efficiency.lost_attempts, selection, limit=kept)
    if cause is not None:
        rows = rows[rows["cause"].fillna(UNKNOWN).eq(cause)].head(limit)
    return Table(
        "lost_attempts",
        "Attempts",
        ATTEMPTS,
        named(ask, rows),
        "No such attempt.",
        "Attempts that infrastructure ended. Pick a job to open it.",
    )


def _days(
    ask: Ask, rows: pd.DataFrame, bucket: str, title: str, beside: tuple[Part, ...] = ()
) -> Table:
    """GPU-hours of a bucket in parts."""
    note = f"{BUCKETS[bucket].title}: GPU-hours by day, partition, account and size."
    return Table(
        f"bucket_{bucket}", title, DAYS, named(ask, rows), "No GPU-hours.", note, beside=beside
    )


NOT_COMPUTED = "not computed yet"
"""What stands for a cost until the ledger is built."""
NOT_BUILT = "no ledger yet (faultline ledger builds it)"


def lost_to_failures(
    ledger: GoodputLedger | None, selection: Selection
) -> tuple[Number] | tuple[Number, Number]:
    """What failures cost, on every page and report that says it; then, where there are any, what
    unexplained failures would add."""
    if ledger is None:
        return (Number(terms.LOST_TO_FAILURES, NOT_COMPUTED, NOT_BUILT, unit="GPU-hours"),)
    lost = _of_bucket(ledger, "lost_work", terms.LOST_TO_FAILURES, selection)
    most = ledger.if_unexplained_count
    if not most.upper:
        return (lost,)
    may_be = Number(
        terms.IF_UNEXPLAINED_COUNT,
        f"up to {numbers.number(most.upper)}",
        f"a bound, not an estimate: {numbers.counted(most.n, 'unexplained failure')}",
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
        numbers.bounds(hours) if bucket.bounded else numbers.number(hours.value),
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
        spread, value = numbers.bounds(bounds), numbers.number(bounds.value)
        basis = f"bounds: {value} by the attempts recorded"
        term = terms.OUT_OF_SERVICE_HOURS
        return Number(term, spread, basis, spread, "", bounds, "GPU-hours", opens=opens)
    basis = f"{numbers.percent(ledger.out_of_service_ratio)}, as recorded"
    if ledger.without_states:
        basis += f", unknown of {', '.join(ledger.without_states)}"
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
