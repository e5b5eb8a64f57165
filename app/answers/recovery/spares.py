"""How many spare nodes does a job need, and what is the next one worth?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.recovery.spares import ENOUGH, Spares, enough_for, spares
from app.answers.content import Answer, Missing, Number, composed
from app.answers.described import Rows, field
from app.answers.reliability import availability, mttf
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_recovery
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.reliability.availability import OutAtOnce
    from app.answers.content import Block
    from app.ask import Ask
    from data.filters import Selection

WHICH = "How many spares a job needs"
KNOWN_NODES = 128
"""Of the job where no size is asked for and none is usual."""
TYPED = "stated"
MEASURED = "measured"
REPAIRED = "rate x repair"
UNKNOWN_RATE = Missing(
    "spares", "how often nodes fail is not known.", "State the share of time that a node is out:",
    ("faultline spares --nodes 128 --p-failure 0.0012",),
)  # fmt: skip
SPARES = (
    Column("spares", "Spares", "count"),
    field("p_enough", "Enough for, one by one", "ratio", of="enough"),
    field("p_enough_as_the_fleet_was", "As the fleet was", "ratio", of="measured",
          none="not known"),
    field("node_hours_saved", "The last one saves a day", "number", of="saves", unit="node-h"),
)  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """A job, and what is known of its nodes."""

    found: Spares
    fleet: OutAtOnce | None
    basis: str
    why: Missing | None


def answer(
    ask: Ask,
    selection: Selection,
    nodes: int | None = None,
    *,
    out_ratio: float | None = None,
    repair_hours: float | None = None,
    enough: float = ENOUGH,
    **chance: Any,
) -> Answer:
    """Spares of a job of so many nodes, else of the usual large one; `out_ratio` in place of what
    the fleet had, or `repair_hours` beside the rate at which its nodes fail; `chance` holds
    conf_level and seed.

    Raises
    ------
    DataError
        For a share that is none, or for both.
    """
    if out_ratio is not None and repair_hours is not None:
        raise DataError("--p-failure is the share of time that repairs make: leave one out")
    if not 0 < enough < 1:
        raise DataError(
            f"the share of time for which spares are enough must be in (0, 1), got {enough}"
        )
    if out_ratio is not None and not 0 <= out_ratio < 1:
        raise DataError(f"the share of time that a node is out must be in [0, 1), got {out_ratio}")
    if repair_hours is not None:
        rate = ask(mttf.measured, selection, **chance).rate.rate_per_1000_node_days
        share, at_once, basis = _out_for(rate, repair_hours), None, REPAIRED
        why = None if share.value is not None else UNKNOWN_RATE
    elif out_ratio is None:
        fleet = ask(availability.measured, selection, **chance)
        share, at_once, basis = fleet.ratios.unplanned, fleet.at_once, MEASURED
        why = availability.missing(fleet, selection)
    else:
        share = Estimate(out_ratio, out_ratio, out_ratio, chance.get("conf_level", CONF_LEVEL), 0)
        at_once, basis, why = None, TYPED, None
    nodes = nodes or _usual_nodes(ask, selection, at_once)
    asked = _Asked(spares(nodes, share, fleet=at_once, enough=enough), at_once, basis, why)
    rows = Rows(SPARES, asked.found.rows)
    per_node = ask(mttf.measured, selection).gpus_per_node
    return Answer(
        _sentence(asked),
        tuple(_headlines(asked)),
        tuple(_blocks(asked, rows)),
        notes=tuple(_notes(asked)),
        record={
            "nodes": asked.found.nodes,
            "out_ratio": asked.found.out_ratio,
            "out_ratio_basis": asked.basis,
            "enough_ratio": enough,
            "spares": asked.found.keep,
            "p_enough": _at_keep(asked.found),
            "keep_lower": asked.found.keep_at[0],
            "keep_upper": asked.found.keep_at[1],
            "keep_as_the_fleet_was": asked.found.keep_measured,
            "worth": asked.found.worth,
            "by_spares": [
                row | {"gpu_hours_saved": per_node and row["node_hours_saved"] * per_node}
                for row in rows.records()
            ],
            "reason": None if why is None else why.finding,
        },
        sheet=rows.sheet(),
    )


def _out_for(rate: Estimate, repair_hours: float) -> Estimate:
    """Share of its time that a node is out, which fails at a rate and takes so long to return."""

    def share(per_1000_node_days: float | None) -> float | None:
        if per_1000_node_days is None:
            return None
        out = per_1000_node_days / 1000.0 * repair_hours / 24.0
        return out / (1.0 + out)

    return Estimate(
        share(rate.value), share(rate.lower), share(rate.upper), rate.conf_level, rate.n
    )


def _at_keep(found: Spares) -> float | None:
    """Share of the time for which those that are enough are enough, if nodes go out one by one."""
    if found.keep is None or found.out_ratio.value is None:
        return None
    return enough_for(found.nodes, found.keep, found.out_ratio.value)


def _usual_nodes(ask: Ask, selection: Selection, fleet: OutAtOnce | None) -> int:
    """Nodes of the largest usual job; of the whole fleet where no job states GPUs."""
    gpus = ask(mttf.usual_size, selection)
    per_node = ask(mttf.measured, selection).gpus_per_node if gpus else None
    if gpus and per_node:
        return max(1, round(gpus / per_node))
    return fleet.nodes if fleet else KNOWN_NODES


def _nodes(asked: _Asked) -> str:
    return f"A job of {numbers.counted(asked.found.nodes, 'node')}"


def _sentence(asked: _Asked) -> str:
    found = asked.found
    if found.keep is None:
        why = asked.why.finding if asked.why else "the share of time out is not known."
        return f"{WHICH} cannot be judged: {why.removeprefix('Availability cannot be judged: ')}"
    share = numbers.percent(found.enough)
    kept = numbers.counted(found.keep, "spare")
    return f"{_nodes(asked)} needs {kept} for {share} of the time."


def _headlines(asked: _Asked) -> Iterator[Number]:
    found, fleet = asked.found, asked.fleet
    terms = (of_recovery.KEEP, of_recovery.KEEP_MEASURED, of_recovery.WORTH)
    if found.keep is None:
        for term in terms:
            yield Number(term, numbers.UNKNOWN, "cannot be judged")
        return
    low, high = found.keep_at
    n = numbers.count(found.out_ratio.n)
    if asked.basis == TYPED:
        interval, basis = "", "of a stated share"
    elif low is None or high is None:
        interval, basis = "", f"n = {n}"
    else:
        interval = f"{low} to {high}"
        basis = f"{interval} ({numbers.level(found.out_ratio)}), n = {n}"
    yield Number(terms[0], numbers.count(found.keep), basis, interval, n, found.keep, "spares")
    drawn = "" if fleet is None else f"drawn from {numbers.counted(fleet.nodes, 'node')}"
    if found.keep_measured is None:
        why = "the fleet is smaller" if fleet else "no fleet to draw from"
        yield composed(terms[1], numbers.UNKNOWN, why)
    else:
        keep = found.keep_measured
        yield composed(terms[1], numbers.count(keep), drawn, exact=keep, unit="spares")
    basis = "if nodes go out one by one" if found.keep_measured is None else drawn
    worth = found.worth
    yield composed(terms[2], numbers.count(worth), basis, exact=worth, unit="spares")


def _blocks(asked: _Asked, rows: Rows) -> Iterator[Block]:
    if asked.why is not None:
        yield asked.why
        return
    yield rows.table("spares", "Spares, and what the last one saves")


def _notes(asked: _Asked) -> Iterator[str]:
    found = asked.found
    if found.keep is None:
        return
    if asked.basis == TYPED:
        yield f"A node is out for {numbers.percent(found.out_ratio.value)} of its time, as stated."
    elif asked.basis == REPAIRED:
        yield (
            f"A node is out for {numbers.percent(found.out_ratio.value)} of its time "
            f"({numbers.percent(found.out_ratio.lower)} to "
            f"{numbers.percent(found.out_ratio.upper)}): as often as nodes of jobs fail, for as "
            "long as a repair is stated to take."
        )
    else:
        yield (
            f"A node was out unplanned for {numbers.percent(found.out_ratio.value)} of its time "
            f"({numbers.percent(found.out_ratio.lower)} to "
            f"{numbers.percent(found.out_ratio.upper)}), from out of service to return."
        )
    yield (
        "A job that lacks a node stands still: those spares are worth having that save it the most "
        "node-hours beyond the 24 a day that each takes."
    )
    if found.keep_measured is not None and found.keep_measured > found.keep:
        yield f"As the fleet was it needs {found.keep_measured}: nodes go out together."
    if asked.basis == MEASURED and asked.fleet is None:
        yield "How many nodes were out at once is told of one cluster: choose one."
