"""Mass failures that nobody explained."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analytics.failures.mass_failures import BY, mass_failures
from data.queries import occurrences

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store


def found_mass_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Mass failures that nobody explained: who, where or what in a column of its own name, which
    reports can redact, and a key."""
    rows = [
        asdict(mass)
        | {"key": mass.key}
        | {by: mass.name if by == mass.by else None for by in BY if by != "cause"}
        for mass in mass_failures(occurrences.crowded_failures(store, selection))
    ]
    names = ("cluster", "by", *BY, "first_at", "last_at", "failures", "of_failures", "of_cause",
             "held_gpu_hours", "key")  # fmt: skip
    import pandas as pd  # here: whoever names a row needs none

    return pd.DataFrame(rows, columns=list(names))
