"""What should be done now, ranked by GPU-hours at stake; and what people have put off."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from analytics.estimate import CONF_LEVEL, unknown
from app.answers.content import Answer, Table
from app.answers.described import JSON, Rows, field
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import risen
from app.answers.fleet.actions.action import TITLES, Action, rank
from app.answers.fleet.actions.alert_rows import opened, with_alerts
from app.answers.fleet.actions.rows import (
    of_causes,
    of_collected,
    of_hosts,
    of_incidents,
    of_lemons,
    of_mass_failures,
    of_sources,
    of_stragglers,
)
from app.answers.fleet.actions.training_rows import of_runs
from app.answers.reliability import sight
from app.words import numbers
from app.words.addresses import Place
from app.words.plain import shortened
from data.state import ACKNOWLEDGED, RESOLVED, SNOOZED_UNTIL, Annotation, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.estimate import Estimate
    from analytics.reliability.sight import Sight
    from app.answers.described import Surface
    from app.ask import Ask
    from app.words.periods import Period
    from data.alerts import Alert
    from data.filters import Selection
    from data.store import Store

TABULAR: tuple[Surface, ...] = ("table", "csv")
DESCRIBED = (
    field("kind", "Kind", of=lambda row: TITLES[row["action"].kind], on=TABULAR),
    field("kind", of="action.kind", on=JSON),
    field("what", "What", of="action.what"),
    field("why", "Why", of="action.why"),
    field(
        "stake_gpu_hours",
        "GPU-hours at stake",
        "number",
        "action.gpu_hours",
        on=TABULAR,
        none="not known",
    ),
    field("stake_gpu_hours", of="action.stake", on=JSON),
    *(
        field(f"stake_{end}", title, "number", of, on=TABULAR, unit="GPU-h", none="")
        for end, title, of in (
            ("lower", "At least", lambda row: _range(row["action"]).lower),
            ("upper", "At most", lambda row: _range(row["action"]).upper),
        )
    ),
    field("stake_basis", "Counted", of="action.stake_basis"),
    field("state", "State", none="to do", on=TABULAR),
    field("state", of=lambda row: row["state"] or "due", on=JSON),
    field(
        "rules",
        "Rules of alerts",
        of=lambda row: ", ".join(row["action"].rules),
        none="",
        on=TABULAR,
        wide=True,
    ),
    field("rules", of=lambda row: list(row["action"].rules), on=JSON),
    field("target", "Target", of="action.target", wide=True),
    field("page", of="action.page", on=JSON),
    field("named", of=lambda row: dict(row["action"].named), on=JSON),
)
LONGEST_WHAT, LONGEST_WHY = 100, 220
"""Letters of what and why in documents."""
SHOWN = 5
"""Rows that fit on the first screen."""
NODES = 3
"""Nodes to drain that are always among the first rows: who drains nodes asks for no list."""
OF_KIND = 2
"""Rows of any other kind among the first, while there are others."""
NOT_ANY_MORE = "with nothing at stake any more"
NOTHING = "Nothing needs anybody, as far as the records say."
WHAT, WHAT_ELSE = "What needs somebody", "What else needs somebody"


@dataclass(frozen=True)
class PutOff:
    """A row that somebody acknowledged or snoozed."""

    action: Action
    said: Annotation

    @property
    def in_words(self) -> str:
        """Who did what, and until when."""
        until = self.said.value if self.said.field == SNOOZED_UNTIL else ""
        if not until:
            return f"{self.said.value} by {self.said.author}"
        return f"snoozed until {numbers.day(datetime.fromisoformat(until))} by {self.said.author}"


@dataclass(frozen=True)
class Listed:
    """The list."""

    due: tuple[Action, ...]
    """What nobody has put off, the largest stake first."""
    put_off: tuple[PutOff, ...]
    sight: Sight | None = None
    """On which days failures could be seen: where on none, an empty list says nothing."""

    @property
    def nothing(self) -> str:
        """The sentence of an empty list; it says so where failures could not be seen."""
        if self.sight is not None and self.sight.without:
            return sight.refused(WHAT, self.sight)
        return NOTHING


def first(rows: Sequence[Action], most: int) -> tuple[Action, ...]:
    """The first rows: nodes to drain, then of each kind only a few while there are others, for a
    hundred open incidents would hide all else. Each in its rank.
    """
    seen: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, row in enumerate(rows):
        seen[row.kind] += 1
        few = seen[row.kind] <= (NODES if row.kind == "node" else OF_KIND)
        worth = row.gpu_hours is None or row.gpu_hours > 0
        turn = 1 if few and worth and not row.is_over else 2  # what is over waits for all else
        turns.append((0 if turn == 1 and row.kind == "node" else turn, place))
    return tuple(rows[place] for place in sorted(place for _, place in sorted(turns)[:most]))


@dataclass(frozen=True)
class Kept:
    """What changes while the snapshot stays: no cache knows of it."""

    said: tuple[Annotation, ...] = ()
    """What people said that puts a row off, and holds."""
    alerts: tuple[Alert, ...] = ()
    """Those that are not resolved."""


def kept(store: Store) -> Kept:
    """What people said of rows, and what the rules of alerts see."""
    said = (Annotation(*row) for row in State(store.root).annotations())
    holds = (
        annotation
        for annotation in said
        if annotation.field == SNOOZED_UNTIL
        or (annotation.field, annotation.value) in (ACKNOWLEDGED, RESOLVED)
    )
    return Kept(tuple(holds), opened(store))


def found(ask: Ask, selection: Selection, timezone: str) -> tuple[Action, ...]:
    """Rows of every kind that stay as they are while time passes."""
    lemons = tuple(of_lemons(ask, selection))
    hosts = tuple(of_hosts(ask, selection, {_host(row) for row in lemons}))
    return (
        *lemons,
        *hosts,
        *of_incidents(ask, selection, told={_host(row) for row in hosts}),
        *of_mass_failures(ask, selection, timezone),
        *of_causes(ask, selection, timezone),
        *of_stragglers(ask, selection),
        *of_runs(ask, selection),
        *of_sources(ask, selection),
    )


def listed(
    ask: Ask,
    selection: Selection,
    now: datetime,
    *,
    timezone: str = "UTC",
    beside: Kept | None = None,
    known: Sequence[Action] | None = None,
) -> Listed:
    """Rows of every kind, the largest stake first; a row whose snooze has passed is due again.

    `beside` is what `kept` says, `known` what `found` finds, where they were asked before.
    """
    known = found(ask, selection, timezone) if known is None else known
    beside = ask(kept) if beside is None else beside
    told = (*known, *of_collected(ask, selection, now))
    rows = sorted(with_alerts(told, beside.alerts, selection), key=rank)
    held: dict[str, Annotation] = {}
    for annotation in beside.said:
        if annotation.field != SNOOZED_UNTIL or datetime.fromisoformat(annotation.value) > now:
            held.setdefault(annotation.target, annotation)
    off = {row.target for row in rows if row.target in held and _holds(held[row.target], row)}
    return Listed(
        tuple(row for row in rows if row.target not in off),
        tuple(PutOff(row, held[row.target]) for row in rows if row.target in off),
        ask(sight.sight, selection),
    )


def _holds(said: Annotation, row: Action) -> bool:
    """Whether what somebody said of a thing is about what is so now: of what a rule sees, but for
    an incident, only what was said since."""
    is_incident = row.target.startswith("incident:")
    return is_incident or said.field == SNOOZED_UNTIL or said.made_at >= row.since


def _host(row: Action) -> tuple[str | None, str]:
    return row.named.get("cluster"), row.named["node"]


def answer(ask: Ask, selection: Selection, now: datetime, *, timezone: str = "UTC") -> Answer:
    """What should be done now?"""
    todo = listed(ask, selection, now, timezone=timezone)
    seen = ask(sight.sight, selection)
    compared, shown = ask(risen.compared, selection), rows(todo)
    return Answer(
        sentence(todo),
        blocks=(table(todo), risen.table(compared, ask(cause_titles))),
        notes=(sight.refused(WHAT_ELSE, seen),)
        if seen.none and todo.due
        else tuple(sight.notes(seen, "what needs somebody")),
        record={"actions": shown.records(), "risen": risen.record(compared)} | sight.record(seen),
        sheet=shown.sheet(),
    )


def sentence(todo: Listed) -> str:
    """How much there is to do, and what comes first."""
    if not todo.due:
        return todo.nothing
    first = todo.due[0]
    hours = first.gpu_hours
    stake = "" if hours is None else f" ({numbers.number(hours)} GPU-hours)"
    over = sum(action.is_over for action in todo.due)
    apart = f"; {over:,} of them {NOT_ANY_MORE}" if over else ""
    put_off = f"; {len(todo.put_off):,} put off" if todo.put_off else ""
    n = numbers.counted(len(todo.due), "thing")
    return f"{n} to do{apart}{put_off}; first: {first.what}{stake}."


def table(todo: Listed) -> Table:
    """All rows, those that were put off last."""
    return rows(todo).table("actions", "Do this now", empty=todo.nothing)


def rows(todo: Listed) -> Rows:
    """What to do, and who put it off."""
    due = [{"action": action, "state": None} for action in todo.due]
    put_off = [{"action": row.action, "state": row.in_words} for row in todo.put_off]
    return Rows(DESCRIBED, [*due, *put_off])


def _range(action: Action) -> Estimate:
    """The bounds of a stake; none where records fix it."""
    stake = action.stake
    return stake if stake is not None and stake.has_width else unknown(CONF_LEVEL, 0)


def brief(todo: Listed, most: int, during: Period) -> Table:
    """The first rows in short, for documents; those that are over are only counted.

    Each leads to its evidence, in the period by which it was found.
    """
    due = [action for action in todo.due if not action.is_over]
    rows, over, off = first(due, SHOWN)[:most], len(todo.due) - len(due), len(todo.put_off)
    parts = [f"{len(rows):,} of {numbers.counted(len(due), 'thing')} to do"] if rows else []
    parts += [f"{over:,} more {NOT_ANY_MORE}"] if over else []
    parts += [f"{off:,} put off"] if off else []
    described = (
        field("what", "What", of=lambda action: shortened(action.what, LONGEST_WHAT)),
        field("why", "Why", of=lambda action: shortened(action.why, LONGEST_WHY)),
        field("stake", "GPU-hours at stake", of=_at_stake),
    )
    return Rows(described, rows).table(
        "actions",
        "Do this now",
        empty=todo.nothing,
        note=f"{'; '.join(parts)}." * bool(parts),
        wrapped=True,
        places=tuple(Place(action.page, action.named, during) for action in rows),
    )


def _at_stake(action: Action) -> str:
    stake = action.stake
    if stake is None:
        return shortened(action.stake_basis, LONGEST_WHY)
    bounds = f" ({numbers.interval(stake)})" if stake.has_width else ""
    return f"{numbers.number(stake.value)}{bounds}, {action.stake_basis}"
