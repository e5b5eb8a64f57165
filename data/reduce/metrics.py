"""Samples of metrics to minutes and hours, as expressions that DuckDB and Spark both compile.

Times are whole microseconds since 1970 and "nothing" of cluster, GPU and labels is an empty text,
so that groups and joins mean the same on either engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from data.metric_kinds import XID_GAUGE

if TYPE_CHECKING:
    import ibis.expr.types as ir

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
SERIES = ("cluster", "node", "gpu", "metric", "labels")
"""What samples belong to."""
SCANNED = dict.fromkeys(SERIES, "string") | {"at_us": "int64", "value": "float64"}
"""Column -> type of samples as they are scanned."""
QUANTILES = {"p05": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Column -> quantile: exact, linear between the two nearest values."""
_KIND = {"metric": "string", "is_counter": "boolean", "unit": "string", "holds_at_most": "float64"}
_KNOWN = {"series": "int64"} | dict.fromkeys(SERIES, "string") | _KIND
_SAMPLE = {"series": "int64", "at_us": "int64", "value": "float64"}
_AGGREGATE = {
    "series": "int64",
    "begin_us": "int64",
    "n": "int64",
    **dict.fromkeys(("minimum", "mean", "maximum", "last"), "float64"),
    "last_us": "int64",
    "seconds": "int64",
    "quantiles": "array<float64>",
}
WANTED = {"cluster": "string", "node": "string"} | dict.fromkeys(
    ("host", "hour_us", "from_us", "until_us", "place"), "int64"
)
"""Column -> type of the stretches of which samples are kept, by parts of an hour."""
_INCREASE = {"series": "int64", "begin_us": "int64", "increase": "float64"}
_SECONDS = 59
"""Greatest second of a minute."""


@ibis.udf.agg.builtin(name="bit_or")  # type: ignore[untyped-decorator]
def _bit_or(bits: int) -> int:  # type: ignore[empty-body]
    """All bits of a group."""


@ibis.udf.agg.builtin(name="max_by")  # type: ignore[untyped-decorator]
def _last(value: float, at_us: int) -> float:  # type: ignore[empty-body]
    """The value of the greatest time; half of the work of a sorted first value."""


def series() -> ir.Table:
    """Each series of the samples of a stretch of time, with a number and what its metric is.

    Numbers in place of five texts halve the work of all that follows.
    """
    scanned = ibis.table(SCANNED, name="scanned")
    kind = ibis.table(_KIND, name="metric_kind")
    numbered = scanned.select(*SERIES).distinct().mutate(series=ibis.row_number().cast("int64"))
    return numbered.join(kind, "metric").select(*_KNOWN)


def samples() -> ir.Table:
    """The samples of a stretch of time, by number of their series."""
    scanned, known = ibis.table(SCANNED, name="scanned"), _known()
    return scanned.join(known, list(SERIES)).select(*_SAMPLE)


def once() -> ir.Table:
    """One sample a series and time: of several the greatest, which the merge of a store keeps."""
    found = _samples()
    return found.group_by(["series", "at_us"]).agg(value=found.value.max())


def aggregates(width_us: int) -> ir.Table:
    """Number, extremes, mean, last value and quantiles of each series by minute or hour.

    `seconds` has a bit for each second of a minute in which a sample lies: as many bits as samples
    of a minute prove that no two of them are of one time.
    """
    found = _samples()
    value, at_us = found.value, found.at_us
    second = ((at_us - _begin(at_us, MINUTE_US)) / 1_000_000).floor().cast("int32")
    return found.group_by(["series", _begin(at_us, width_us).name("begin_us")]).agg(
        n=found.count(),
        minimum=value.min(),
        mean=value.mean(),
        maximum=value.max(),
        last=_last(value, at_us),
        last_us=at_us.max(),
        seconds=_bit_or(ibis.literal(1 << _SECONDS, "int64") >> second),
        quantiles=value.quantile(list(QUANTILES.values())),
    )


def increases() -> ir.Table:
    """By how much each counter rose, by minute.

    The sum of value - before, or of the value where it is less than before (it began again), over
    samples with another one at most an hour before them. Table `before` holds the last samples of
    the hour before these.
    """
    found, known = _samples(), _known()
    counters = known.filter(known.is_counter)
    ours = found.semi_join(counters, "series").select(*_SAMPLE)
    earlier = ibis.table(SCANNED, name="before").join(counters, list(SERIES)).select(*_SAMPLE)
    both = ours.union(earlier)
    order = ibis.window(group_by=both.series, order_by=both.at_us)
    lagged = both.mutate(
        before=both.value.lag().over(order), before_us=both.at_us.lag().over(order)
    )
    near = lagged.filter(lagged.before_us + HOUR_US >= lagged.at_us)
    step = ibis.ifelse(near.value < near.before, near.value, near.value - near.before)
    stepped = near.mutate(step=step)
    return stepped.group_by(["series", _begin(stepped.at_us, MINUTE_US).name("begin_us")]).agg(
        increase=stepped.step.sum()
    )


def finished(aggregated: str, width_us: int, called: str) -> ir.Table:
    """The rows that are written: aggregates with increase, whether it may be more, and unit.

    Parameters
    ----------
    aggregated : str
        Table of what `aggregates` gave; table `increased` holds increases by minute.
    width_us : int
        Width of its minutes or hours.
    called : str
        Name of the column of their begin.
    """
    found = ibis.table(_AGGREGATE, name=aggregated)
    rose = ibis.table(_INCREASE, name="increased")
    summed = rose.group_by(["series", _begin(rose.begin_us, width_us).name("begin_us")]).agg(
        increase=rose.increase.sum()
    )
    joined = found.left_join(summed, ["series", "begin_us"]).join(_known(), "series")
    at_least = (joined.maximum >= joined.holds_at_most).fill_null(False)
    return joined.select(
        *_stated(joined),
        joined.begin_us.name(called),
        *(joined[name] for name in ("n", "minimum", "mean", "maximum", "last", "last_us")),
        joined.increase,
        ibis.ifelse(joined.is_counter, at_least, ibis.null("boolean")).name("at_least"),
        joined.unit,
        *(joined.quantiles[place].name(name) for place, name in enumerate(QUANTILES)),
    ).order_by([*SERIES, called])


def last_of_counters() -> ir.Table:
    """The last sample of each counter, by the minutes in table `minutes`."""
    found, known = ibis.table(_AGGREGATE, name="minutes"), _known()
    late = found.join(known.filter(known.is_counter), "series")
    return late.group_by(list(SERIES)).agg(
        at_us=late.last_us.max(), value=_last(late["last"], late.last_us)
    )


def changes() -> ir.Table:
    """Samples of the gauge of the last XID at which it changes, and those before them.

    Of each stretch of one value first and last sample, so that what follows from the changes, and
    from when they were not yet, is what follows from all samples.
    """
    found, known = _samples(), _known()
    gauge = found.join(known.filter(known.metric == XID_GAUGE), "series")
    order = ibis.window(group_by=gauge.series, order_by=gauge.at_us)
    seen = gauge.mutate(before=gauge.value.lag().over(order), after=gauge.value.lead().over(order))
    kept = seen.filter(
        seen.before.isnull() | seen.after.isnull()
        | (seen.before != seen.value) | (seen.after != seen.value)
    )  # fmt: skip
    return kept.select(*_stated(kept), kept.at_us, kept.value).order_by([*SERIES, "at_us"])


def kept() -> ir.Table:
    """Samples of the stretches in table `wanted`, codes of XIDs aside, with the place of theirs."""
    found, known, wanted = _samples(), _known(), ibis.table(WANTED, name="wanted")
    hosts = wanted.select("cluster", "node", "host").distinct()
    ours = known.filter(known.metric != XID_GAUGE).join(hosts, ["cluster", "node"])
    by_host = found.join(ours.select("series", "host"), "series")
    placed = by_host.mutate(hour_us=_begin(by_host.at_us, HOUR_US))
    stretches = wanted.select("host", "hour_us", "from_us", "until_us", "place")
    near = placed.join(stretches, ["host", "hour_us"])
    inside = near.filter((near.at_us >= near.from_us) & (near.at_us < near.until_us))
    stated = inside.select("series", "at_us", "value", "place").join(known, "series")
    return stated.select(*_stated(stated), stated.at_us, stated.value, stated.place)


def _samples() -> ir.Table:
    """Table `samples`."""
    return ibis.table(_SAMPLE, name="samples")


def _known() -> ir.Table:
    """Table `series`."""
    return ibis.table(_KNOWN, name="series")


def _stated(rows: ir.Table) -> list[ir.Value]:
    """What a series is, nothing being NULL."""
    return [rows[name].nullif("").name(name) for name in SERIES]


def _begin(at_us: ir.IntegerColumn, width_us: int) -> ir.IntegerColumn:
    """Begin of the minute or hour, exactly; before 1970 too."""
    return at_us - ((at_us % width_us) + width_us) % width_us
