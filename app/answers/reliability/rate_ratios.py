"""Do nodes of one driver, firmware, batch, GPU model or rack fail more often than others?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.reliability.rate_regression import ALL_OTHERS, RateComparison, rate_ratios
from app.answers.content import Answer, Chart, Missing, Number, counted, estimated
from app.answers.described import CSV, JSON, Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability
from data.queries import fact_rates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.reliability.rate_regression import LevelRate
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

FACTS = ("driver", "firmware", "batch", "gpu_model", "rack")
"""Facts that are offered first."""
ADJUSTED = ("age", "size")
"""What else differs between nodes and can be adjusted for, beside the cluster."""
MOST_LEVELS = 500
"""Levels up to which a fact groups nodes."""
MOST_ROWS = 50
MOST_UNUSUAL = 5
"""Nodes that a sentence names."""
WIDE = 20.0
"""Upper over lower bound from which adjusting has left nothing to compare, where the counts would
have."""
PER_1000 = 1000.0
RATE = "rate_per_1000_node_days"
MISSING = Missing(
    "rate_ratios",
    "Nothing is known of the nodes by which their failure rates could be compared.",
    "Ingest facts about nodes, each with the time from which it holds:",
    (
        "faultline ingest node-facts facts.csv   # node,from_at,driver,firmware,batch,gpu_model",
        "scontrol show node --json > nodes.json",
        "faultline ingest scontrol-nodes nodes.json",
    ),
)
NOTHING_RAN = Missing(
    "rate_ratios",
    "No node-days are known of the nodes in the period, so no rate is.",
    "Ingest the scheduler's records of jobs with their nodes, or choose a longer period:",
    ("faultline ingest sacct sacct.txt",),
)


@dataclass(frozen=True)
class Compared:
    """Rates by one fact, and what could not be compared."""

    fact: str
    found: RateComparison
    known: tuple[tuple[str, int, int], ...]
    """Facts of the store: key, values, nodes."""
    n_changed: int
    """Nodes on which it changed."""
    unnamed: int
    """Failures that name no node."""
    without: int
    """Failures of nodes of which the fact is not known."""
    without_node_days: float
    n_levels: int
    """Values of the fact; of too many none is compared."""
    age_unknown: float
    """Share of the exposure of which the node's age is not known; NaN without exposure."""


def compared(
    store: Store,
    selection: Selection,
    fact: str,
    *,
    adjust: tuple[str, ...] = ADJUSTED,
    conf_level: float = CONF_LEVEL,
) -> Compared:
    """Failure rates of the levels of a fact, adjusted."""
    rows = fact_rates.rows(store, selection, fact)
    node, level, failures, held = (
        rows[name] for name in ("node", "level", "failures", "exposure_node_days")
    )
    named = [each is not None for each in node]
    has = [each is not None for each in level]
    kept = [a and b for a, b in zip(named, has, strict=True)]
    of_node = [f"{c}/{n}" for c, n, k in zip(rows["cluster"], node, kept, strict=True) if k]
    levels = [str(each) for each, k in zip(level, kept, strict=True) if k]
    n_levels = len(set(levels))
    factors = {name: rows[name][kept].astype(str).tolist() for name in ("cluster", *adjust)}
    pairs = dict.fromkeys(zip(of_node, levels, strict=True))
    without = [a and not b for a, b in zip(named, has, strict=True)]
    total = float(held.sum())
    unaged = float(held[rows["age"] == "unknown"].sum())
    return Compared(
        fact,
        rate_ratios(
            of_node,
            levels if n_levels <= MOST_LEVELS else [f"one of {n_levels:,}"] * len(levels),
            failures[kept].astype(float),
            held[kept],
            factors=factors,
            conf_level=conf_level,
        ),
        tuple(fact_rates.known(store, selection)),
        len(pairs) - len({one for one, _ in pairs}),
        int(failures[[not each for each in named]].sum()),
        int(failures[without].sum()),
        float(held[without].sum()),
        n_levels,
        unaged / total if total else float("nan"),
    )


def choices(store: Store, selection: Selection) -> tuple[str, ...]:
    """Facts with several values, those offered first in front; what a page lets choose."""
    several = [key for key, values, _ in fact_rates.known(store, selection) if values > 1]
    return (*(f for f in FACTS if f in several), *(k for k in several if k not in FACTS))


def answer(
    ask: Ask,
    selection: Selection,
    fact: str,
    *,
    adjust: tuple[str, ...] = ADJUSTED,
    conf_level: float = CONF_LEVEL,
) -> Answer:
    """Which levels fail more or less often, and is that more than chance?"""
    fact = fact.lower()
    one = ask(compared, selection, fact, adjust=adjust, conf_level=conf_level)
    levels = one.found.levels
    rows = _rows(fact, levels)
    table = rows.table("rate_ratios", f"Failure rate by {_words(fact)}")
    empty = _missing(one)
    drawn: Chart | Missing = Chart(
        "reliability.rate_ratios",
        f"Rate ratio by {_words(fact)}",
        f"Rate ratios of {numbers.counted(len(levels), 'level')} with intervals. The values stand "
        "in the table.",
        (one.found,),
        options={"by": _words(fact)},
    )
    return Answer(
        sentence(one),
        tuple(_headlines(one)),
        (empty,) if empty else (drawn, table.first(MOST_ROWS)),
        notes=tuple(_notes(one)),
        record=record(one, rows),
        sheet=rows.sheet(),
    )


def sentence(one: Compared) -> str:
    """Who fails more often."""
    found, fact = one.found, _words(one.fact)
    if not found.levels:
        return f"No {fact} is known of nodes with records in this period: ingest node-facts."
    if one.n_levels > MOST_LEVELS:
        return f"There are {one.n_levels:,} values of {fact}; up to {MOST_LEVELS} are compared."
    if len(found.levels) == 1:
        (only,) = found.levels
        return f"All nodes whose {fact} is known have {only.level}: there is nothing to compare."
    if found.frailty is None:
        return f"Too few nodes to tell whether their failure rates differ by {fact}."
    if not found.apart:
        return f"No {fact} fails more or less often than {_reference(one)} beyond chance."
    worst = max(found.apart, key=lambda each: abs(_log(each)))
    more = len(found.apart) - 1
    others = f"; {numbers.counted(more, 'other')} differ too" if more else ""
    ratio = worst.ratio
    if ratio.value is None:
        said = f"fails at least {numbers.number(ratio.lower)} times as often as"
    elif not ratio.value:
        said = f"has no failure and fails at most {numbers.number(ratio.upper)} times as often as"
    else:
        said = f"fails {numbers.number(ratio.value)} times as often as"
    return f"{fact.capitalize()} {worst.level} {said} {_reference(one)}{others}."


def record(one: Compared, rows: Rows) -> dict[str, Any]:
    """What JSON prints."""
    return {
        "by": one.fact,
        "reference": one.found.reference,
        "adjusted_for": list(one.found.adjusted_for),
        "frailty": one.found.frailty,
        "dispersion": one.found.dispersion,
        "levels": rows.records(),
        "unusual_nodes": [asdict(each) for each in one.found.unusual],
        "failures_of_unknown_level": one.without,
        "node_days_of_unknown_level": one.without_node_days,
        "failures_without_node": one.unnamed,
        "facts": [{"key": key, "values": n, "nodes": nodes} for key, n, nodes in one.known],
    }


def _words(fact: str) -> str:
    return "GPU model" if fact == "gpu_model" else fact.replace("_", " ")


def _reference(one: Compared) -> str:
    return one.found.reference or ALL_OTHERS


def _log(level: LevelRate) -> float:
    """How far a ratio lies from 1, by its bound where it has no value."""
    from math import log

    ratio = level.ratio.value or (
        level.ratio.upper if level.ratio.value == 0 else level.ratio.lower
    )
    return log(ratio) if ratio else 0.0


def _rows(fact: str, levels: Sequence[LevelRate]) -> Rows:
    """A row a level of the fact."""
    described = (
        Column("level", _words(fact).capitalize() if fact != "gpu_model" else "GPU model"),
        field("nodes", "Nodes", "count", "n_nodes"),
        field("failures", "Failures", "count", term=of_reliability.LEVEL_FAILURES),
        field("exposure_node_days", "Exposure (node-days)", "number", "exposure"),
        field(
            RATE,
            "Per 1,000 node-days",
            "rate",
            lambda level: level.rate.scaled(PER_1000),
            names={"csv": (RATE,)},
            term=of_reliability.LEVEL_RATE,
        ),
        field(
            "ratio",
            "Rate ratio",
            "rate",
            names={"csv": ("ratio", "ratio_lower", "ratio_upper", "conf_level")},
            term=of_reliability.RATE_RATIO,
        ),
        Column("crude_ratio", "Not adjusted", "number", none="the reference has no failure"),
        field("p_value", on=CSV),
        Column("stands_out", "More than chance", "flag"),
        field("p_value", on=JSON),
    )
    return Rows(described, levels)


def _missing(one: Compared) -> Missing | None:
    """What to ingest where there is nothing to show."""
    if one.found.levels and any(each.exposure for each in one.found.levels):
        return None
    if any(key == one.fact for key, _, _ in one.known):
        return NOTHING_RAN
    if not one.known:
        return MISSING
    there = ", ".join(key for key, _, _ in one.known)
    remedy = f"Known are {there}. Ingest it with the time from which it holds:"
    finding = f"No {_words(one.fact)} is known of any node."
    return Missing("rate_ratios", finding, remedy, MISSING.commands[:1])


def _headlines(one: Compared) -> Iterator[Number]:
    found = one.found
    if len(found.levels) < 2:
        return
    tested = sum(each.p_value is not None for each in found.levels)
    if tested:
        yield counted(of_reliability.LEVELS_APART, len(found.apart), of=tested, noun="levels")
    first = next((each for each in found.levels if each.level != found.reference), None)
    if first is not None:
        yield estimated(
            of_reliability.RATE_RATIO,
            "ettr",
            first.ratio,
            more=f", {first.level} to {_reference(one)}",
        )


def _notes(one: Compared) -> Iterator[str]:
    """What the ratios rest on."""
    found, fact = one.found, _words(one.fact)
    if len(found.levels) > 1:
        adjusted = " and ".join(found.adjusted_for)
        yield f"Adjusted for {adjusted}." if adjusted else "Not adjusted: nothing else differs."
        if found.frailty is None:
            yield (
                "How much nodes of one level differ cannot be told from so few, so that no "
                "interval is given."
            )
    yield from _unusual(one)
    if one.n_changed and len(found.levels) > 1:
        yield (
            f"On {numbers.counted(one.n_changed, 'node')} the {fact} changed, and time counts for "
            "what held. What else changed at the same time is in the ratio."
        )
    yield from _inseparable(one)
    if "age" not in found.adjusted_for and found.levels and one.age_unknown > 0:
        yield "The ages of nodes are not known (no inventory says when they were installed)."
    if one.without or one.without_node_days:
        yield (
            f"Of {numbers.counted(one.without, 'failure')} in "
            f"{numbers.number(one.without_node_days)} node-days the {fact} is not known: left out."
        )
    if one.unnamed:
        named = "names" if one.unnamed == 1 else "name"
        yield f"{numbers.counted(one.unnamed, 'failure')} {named} no node: left out."


def _unusual(one: Compared) -> Iterator[str]:
    """Which nodes are in no ratio, and where they are."""
    unusual = one.found.unusual
    if not unusual:
        return
    named = [
        f"{each.node} ({each.level}): {numbers.counted(each.failures, 'failure')}, usual is "
        f"{numbers.number(each.expected)}"
        for each in unusual[:MOST_UNUSUAL]
    ]
    more = len(unusual) - len(named)
    yield (
        f"{numbers.counted(len(unusual), 'node')} failed so much more often than the rest that "
        f"{'it says' if len(unusual) == 1 else 'they say'} nothing of their {_words(one.fact)}: in "
        f"counts and rates, in no ratio. {'; '.join(named)}{f'; {more} more' if more else ''}. "
        "Lemons judges them."
    )
    n_nodes = {each.level: each.n_nodes for each in one.found.levels}
    for level, n in Counter(each.level for each in unusual).most_common(1):
        if n > 2:
            yield (
                f"{n} of these {len(unusual)} have {_words(one.fact)} {level}, as "
                f"{n_nodes[level]} of all {sum(n_nodes.values())} nodes have."
            )


def _inseparable(one: Compared) -> Iterator[str]:
    """That levels coincide with what is adjusted for."""
    wide = [
        each.level
        for each in one.found.levels
        if each.ratio.lower and each.ratio.upper and each.failures >= 5
        and each.ratio.upper / each.ratio.lower > WIDE
    ]  # fmt: skip
    if wide:
        named = ", ".join(wide[:3])
        yield (
            f"{named}: nearly all of one {' or '.join(one.found.adjusted_for)}, so that the two "
            "cannot be told apart. With less adjusted for (`--adjust size`) the ratio is of both."
        )
