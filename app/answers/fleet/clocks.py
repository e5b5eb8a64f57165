"""Does the clock or zone of a source contradict that of another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analytics.fleet.clock_offset import clock_offsets
from app.answers.described import JSON, TABLE, Rows, field
from app.words import numbers
from app.words.glossary import of_fleet
from data.filters import Selection
from data.queries import clocks
from data.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.fleet.clock_offset import ClockOffset
    from app.answers.content import Table
    from app.ask import Ask
    from data.queries.clocks import Compared
    from data.store import Store

CALLED = {
    "jobs": "accounting",
    "node_events": "node events",
    "health_events.kernel": "kernel log",
    "health_events.health_check": "health checks",
}
"""Sources as people call them."""
Suspect = Literal["source", "reference", "either"]


@dataclass(frozen=True)
class Contradiction:
    """A source that lies off a reference, and what to pass so that it does not."""

    pair: Compared
    offsets: tuple[ClockOffset, ...]
    suspect: Suspect
    """Which of the two was read in a zone that nobody stated; either where that does not tell."""
    source_zone: str | None
    """Zone in which the source is local if it is the source that was read wrong."""
    reference_zone: str | None


def contradictions(store: Store, selection: Selection) -> list[Contradiction]:
    """Sources of the selected clusters whose times contradict those of another source."""
    found = []
    zones = clocks.zones(store)
    for pair in clocks.compared(store, selection):
        rows = clocks.events(store, pair)
        own = rows["is_source"].astype(bool)
        node, at_s = rows["node"].astype("int64"), rows["at_s"]
        offsets = clock_offsets(
            at_s[own], node[own], at_s[~own], node[~own], prompt=rows["prompt"][own].astype(bool)
        )
        if offsets:
            found.append(_explained(store, pair, offsets, zones.get(pair.cluster) or "UTC"))
    return found


def _explained(
    store: Store, pair: Compared, offsets: tuple[ClockOffset, ...], zone: str
) -> Contradiction:
    """Which source was read in which zone, and in which it should be."""
    assumed, taken = clocks.read_as_utc(store, pair.cluster), clocks.taken_over(store, pair.cluster)
    readers = [clocks.READERS.get(name, "") for name in (pair.source, pair.reference)]
    source, reference = (assumed.get(name, False) for name in readers)
    unstated = [assumed.get(name, False) or name in taken for name in readers]
    suspect: Suspect = "either"
    if unstated[0] != unstated[1]:
        suspect = "source" if unstated[0] else "reference"
    of_zone = [offset for offset in offsets if offset.kind == "zone"]
    late = [(at, offset.offset_s) for offset in of_zone for at in offset.at_s.tolist()]
    early = [(at + moved, -moved) for at, moved in late]
    return Contradiction(
        pair,
        offsets,
        suspect,
        zone_of("UTC" if source else zone, late, (zone,)) if late else None,
        zone_of("UTC" if reference else zone, early, (zone,)) if early else None,
    )


def notes(found: list[Contradiction]) -> Iterator[str]:
    """A sentence for each, with the correction to pass."""
    for one in found:
        source, reference = _called(one.pair.source), _called(one.pair.reference)
        n, near = (sum(getattr(o, name) for o in one.offsets) for name in ("n", "n_near"))
        yield (
            f"{source.capitalize()} of cluster {one.pair.cluster} "
            f"{'lies' if source.endswith('log') else 'lie'} {_lies(one.offsets)} {reference}: "
            f"{numbers.counted(n, 'occasion')} agree at that offset ({near:,} within 30 seconds; "
            f"{max(o.n_by_chance for o in one.offsets):.1f} by chance), "
            f"{sum(o.n_in_step for o in one.offsets):,} without it. {correction(one)}"
        )


def correction(one: Contradiction) -> str:
    """What to do about it."""
    if one.offsets[0].kind == "skew":
        minutes = 1 + int(abs(one.offsets[0].offset_s) // 60)
        side = "after_minutes" if one.offsets[0].offset_s > 0 else "before_minutes"
        return (
            "Mend the clock; until then evidence belongs to the end of a job only where "
            f"{side} of [attribution] in site.toml is {minutes} larger."
        )
    zones = {"source": one.source_zone, "reference": one.reference_zone}
    asked = [name for name in zones if one.suspect in (name, "either") and zones[name]]
    of_places = [name for name in asked if not str(zones[name]).startswith("Etc/")]
    ways = [
        f"{_called(getattr(one.pair, name))} with --timezone {zones[name]}"
        for name in of_places or asked
    ]
    if not ways:
        return "No zone explains it: mend the clock, or ingest with the right --timezone."
    return (
        "Take back what was read in the wrong zone (`faultline ingests`, `faultline rollback ID`), "
        f"then ingest {' or '.join(ways)} (--file-timezone where the cluster's other sources are "
        "in another zone)."
    )


def rows(found: list[Contradiction]) -> Rows:
    """A row an offset, with its contradiction."""
    described = (
        field("cluster", "Cluster", of="one.pair.cluster"),
        field("source", of="one.pair.source", on=JSON),
        field("reference", of="one.pair.reference", on=JSON),
        field("source", "Source", of=lambda row: _called(row["one"].pair.source), on=TABLE),
        field("lies", "Lies", of=lambda row: _lies((row["offset"],)), on=TABLE, term=of_fleet.LIES),
        field(
            "reference", "Reference", of=lambda row: _called(row["one"].pair.reference), on=TABLE
        ),
        *(field(key, of=f"offset.{key}", on=JSON) for key in ("kind", "season", "offset_s")),
        field("n", "Occasions", "count", "offset.n", term=of_fleet.AGREEING),
        field("n_near", "Within 30 s", "count", "offset.n_near"),
        field("n_in_step", "Without it", "count", "offset.n_in_step", term=of_fleet.OUT_OF_STEP),
        field(
            "n_by_chance",
            "By chance",
            "decimal",
            "offset.n_by_chance",
            term=of_fleet.AGREEING_BY_CHANCE,
        ),
        field("suspect", of="one.suspect", on=JSON),
        field("source_timezone", of="one.source_zone", on=JSON),
        field("reference_timezone", of="one.reference_zone", on=JSON),
        field("correction", "What to do", of=lambda row: correction(row["one"])),
    )
    return Rows(
        described, [{"one": one, "offset": offset} for one in found for offset in one.offsets]
    )


def table(ask: Ask, selection: Selection) -> Table:
    """Sources whose clock or zone contradicts that of another, and what to do."""
    offsets = rows(ask(contradictions, Selection(selection.cluster)))
    empty = "No source contradicts another one in its times, as far as their records overlap."
    return offsets.table("clock_offsets", "Clocks", empty=empty, wrapped=True)


def _called(source: str) -> str:
    return CALLED.get(source, source.partition(".")[2] or source)


def _lies(offsets: tuple[ClockOffset, ...]) -> str:
    """How far it lies off, and on which side: `2 h 00 min after`."""
    texts = []
    for offset in offsets:
        minutes, seconds = divmod(round(abs(offset.offset_s)), 60)
        hours, minutes = divmod(minutes, 60)
        text = (
            f"{hours} h {minutes:02} min" if offset.kind == "zone" else f"{minutes} min {seconds} s"
        )
        texts.append(text + (f" in {offset.season}" if offset.season else ""))
    side = "after" if offsets[0].offset_s > 0 else "before"
    return f"{' and '.join(texts)} {side}"
