"""A period again without its worst nodes and with another checkpoint interval: what is regained?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.efficiency.buckets import uncounted_sentences
from analytics.efficiency.habits import habit_sentences
from analytics.efficiency.what_if import Change, WhatIf
from analytics.estimate import CONF_LEVEL
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Number, Sheet, Table, composed
from app.answers.described import quantities
from app.answers.efficiency import best_interval, ettr, left_out, untold
from app.answers.efficiency.played import played
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet.choices import last_whole
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_efficiency
from app.words.glossary.of_efficiency import BY_INTERVAL, BY_NODES, GIVEN_UP, REGAINED
from app.words.periods import Period
from data.errors import DataError
from data.queries import efficiency, exposure, fleet
from data.queries import what_if as queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.efficiency.best_interval import BestInterval
    from analytics.efficiency.what_if import Every
    from analytics.estimate import Estimate
    from analytics.reliability.sight import Sight
    from app.answers.efficiency.left_out import By, Chosen
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

MOST_RUNS = 20
UNNAMED = "in a cluster of these nodes no failure names a node, or no other node ran jobs"
NODES_UNKNOWN = f"{UNNAMED}, so what nodes left out regain is unknown"
ALIKE = 0.05
"""Relative difference up to which two intervals are about the same."""
PARTS = {"lost": "Lost work", "restart": "Restarts", "written": "Writing checkpoints"}
BUCKET_NAMES = {
    "lost_work": "Failure without evidence of a cause",
    "lost_work_preempted": "Preempted, not by a failure",
    "other": "Requeued by hand",
}
NODES = (
    *columns("node"),
    Column("verdict", "Judged then", none="was named", help=of_efficiency.JUDGED_THEN.definition),
    Column(
        "score", "Score then", "number", none="was named", help=of_efficiency.SCORE_THEN.definition
    ),
    Column("failures", "Failures", "count"),
    Column("usual", "Usual failures", "number", help=of_efficiency.USUAL_FAILURES.definition),
    Column("cost", "They cost", "number", "GPU-h", help=of_efficiency.THEY_COST.definition),
    Column("counted", "Counts by", "ratio", help=of_efficiency.COUNTS_BY.definition),
    Column("node_days", "In jobs", "number", "node-days"),
    Column("capacity", "Capacity", "number", "GPU-h", help=GIVEN_UP.definition),
    *columns("cluster", wide=("cluster",)),
    *columns(hidden=("start_at", "end_at")),
)
RUNS = (
    *columns("run_id", "name", "n_gpus"),
    Column("interruptions", "Interruptions", "count"),
    Column("by_nodes", "Without the nodes", "number", "GPU-h"),
    Column("by_interval", "By the interval", "number", "GPU-h"),
    Column("regained", "Regained", "number", "GPU-h"),
    *columns("cluster", wide=("cluster",)),
)
REPLAYED = (
    "Interruptions are taken at what they cost in the mean: half an interval where writing costs "
    "nothing, all work before the first checkpoint. So sums differ from the ledger's where "
    "training logs show when a run last saved."
)
TERMS = (REGAINED, BY_NODES, BY_INTERVAL, GIVEN_UP)


def habit_notes(store: Store) -> tuple[str, ...]:
    """How runs are taken to save."""
    notes = efficiency.ledger_notes(store)
    return habit_sentences({"several_nodes": notes["several_nodes"]})


def uncounted(store: Store, selection: Selection) -> tuple[str, ...]:
    """Attempts that may have been interrupted and are not counted."""
    notes = efficiency.notes_of(efficiency.ledger_notes(store), selection)
    hours = exposure.node_hours(store, selection)
    return (
        *untold.node_hours(hours, "what interruptions cost"),
        *untold.missing_attempts(store, selection),
        *uncounted_sentences(notes),
    )


@dataclass(frozen=True)
class Shown:
    """The result in words, numbers and tables."""

    ask: Ask
    selection: Selection
    wish: Wish
    chosen: Chosen
    found: WhatIf
    best: BestInterval | None

    @property
    def seen(self) -> Sight:
        """On which days of the period failures could be seen."""
        return self.ask(sight.sight, self.selection)

    @property
    def hours(self) -> float:
        """Length of the period, as far as records reach."""
        begin, end = self.selection.from_at, self.selection.to_at
        first_at, last_at = self.ask(fleet.extent)
        length: timedelta = min(end or last_at, last_at) - max(begin or first_at, first_at)
        return max(0.0, length / timedelta(hours=1))

    @property
    def gpus(self) -> dict[tuple[str, str], float]:
        """GPUs of the nodes left out, where they are known."""
        known = self.ask(queries.node_gpus, replace(self.selection.rows, partition=None))
        rows = zip(known["cluster"], known["node"], known["gpus"], strict=True)
        return {
            (cluster, node): float(n)
            for cluster, node, n in rows
            if (cluster, node) in self.chosen.nodes and not pd.isna(n)
        }

    @property
    def capacity(self) -> float | None:
        """GPU-hours of the nodes left out; None where the GPUs of one are not known."""
        known = self.gpus
        if len(known) < len(self.chosen.nodes):
            return None
        return sum(known.values()) * self.hours

    def sentence(self) -> str:
        """What would have been regained, by what?"""
        found, when = self.found, self.when()
        if not found.n_interruptions:
            if self.seen.without:
                return sight.refused("What could be regained", self.seen)
            return f"No interruption of a job is known in {when}: nothing can be regained."
        changed = self._changed()
        if not changed and self.chosen.nodes:
            return f"{when}: {NODES_UNKNOWN}."
        if not changed:
            return f"Nothing is changed: {when} as it was."
        hours = found.regained
        during = f"{'from' if ' to ' in when else 'in'} {when}"
        again = f"{', '.join(changed)}, {during}"
        if hours.value is None:
            why = "no run on several nodes was interrupted"
            return f"What is regained is unknown, {again}: {why}."
        more = hours.value < 0
        shown = _negative(hours) if more else hours
        spread = f" ({numbers.spread(shown)}{', assumed' if shown.assumed else ''})"
        spread = spread if shown.has_width else ""
        told, given = numbers.number(shown.value), self._given_up()
        if more:
            return f"{told} GPU-hours more would be lost{spread}{given}, {again}."
        return f"{told} GPU-hours regained{spread}{given}, {again}."

    def _given_up(self) -> str:
        """What the nodes left out could have run, unless others take their place."""
        capacity = self.capacity if self.chosen.nodes else None
        if self.found.by_nodes.value is None or capacity is None:
            return ""
        return f", {numbers.number(capacity)} given up"

    def when(self) -> str:
        """The period in words: a whole month by its name."""
        zone = self.ask(fleet.zone, self.selection.cluster)
        return Period(self.selection.from_at, self.selection.to_at, zone).words

    def _changed(self) -> list[str]:
        """What is otherwise than it was."""
        parts = []
        names = [node for _, node in self.chosen.nodes]
        if names and self.found.by_nodes.value is not None:
            parts.append(f"without {names[0] if len(names) == 1 else f'{len(names):,} nodes'}")
        if self.found.interval_min is not None:
            parts.append(f"with checkpoints every {_minutes(self.found.interval_min)}")
        return parts

    def numbers(self) -> Iterator[Number]:
        """Regained by both and by each, what is given up, the best interval of a job."""
        found = self.found
        if not found.n_interruptions:
            why = sight.basis(self.seen) if self.seen.without else "no interruption is known"
            yield Number(REGAINED, numbers.UNKNOWN, why, exact=found.regained)
            yield best_interval.number(self.best)
            return
        of = f"; of {numbers.number(found.as_was.value)} as it was"
        yield _hours(REGAINED, found.regained, f"{of}{self._money()}")
        if self.chosen.nodes:
            yield _hours(BY_NODES, found.by_nodes)
        if found.interval_min is not None:
            yield _hours(BY_INTERVAL, found.by_interval_left)
        if self.chosen.nodes:
            capacity = self.capacity
            nodes = numbers.counted(len(self.chosen.nodes), "node")
            basis = f"GPU-hours of {nodes}, unless spares take their place"
            yield composed(
                GIVEN_UP, numbers.number(capacity), basis, exact=capacity, unit="GPU-hours"
            )
        yield best_interval.number(self.best)

    def _money(self) -> str:
        """What the hours regained are worth, where one price is stated."""
        prices = self.ask(efficiency.prices)
        clusters = self.ask(fleet.distinct, "cluster")
        asked = [self.selection.cluster] if self.selection.cluster else clusters
        stated = {prices.get(str(each)) for each in asked}
        price = stated.pop() if len(stated) == 1 else None
        hours = self.found.regained
        if price is None or hours.value is None:
            return ""
        worth = hours.scaled(price[0]) if price[0] > 0 else hours
        return f"; {numbers.number(worth.value)} {price[1]}".rstrip()

    def blocks(self) -> Iterator[Any]:
        """The waterfall and the curve, then tables."""
        found = self.found
        if not found.n_interruptions:
            unseen = sight.missing("what_if", "What could be regained", self.seen)
            yield unseen if self.seen.without else NOTHING
            return
        yield Chart(
            "efficiency.what_if_waterfall",
            "What would the period have lost?",
            "GPU-hours that interruptions and checkpoints cost: as it was, without the nodes, with "
            "the interval. The values stand in the tables.",
            (self.steps(),),
            "what_if",
            captioned=True,
        )
        yield self.curve()
        if self.chosen.nodes:
            yield self._nodes()
        yield _split("parts", "By part", PARTS, found.parts)
        titles = self.ask(cause_titles)
        named = {cause: BUCKET_NAMES.get(cause, titles.get(cause, cause)) for cause in found.causes}
        note = "Lost work and restarts; writing has no cause."
        yield replace(
            _split("causes", "By cause of the interruption", named, found.causes), note=note
        )
        empty = "No run on several nodes gains anything."
        runs = found.runs.head(MOST_RUNS)
        yield Table("what_if_runs", "Runs that gain most", RUNS, runs, empty)

    def steps(self) -> tuple[tuple[str, Estimate], ...]:
        """Bars of the waterfall: what it was, what each change takes off, what is left."""
        found = self.found
        rows = [("As it was", found.as_was)]
        if self.chosen.nodes and found.by_nodes.value is not None:
            rows.append(("Without the nodes", found.by_nodes))
        if found.interval_min is not None:
            rows.append((f"Every {_minutes(found.interval_min)}", found.by_interval_left))
        return tuple(rows)

    def curve(self) -> Chart | Missing:
        """Cost by interval."""
        if not len(self.found.curve):
            finding = "No run on several nodes was interrupted."
            return Missing("lost_by_interval", finding, "So no interval is better than another.")
        return Chart(
            "efficiency.lost_by_interval",
            "Which interval costs least?",
            "Lost work, restarts and writing of runs on several nodes, all nodes in, by the "
            "interval at which they had saved; the band is its interval.",
            (self.found,),
            "lost_by_interval",
            captioned=True,
            rows=self.found.curve,
        )

    def _nodes(self) -> Table:
        """The nodes left out."""
        gpus = self.gpus
        rows = [
            (each.node, *self.chosen.why.get((each.cluster, each.node), (None, None)),
             each.failures, each.usual, each.cost, each.counted, each.node_days,
             _times(gpus.get((each.cluster, each.node)), self.hours), each.cluster,
             self.selection.from_at, self.selection.to_at)
            for each in self.found.nodes
        ]  # fmt: skip
        return Table("left_out", "Nodes left out", NODES, rows, "None.")

    def notes(self) -> Iterator[str]:
        """What the numbers rest on."""
        found = self.found
        if not found.n_interruptions:
            yield from self.ask(uncounted, self.selection)
            return
        yield from self._about_nodes()
        yield from sight.notes(self.seen, "what failures cost")
        if self.seen.none:
            yield sight.refused("What other failures of the infrastructure cost", self.seen)
        if self.wish.interval == "best":
            yield _of_best(found, self.ask(ettr.habits).central.interval_s / 60)
        if self.best is not None:
            yield best_interval.sentence(self.best)
        yield from self.ask(habit_notes)
        yield REPLAYED
        yield from self.ask(uncounted, self.selection)

    def _about_nodes(self) -> Iterator[str]:
        """Why these nodes, and what is not known of them."""
        found = self.found
        unnamed = found.n_failures - found.n_named
        if self.chosen.nodes and found.by_nodes.value is None:
            yield f"{NODES_UNKNOWN[:1].upper()}{NODES_UNKNOWN[1:]}."
        elif self.chosen.nodes:
            yield (
                f"{left_out.HOW[self.chosen.how]} {left_out.SEVERAL} Healthy nodes in their "
                f"place would have had "
                f"{numbers.number(sum(each.usual for each in found.nodes))} failures."
            )
            if not self.wish.nodes and len(self.chosen.nodes) < self.wish.worst:
                n = numbers.counted(len(self.chosen.nodes), "node")
                yield f"Nothing speaks against more than {n}."
            if unnamed:
                yield (
                    f"{unnamed:,} of {numbers.counted(found.n_failures, 'failure')} of the "
                    "infrastructure name no node: they stay, whichever nodes are left out."
                )
        elif self.wish.worst > 0 and not self.wish.nodes:
            yield "Nothing speaks against any node, so none is left out."
        if self.chosen.nodes and (found.waited.value or 0.0) > 0:
            yield (
                f"Runs would have waited {numbers.number(found.waited.value)} GPU-hours less "
                f"({numbers.spread(found.waited)}) to start again; others ran in that time, so it "
                "is not in the sum."
            )

    def record(self) -> dict[str, Any]:
        """The JSON of the command."""
        found = self.found
        plain = ("n_interruptions", "n_failures", "n_named", "interval_min", "as_was", "regained",
                 "by_nodes", "gross", "by_interval", "by_interval_left", "waited", "present",
                 "best_min")  # fmt: skip
        nodes = list(found.nodes)
        known = {name: getattr(found, name) for name in plain}
        if self.seen.without and not found.n_interruptions:
            known |= dict.fromkeys(("n_interruptions", "n_failures", "n_named", "as_was"))
            nodes = []
        return {
            "from_at": self.selection.from_at,
            "to_at": self.selection.to_at,
            **known,
            **sight.record(self.seen),
            "chosen": self.chosen.how or None,
            "nodes": nodes,
            "capacity_gpu_hours": self.capacity,
            "parts": _pairs(found.parts),
            "causes": _pairs(found.causes),
            "runs": found.runs,
            "curve": found.curve,
            "best_interval": self.best,
            "notes": list(self.notes()),
        }

    def sheet(self) -> Sheet:
        """A row for each quantity."""
        found = self.found
        names = ("as_was", "regained", "by_nodes", "by_interval", "by_interval_left", "waited")
        rows = [(name, getattr(found, name)) for name in names]
        rows += [(f"{name}_regained", pair[1]) for name, pair in found.parts.items()]
        rows += [(f"{name}_regained", pair[1]) for name, pair in found.causes.items()]
        return quantities(rows, value="gpu_hours")


NOTHING = Missing(
    "what_if",
    "No interruption of a job with GPUs is known in this period.",
    "Choose a longer period or reset the filters. Interruptions come from the scheduler's records "
    "of jobs with their GPUs, and from what explains why they ended:",
    sight.JOBS,
)


def _negative(hours: Estimate) -> Estimate:
    """What is regained as what is lost more."""
    value, lower, upper = (
        None if each is None else -each for each in (hours.value, hours.upper, hours.lower)
    )
    return replace(hours, value=value, lower=lower, upper=upper)


def _minutes(minutes: float) -> str:
    """An interval in words."""
    return f"{minutes:g} min"


def _hours(term: Term, hours: Estimate, more: str = "") -> Number:
    """GPU-hours with their interval."""
    if hours.value is None:
        why = "no run on several nodes was interrupted" if term is BY_INTERVAL else UNNAMED
        return Number(term, numbers.UNKNOWN, why, exact=hours)
    spread = numbers.spread(hours)
    basis = f"{spread} ({numbers.level(hours)}), n = {hours.n:,}" if spread else f"n = {hours.n:,}"
    return Number(
        term,
        numbers.number(hours.value),
        f"{basis}{more}",
        spread,
        numbers.count(hours.n),
        hours,
        "GPU-hours",
    )


def _split(
    key: str, title: str, names: Mapping[str, str], found: Mapping[str, tuple[Estimate, Estimate]]
) -> Table:
    """What each part or cause cost, and what is regained of it."""
    shown = (
        Column("name", "Part" if key == "parts" else "Cause"),
        Column("was", "As it was", "number", "GPU-h"),
        Column("regained", "Regained", "rate", "GPU-h"),
    )
    rows = [(names.get(name, name), was.value, less) for name, (was, less) in found.items()]
    return Table(key, title, shown, rows, "None.")


def _pairs(found: Mapping[str, tuple[Estimate, Estimate]]) -> dict[str, Any]:
    """As JSON prints them."""
    return {name: {"as_was": was, "regained": less} for name, (was, less) in found.items()}


def _times(gpus: float | None, hours: float) -> float | None:
    """GPU-hours of a node; None where its GPUs are not known."""
    return None if gpus is None else gpus * hours


def _of_best(found: WhatIf, present_min: float) -> str:
    """The interval at which the period would have cost least."""
    best = found.best_min
    if not best.n:
        return "No run on several nodes was interrupted, so no interval is best."
    if best.value is None and found.curve["gpu_hours"].iloc[0] > found.curve["gpu_hours"].iloc[-1]:
        return "Interruptions took no work of runs on several nodes, so no interval is best."
    if best.value is None:
        return "Writing costs nothing here, so no interval is best: the shorter, the better."
    between = f" ({best_interval.in_minutes(best)}, {numbers.level(best)})"
    already = abs(best.value / present_min - 1.0) < ALIKE
    return (
        "Of the intervals tried, all runs on several nodes alike would have lost least with "
        f"{_minutes(best.value)}{between if best.lower != best.upper else ''}"
        + (", about as they save already." if already else ".")
    )


WORST = 3


@dataclass(frozen=True)
class Wish:
    """What is otherwise than it was."""

    worst: int = WORST
    """So many nodes are left out."""
    nodes: tuple[str, ...] = ()
    """These, instead."""
    by: By = "before"
    interval: Every = "best"
    gpus: int | None = None
    """Size of the job whose best interval is told; None for the largest usual one."""


def period(store: Store, selection: Selection, *, month: bool = True) -> Selection:
    """The selection with a period: where it names none the last whole month that is recorded, or
    with `month` false all of the records.

    Raises
    ------
    DataError
        Where no record has a time.
    """
    first_at, last_at = fleet.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read the scheduler's records first")
    begin, end = selection.from_at, selection.to_at
    if month and begin is None and end is None:
        begin, end = last_whole(store, "month", selection.cluster)
        if begin < first_at:
            begin, end = first_at, None
    return replace(
        selection, from_at=begin or first_at, to_at=end or last_at + timedelta(microseconds=1)
    )


def answer(
    ask: Ask, selection: Selection, wish: Wish | None = None, *, conf_level: float = CONF_LEVEL
) -> Answer:
    """GPU-hours regained, of which by what; what is given up; the best interval of a job."""
    wish = wish or Wish()
    of = ask(period, selection)
    nodes = left_out.chosen(ask, of, wish.worst, wish.nodes, wish.by)
    change = Change(nodes.nodes, nodes.hindsight, wish.interval)
    found = ask(played, of, change, conf_level=conf_level)
    best = best_interval.of_size(ask, of, wish.gpus, conf_level=conf_level)
    shown = Shown(ask, of, wish, nodes, found, best)
    return Answer(
        shown.sentence(),
        tuple(shown.numbers()),
        tuple(shown.blocks()),
        tuple(shown.notes()),
        TERMS,
        record=shown.record(),
        sheet=shown.sheet(),
    )
