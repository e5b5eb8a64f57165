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
    return headline.of_count(
        glossary.OUT_OF_SERVICE,
        fleet.n_out_of_service,
        of=fleet.n_nodes,
        basis=f"at {'the last record' if at is None else numbers.moment(at, scope.timezone)}",
        opens=partial(rows.out_of_service, fleet.out_of_service, scope),
    )


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
