"""The headline numbers of the fleet's state, each with the rows that it opens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.components import coverage_note, glossary, headline, rows
from app.figures import numbers

if TYPE_CHECKING:
    from app.components.headline import Headline
    from app.components.scope import Scope
    from app.questions import Coverage, Fleet


def out_of_service(fleet: Fleet, scope: Scope) -> Headline:
    """Nodes out of service at the end of the period."""
    at = scope.selection.to_at
    moment = f"at {'the last record' if at is None else numbers.moment(at, scope.timezone)}"
    return headline.of_count(
        glossary.OUT_OF_SERVICE,
        fleet.n_out_of_service,
        of=fleet.n_nodes,
        basis=f"{moment}; {unknown_of(fleet)}" if unknown_of(fleet) else moment,
        opens=partial(rows.out_of_service, fleet.out_of_service, scope),
    )


def unknown_of(fleet: Fleet) -> str:
    """The clusters whose nodes' states no record says, where those of others are known."""
    if fleet.n_out_of_service is None or not fleet.without_states:
        return ""
    return f"unknown of {', '.join(fleet.without_states)}"


def in_service(fleet: Fleet) -> str:
    """What is said where no node is known to be out of service."""
    unknown = unknown_of(fleet)
    return "All nodes are in service" + (f", as far as is known ({unknown})" if unknown else "")


def sources(held: Coverage, scope: Scope) -> Headline:
    """Sources that have a record in the period, of all that a site can have."""
    present = coverage_note.source_days(held, scope)
    days = [f"{found.source} on {found.days:,} of {found.of:,} days" for found in present[:1]]
    return headline.of_count(
        glossary.COVERAGE,
        len(present),
        of=len(present) + len(held.missing),
        basis="".join(days) or "nothing in this period",
        opens=partial(rows.coverage, held.sources, scope),
    )
