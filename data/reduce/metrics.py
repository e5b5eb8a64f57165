"""Samples of metrics to minutes and hours, as expressions that DuckDB and Spark both compile.

Times are whole microseconds since 1970 and "nothing" of cluster, GPU and labels is an empty text,
so that groups and joins mean the same on either engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from data.metric_kinds import XID_GAUGE

if TYPE_CHECKING:
    from collections.abc import Collection

    import ibis.expr.types as ir

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
SERIES = ("cluster", "node", "gpu", "metric", "labels")
SAMPLE = dict.fromkeys(SERIES, "string") | {"at_us": "int64", "value": "float64"}
"""Column -> type of what is reduced."""
QUANTILES = {"p05": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Column -> quantile: exact, linear between the two nearest values."""
_AGGREGATE = dict.fromkeys(SERIES, "string") | {
    "begin_us": "int64",
    "n": "int64",
    **dict.fromkeys(("minimum", "mean", "maximum", "last"), "float64"),
    "last_us": "int64",
    "seconds": "int64",
    "quantiles": "array<float64>",
}
_INCREASE = dict.fromkeys(SERIES, "string") | {"begin_us": "int64", "increase": "float64"}
_KIND = {"metric": "string", "is_counter": "boolean", "unit": "string", "holds_at_most": "float64"}
_SECONDS = 59


@ibis.udf.agg.builtin(name="bit_or")
def _bit_or(bits: int) -> int:  # type: ignore[empty-body]
    """All bits of a group."""


@ibis.udf.agg.builtin(name="max_by")
def _last(value: float, at_us: int) -> float:  # type: ignore[empty-body]
    """The value of the greatest time; half of the work of a sorted first value."""


def samples() -> ir.Table:
    """The samples of one stretch of time."""
    return ibis.table(SAMPLE, name="samples")


def once(found: ir.Table) -> ir.Table:
    """One sample a series and time: of several the greatest, which the merge of a store keeps."""
    return found.group_by([*SERIES, "at_us"]).agg(value=found.value.max())


def begin(at_us: ir.IntegerColumn, width_us: int) -> ir.IntegerColumn:
    """Begin of the minute or hour, exactly; before 1970 too."""
    return at_us - ((at_us % width_us) + width_us) % width_us


def aggregates(found: ir.Table, width_us: int) -> ir.Table:
    """Number, extremes, mean, last value and quantiles of each series by minute or hour.

    `seconds` has a bit for each second of a minute in which a sample lies: as many bits as samples
    of a minute prove that no two of them are of one time.
    """
    value, at_us = found.value, found.at_us
    second = ((at_us - begin(at_us, MINUTE_US)) / 1_000_000).floor().cast("int32")
    return found.group_by([*SERIES, begin(at_us, width_us).name("begin_us")]).agg(
        n=found.count(),
        minimum=value.min(),
        mean=value.mean(),
        maximum=value.max(),
        last=_last(value, at_us),
        last_us=at_us.max(),
        seconds=_bit_or(ibis.literal(1 << _SECONDS, "int64") >> second),
        quantiles=value.quantile(list(QUANTILES.values())),
    )


def increases(found: ir.Table, counters: Collection[str]) -> ir.Table:
    """By how much each counter rose, by minute.

    The sum of value - before, or of the value where it is less than before (it began again), over
    samples with another one at most an hour before them. Table `before` holds the last samples of
    the hour before these.
    """
    ours = found.filter(found.metric.isin(sorted(counters)))
    both = ours.select(*SAMPLE).union(ibis.table(SAMPLE, name="before"))
    order = ibis.window(group_by=[both[name] for name in SERIES], order_by=both.at_us)
    lagged = both.mutate(before=both.value.lag().over(order), before_us=both.at_us.lag().over(order))
    near = lagged.filter(lagged.before_us + HOUR_US >= lagged.at_us)
    step = ibis.ifelse(near.value < near.before, near.value, near.value - near.before)
    stepped = near.mutate(step=step)
    return stepped.group_by([*SERIES, begin(stepped.at_us, MINUTE_US).name("begin_us")]).agg(
        increase=stepped.step.sum()
    )


def finished(aggregated: str, width_us: int, called: str) -> ir.Table:
    """The rows that are written: aggregates with increase, whether it may be more, and unit.

    Parameters
    ----------
    aggregated : str
        Table of what `aggregates` gave.
    width_us : int
        Width of its minutes or hours; table `increased` holds increases by minute.
    called : str
        Name of the column of their begin.
    """
    found = ibis.table(_AGGREGATE, name=aggregated)
    rose = ibis.table(_INCREASE, name="increased")
    kind = ibis.table(_KIND, name="metric_kind")
    summed = rose.group_by([*SERIES, begin(rose.begin_us, width_us).name("begin_us")]).agg(
        increase=rose.increase.sum()
    )
    joined = found.left_join(summed, [*SERIES, "begin_us"]).join(kind, "metric")
    at_least = (joined.maximum >= joined.holds_at_most).fill_null(False)
    return joined.select(
        *(joined[name].nullif("").name(name) for name in SERIES),
        joined.begin_us.name(called),
        *(joined[name] for name in ("n", "minimum", "mean", "maximum", "last", "last_us")),
        joined.increase,
        ibis.ifelse(joined.is_counter, at_least, ibis.null("boolean")).name("at_least"),
        joined.unit,
        *(joined.quantiles[place].name(name) for place, name in enumerate(QUANTILES)),
    ).order_by([*SERIES, called])


def last_of_counters(since_us: int, counters: Collection[str]) -> ir.Table:
    """The last sample of each counter from a time on, by the minutes in table `minutes`."""
    found = ibis.table(_AGGREGATE, name="minutes")
    late = found.filter(found.metric.isin(sorted(counters)) & (found.last_us >= since_us))
    return late.group_by(list(SERIES)).agg(
        at_us=late.last_us.max(), value=_last(late["last"], late.last_us)
    )


def changes(found: ir.Table) -> ir.Table:
    """Samples of the gauge of the last XID at which it changes, and those before and after gaps.

    Of each stretch of one value first and last sample, so that what follows from the changes, and
    from when they were not yet, is what follows from all samples.
    """
    gauge = found.filter(found.metric == XID_GAUGE)
    order = ibis.window(group_by=[gauge[name] for name in SERIES], order_by=gauge.at_us)
    seen = gauge.mutate(before=gauge.value.lag().over(order), after=gauge.value.lead().over(order))
    kept = seen.filter(
        seen.before.isnull() | seen.after.isnull()
        | (seen.before != seen.value) | (seen.after != seen.value)
    )  # fmt: skip
    return kept.select(
        *(kept[name].nullif("").name(name) for name in SERIES), kept.at_us, kept.value
    ).order_by([*SERIES, "at_us"])
