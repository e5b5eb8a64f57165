"""What happened on the nodes of a run while it trained, and beside its episodes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.training.stability.coincidence import LEAD_S, coincidence
from app.answers.content import Table
from app.answers.failures.taxonomy import cause_titles
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_stability
from data.queries import training

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from analytics.training.stability.judged import Episode
    from data.store import Store

GRAVE = ("critical", "fatal")
"""Severities of events that stand beside an episode; XIDs count too."""
MOST_NAMED = 3
BESIDE = (
    Column("start_step", "Episode from step", "count"),
    Column("says", "Within 10 minutes before it, or during it", none="nothing was observed"),
    Column("n_events", "Events", "count", none="none of the run is stored"),
    Column("chance_ratio", "By chance", "ratio", none="not known",
           help=of_stability.CHANCE_BESIDE.definition),
    Column("attempt", "Attempt that ended", none="none"),
    Column("incident_id", "Incident", link="incident", none="none"),
    Column("job_id", "Job", link="job"),
    Column("cluster", "Cluster", shown=False),
)  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """The attempts of a run, and what was observed on their nodes."""

    attempts: pd.DataFrame
    """As `training.attempts`, with `title`, the cause in words."""
    events: pd.DataFrame
    """As `training.events`: warnings and graver."""

    @property
    def grave(self) -> pd.DataFrame:
        """Critical and fatal events, and XIDs."""
        found = self.events
        return found[found["severity"].isin(GRAVE) | found["xid"].notna()].reset_index(drop=True)

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When attempts ran, seconds since 1970; one that runs does until the records end."""
        starts = seconds(self.attempts["start_at"])
        ends = np.fmax(seconds(self.attempts["until_at"]), starts)
        return list(zip(starts.tolist(), ends.tolist(), strict=True))


def measured(store: Store, cluster: str, run_id: str) -> Beside:
    """The attempts of a run, and what was observed on their nodes while they ran."""
    titles = cause_titles(store)
    attempts = training.attempts(store, cluster, run_id)
    events = training.events(store, cluster, run_id)
    told = events["severity"].ne("info") | events["xid"].notna()
    named = attempts.assign(title=attempts["cause"].map(titles))
    return Beside(named, events[told].reset_index(drop=True))


def seconds(times: pd.Series) -> np.ndarray:
    """Times as seconds since 1970; NaN where unknown."""
    epoch = pd.Timestamp(0, unit="s", tz="UTC")
    return ((times - epoch) / pd.Timedelta(seconds=1)).to_numpy(float)


def table(found: Beside, episodes: Sequence[Episode]) -> Table:
    """Beside each episode: events, how often chance brings as much, the attempt that ended."""
    rows = list(_rows(found, episodes))
    n = len(found.grave)
    note = (
        f"{numbers.counted(n, 'critical or fatal event')} or XID on nodes of the run in all. "
        "An event beside an episode is a hint, no cause."
        if n
        else "No critical or fatal event and no XID of the run's nodes is stored: nothing can "
        "stand beside an episode, whether nothing happened or nothing was collected."
    )
    return Table("beside_episodes", "Beside the episodes", BESIDE, rows, "No episode.", note=note)


def _rows(found: Beside, episodes: Sequence[Episode]) -> Iterator[tuple[object, ...]]:
    grave = found.grave
    at = seconds(grave["observed_at"])
    ended = seconds(found.attempts["end_at"])
    for each in episodes:
        window = (each.start_at, each.end_at)
        if not np.isfinite(window).all():
            yield (each.start_step, "the log states no times", None, None, None, None, None, None)
            continue
        beside = coincidence(window, at, found.spans)
        is_seen = len(grave) > 0
        near = (ended >= window[0] - LEAD_S) & (ended <= window[1] + LEAD_S)
        attempt = found.attempts[near].tail(1).to_dict("records")
        held = attempt[0] if attempt else {}
        yield (
            each.start_step,
            _named(grave.iloc[beside.events], window[0]) or None,
            len(beside.events) if is_seen else None,
            beside.chance if is_seen else None,
            _ending(held) if held else None,
            _text(held.get("incident_id")),
            _text(held.get("job_id")),
            _text(held.get("cluster")),
        )


def _named(events: pd.DataFrame, start: float) -> str:
    """The first events beside an episode: node, what, how long before or after its start."""
    parts = []
    for row in events.head(MOST_NAMED).to_dict("records"):
        what = f"XID {row['xid']}" if pd.notna(row["xid"]) else row["check_name"] or row["message"]
        minutes = (row["observed_at"].timestamp() - start) / 60
        when = f"{abs(minutes):.0f} min {'before' if minutes < 0 else 'after'}"
        parts.append(f"{row['node']} {what} ({when})")
    more = len(events) - MOST_NAMED
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")


def _ending(attempt: Mapping[Hashable, object]) -> str:
    """State of an attempt, and its cause where one is known."""
    title = _text(attempt.get("title"))
    return f"{attempt['state']}, {title}" if title else str(attempt["state"])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
