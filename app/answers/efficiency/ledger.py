"""Where did every GPU-hour go?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, time
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.efficiency.buckets import BUCKETS
from analytics.efficiency.goodput import (
    OUTSIDE,
    GoodputLedger,
    goodput_ledger,
    lost_gpu_hours,
)
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.frames import DEFINITION
from app.answers.content import Answer, Chart, Missing, Part, Table
from app.answers.described import Rows, field, sheet_of
from app.answers.efficiency import ledger_parts, untold
from app.answers.efficiency.ledger_parts import NOTHING_RAN, behind, behind_loss
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import inventory
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_efficiency
from app.words.terms import Term
from data.filters import Selection
from data.queries import efficiency, exposure, fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from analytics.efficiency.goodput import Bucket, Loss
    from app.ask import Ask
    from data.store import Store

MIDNIGHT = time()
LOSSES = "What failures lost"
LOST_KEY = "lost_to_failures_gpu_hours"
"""What JSON calls the GPU-hours lost to failures, wherever it holds them."""
WENT = "where they went"
WITHOUT_CAUSE = {
    "lost_work": "no evidence of a cause",
    "lost_work_preempted": "not by a failure",
    "other": "requeued by hand",
}
"""What a loss without a cause is."""
WHATEVER_JOBS = (
    "What states no GPUs is counted over the clusters and days selected, whatever the partition, "
    "account or size."
)
JOBS_ALONE = (
    "With a filter on partition, account or size only time that jobs held is shown: idle time, the "
    "queue and repairs belong to none of them."
)
WHOLE_DAYS = (
    "The ledger counts whole days of UTC: every day that the period touches counts in full."
)
NO_TRACES = (
    "No run with a straggler trace is in this selection: what workers waited for the slowest is "
    "not known and counts as productive."
)
NO_PRICE = (
    "What the losses cost shows once site.toml states the price of a GPU-hour: "
    '`gpu_hour_price = 2.5` and `currency = "EUR"` in `[cluster.NAME]`.'
)


def _bound(end: str) -> Callable[[Bucket | Loss], float | None]:
    """One end of the interval; nothing where records fix the value."""
    return lambda row: getattr(row.gpu_hours, end) if row.gpu_hours.has_width else None


_BOUNDS = (
    field("gpu_hours_lower", "At least", "number", _bound("lower"), unit="GPU-h", none=""),
    field("gpu_hours_upper", "At most", "number", _bound("upper"), unit="GPU-h", none=""),
)


def measured(
    store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL
) -> GoodputLedger:
    """GPU-hours of every bucket in a selection, with what the losses cost.

    Raises
    ------
    LedgerMissingError
        Where the ledger of these records is not built.
    """
    notes = efficiency.notes_of(efficiency.ledger_notes(store), selection)
    rows = efficiency.ledger_rows(store, selection)
    states = fleet.states_recorded(store, selection)
    ledger = goodput_ledger(
        rows,
        prices=efficiency.prices(store),
        notes=notes,
        without_states=[cluster for cluster, recorded in states.items() if not recorded],
        blind=sight.sight(store, selection.days).none,
        missing=efficiency.unrecorded_rows(store, selection),
        conf_level=conf_level,
    )
    unexplained = pd.DataFrame(efficiency.unexplained_losses(store, selection))
    most = lost_gpu_hours(unexplained, conf_level)
    if most.n:
        may_be = Estimate(None, 0.0, most.upper, None, most.n)
        ledger = replace(ledger, if_unexplained_count=may_be)
    return ledger


def if_built(
    store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL
) -> GoodputLedger | None:
    """The same; None where the ledger of these records is not built."""
    if not efficiency.has_ledger(store):
        return None
    return measured(store, selection, conf_level=conf_level)


def lost_to_failures(ledger: GoodputLedger | None) -> Estimate | None:
    """GPU-hours lost to failures; None where the ledger is not built."""
    bucket = None if ledger is None else ledger.bucket("lost_work")
    return None if bucket is None else bucket.gpu_hours


def costliest_cause(ledger: GoodputLedger | None) -> str | None:
    """The cause that lost most; None where nothing was lost, or the ledger is not built."""
    losses = {} if ledger is None else ledger.failure_losses
    return next((cause for cause, hours in losses.items() if hours.value), None)


def cost_in_words(ledger: GoodputLedger | None, titles: Mapping[str, str]) -> str:
    """What failures cost, and which cause most; empty where nothing was lost or known."""
    first = costliest_cause(ledger)
    named = {**titles, "unknown": WITHOUT_CAUSE["lost_work"]}
    bucket = None if ledger is None else ledger.bucket("lost_work")
    if bucket is not None and bucket.bounded:
        return untold.bounded_cost(bucket, None if first is None else named.get(first, first))
    if ledger is None or first is None or bucket is None:
        return ""
    hours, most = bucket.gpu_hours, ledger.failure_losses[first]
    spread = numbers.spread(hours)
    cause = named.get(first, first)
    return (
        f"Failures lost {numbers.number(hours.value)} GPU-hours"
        f"{f' ({spread})' if spread else ''}, most by {cause} ({numbers.number(most.value)})."
    )


def is_built(ask: Ask) -> bool:
    """Whether the ledger of the present records, verdicts and site.toml is built."""
    return ask(efficiency.has_ledger)


def answer(ask: Ask, selection: Selection, *, conf_level: float = CONF_LEVEL) -> Answer:
    """Where every GPU-hour went: buckets that add up, and lost work by cause."""
    ledger = ask(measured, selection, conf_level=conf_level)
    node_hours = ask(exposure.node_hours, selection)
    of_nodes = untold.node_hours(node_hours, WENT)
    nodes = ask(inventory.known, Selection(selection.cluster))
    missing = ask(untold.missing_attempts, selection) if ledger.bounded else ()
    seen = ask(sight.sight, selection.days)
    notes = (
        *of_nodes,
        *missing,
        *ledger.notes,
        *inventory.notes(nodes),
        *sight.notes(seen, "what failures lost"),
    )
    record_ = record(ledger) | {"node_hours": node_hours, "notes": notes} | sight.record(seen)
    sheet = sheet_of([_bucket(bucket) for bucket in ledger.buckets])
    parts: dict[str, Any] = {"record": record_, "sheet": sheet}
    if not ledger.total_gpu_seconds:
        nothing = "".join(of_nodes) or "No GPU-hours are known in this selection."
        if not of_nodes and seen.none and seen.jobs_unknown:
            nothing = sight.refused("Where GPU-hours went", seen)
        return Answer(nothing, (), (_missing(ask, selection),), ledger.notes, **parts)
    return Answer(
        sentence(ledger),
        ledger_parts.headlines(ledger, selection, idle_rests_on=nodes.idle_rests_on),
        (
            waterfall(ledger, selection),
            by_bucket(ledger, selection),
            by_cause(ledger, selection, ask(cause_titles)),
        ),
        (
            *((sight.refused(LOSSES, seen),) if seen.none else ()),
            *_of_selection(ledger, selection),
            *notes,
            *_untraced(ledger),
        ),
        (*meanings().values(), of_efficiency.SUMS),
        **parts,
    )


def sentence(ledger: GoodputLedger) -> str:
    """How much was productive, and how much did failures take?"""
    productive, lost = ledger.bucket("productive"), ledger.bucket("lost_work")
    held = "" if ledger.covers_fleet else " that jobs held"
    total = numbers.number(ledger.total_gpu_hours)
    if productive is None or lost is None:
        return f"{total} GPU-hours{held}."
    share, spread = productive.ratio, numbers.spread(lost.gpu_hours)
    bounds = f" ({numbers.percent_interval(share)})" if share.has_width else ""
    kept = f"{numbers.percent(share.value)} of {total} GPU-hours{held} were productive{bounds}"
    if lost.gpu_hours.value is None:
        return f"{kept}; {LOSSES[:1].lower()}{LOSSES[1:]} {sight.BASIS}."
    if not lost.gpu_hours.upper:
        return f"{kept}; no work is known to be lost to failures."
    if lost.bounded:
        between = numbers.bounds(lost.gpu_hours)
        return f"{kept}; {between} were lost to failures, as attempts before a requeue are missing."
    bounds = f" ({spread})" if spread else ""
    return f"{kept}; {numbers.number(lost.gpu_hours.value)} were lost to failures{bounds}."


def waterfall(ledger: GoodputLedger, selection: Selection) -> Chart:
    """From capacity to productive; a bar opens its rows."""
    return Chart(
        "efficiency.ledger_waterfall",
        "Where did every GPU-hour go?",
        "What each bucket takes off all GPU-hours, down to those that were productive. The values "
        "stand in the table of buckets.",
        (ledger,),
        "ledger",
        rows=ledger.table(),
        opens=Part("Rows behind the bucket", behind, (selection,), ("mark",)),
    )


def by_bucket(ledger: GoodputLedger, selection: Selection) -> Table:
    """Every bucket; bounds where it is estimated, cost where a price is known."""
    total = f"{numbers.number(ledger.total_gpu_hours)} GPU-hours in all. "
    cost = Column("cost", f"Cost ({ledger.currency})".replace(" ()", ""), "number")
    described = (
        field("bucket", "Bucket", of="kind.title"),
        field("gpu_hours", "GPU-hours", "number", "gpu_hours.value"),
        *_BOUNDS,
        field("ratio", "Share", "ratio", "ratio.value"),
        *((cost,) if ledger.currency is not None else ()),
        field("name", "Bucket in SQL", of="bucket", shown=False),
    )
    return Rows(described, ledger.buckets).table(
        "gpu_hours",
        "GPU-hours by bucket",
        empty="No GPU-hours are known.",
        note=f"{total}What has no bounds is as recorded."
        + (f" {untold.BOUNDED}" if ledger.bounded else ""),
        opens=Part("Rows behind the bucket", behind, (selection,), ("name",)),
    )


def by_cause(ledger: GoodputLedger, selection: Selection, titles: Mapping[str, str]) -> Table:
    """Lost work by cause."""
    lost = ledger.bucket("lost_work")
    known = lost is None or lost.gpu_hours.value is not None
    described = (
        field("loss", "Loss", of=lambda loss: BUCKETS[loss.bucket].title),
        field("cause", "Cause", of=lambda loss: _cause(loss, titles)),
        field("attempts", "Attempts", "count", "n_attempts"),
        field("gpu_hours", "GPU-hours", "number", "gpu_hours.value"),
        *_BOUNDS,
        field("bucket", "Bucket in SQL", shown=False),
        field("cause_name", "Cause in SQL", of="cause", shown=False),
    )
    return Rows(described, ledger.losses).table(
        "lost_work",
        "Lost work by cause",
        empty="No attempt is known to have lost work to failures or preemption."
        if known
        else f"{LOSSES} {sight.BASIS}.",
        opens=Part("Rows behind the loss", behind_loss, (selection,), ("bucket", "cause_name")),
    )


def _cause(loss: Loss, titles: Mapping[str, str]) -> str:
    """What caused a loss, in words."""
    return WITHOUT_CAUSE[loss.bucket] if loss.cause is None else titles.get(loss.cause, loss.cause)


def record(ledger: GoodputLedger) -> dict[str, Any]:
    """The JSON of the command."""
    return {
        "definition": DEFINITION,
        "total_gpu_hours": ledger.total_gpu_hours,
        "total_gpu_seconds": ledger.total_gpu_seconds if ledger.known else None,
        "buckets": [_bucket(each) for each in ledger.buckets],
        "runtime_goodput": ledger.runtime_goodput,
        "losses": ledger.losses,
        LOST_KEY: lost_to_failures(ledger),
        "lost_if_unexplained_count_gpu_hours": ledger.if_unexplained_count,
        "goodput_loss_by_30_minute_rule": {
            "first_order_gpu_hours": ledger.rule_first_order_gpu_hours,
            "second_order_gpu_hours": ledger.rule_second_order_gpu_hours,
        },
        "costliest_cause": costliest_cause(ledger),
        "currency": ledger.currency,
        "notes": ledger.notes,
    }


def _bucket(bucket: Bucket) -> dict[str, Any]:
    """One bucket; bounds in GPU-hours."""
    return {
        "bucket": bucket.bucket,
        "gpu_hours": bucket.gpu_hours.value,
        "ratio": bucket.ratio.value,
        "lower": bucket.gpu_hours.lower,
        "upper": bucket.gpu_hours.upper,
        "conf_level": bucket.gpu_hours.conf_level,
        "basis": _rests_on(bucket),
        "n": bucket.gpu_hours.n,
        "gpu_seconds": None if bucket.gpu_hours.value is None else bucket.gpu_seconds,
        "estimated": bucket.kind.estimated,
        "cost": bucket.cost,
        "goodput_term": bucket.kind.goodput_term,
    }


def _rests_on(bucket: Bucket) -> str:
    """What the bounds of a bucket are: recorded (none), estimated, assumed, or what attempts
    without a record may change.
    """
    if bucket.bounded:
        return "bounds"
    if bucket.gpu_hours.assumed:
        return "assumed"
    if bucket.gpu_hours.value is None:
        return "unknown"
    return "estimated" if bucket.gpu_hours.has_width else "recorded"


def _of_selection(ledger: GoodputLedger, selection: Selection) -> Iterator[str]:
    """What the filters leave out, and what the period takes in."""
    if not ledger.covers_fleet:
        yield JOBS_ALONE
        yield WHATEVER_JOBS
    ends = (selection.from_at, selection.to_at)
    if any(at is not None and at.astimezone(UTC).time() != MIDNIGHT for at in ends):
        yield WHOLE_DAYS


def _untraced(ledger: GoodputLedger) -> Iterator[str]:
    """That no straggler is known where no run was traced."""
    straggler = ledger.bucket("straggler")
    if straggler is not None and not straggler.gpu_hours.upper:
        yield NO_TRACES


def meanings() -> dict[str, Term]:
    """What each bucket means, and Google's term for it, by its name in SQL."""
    return {
        name: Term(
            kind.title,
            f"{kind.meaning} {'Estimated' if kind.estimated else 'As recorded'}; Google's term: "
            f"`{kind.goodput_term or OUTSIDE}`.",
            unit="GPU-h",
            of_column=True,
            pages=("ledger",),
        )
        for name, kind in BUCKETS.items()
    }


def _missing(ask: Ask, selection: Selection) -> Missing:
    """Nothing ran in the selection, no attempt says its GPUs, or no job is known at all."""
    everything = Selection(cluster=selection.cluster)
    seen = ask(sight.sight, selection.days)
    if seen.beyond:
        return sight.missing("ledger", "Where GPU-hours went", seen)
    if ask(measured, everything).total_gpu_seconds:
        return Missing("ledger", *NOTHING_RAN)
    if "jobs" in set(ask(fleet.coverage_days, everything)["source"]):
        return Missing(
            "ledger",
            "No attempt says how many GPUs it had.",
            "The ledger divides GPU-hours, and there are none to divide. Where jobs have GPUs, the "
            "same records with AllocTRES fill it:",
            sight.JOBS,
        )
    return Missing(
        "ledger",
        "Failures of nodes are known here, but no jobs.",
        "Where GPU-hours went needs the scheduler's records:",
        sight.JOBS,
    )
