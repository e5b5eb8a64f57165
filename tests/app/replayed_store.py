"""A store that a hand can count: eight nodes, a job a day on each pair, one node that fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from app.actions import Options, build_ledger, ingest_files

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2025, 12, 1, tzinfo=UTC)
DAYS = 63
"""December, January and the first of February: January is whole."""
HEADER = (
    "JobID|Cluster|Partition|User|JobName|State|Submit|Eligible|Start|End|NNodes|AllocTRES|"
    "NodeList|FailedNode\n"
)
EVERY = 4
"""Days from one failure of n1 to the next; n5 fails once in January."""
IN_JANUARY = sum((day - 31) >= 0 and day < 62 and day % EVERY == 0 for day in range(DAYS))
LOST_S = (3600**2 / 2 + 3600 * 60) / 3660
"""Mean loss at an hourly checkpoint that takes a minute, as is assumed."""
OF_EACH = 16 * (LOST_S + 300) / 3600
"""GPU-hours of a failure: lost work and the start-up of the next attempt."""


def rows(*, named: bool) -> str:
    """Accounting of all jobs; without names of nodes where nobody wrote them."""
    found = [HEADER]
    for day in range(DAYS):
        for first in (1, 3, 5, 7):
            at = BEGIN + timedelta(days=day)
            failed = day % EVERY == 0 if first == 1 else first == 5 and day == 41
            ends = [10, 20] if failed else [20]
            for attempt, hour in enumerate(ends):
                start = at + timedelta(hours=10, minutes=10) if attempt else at
                lost = failed and not attempt
                nodes = (
                    (f"n[{first}-{first + 1}]", f"n{first}" if lost else "") if named else ("", "")
                )
                times = [start, start, start, at + timedelta(hours=hour)]
                found.append(
                    f"{100 * day + first}|c|gpu|u|train{first}-{day}|"
                    f"{'NODE_FAIL' if lost else 'COMPLETED'}|"
                    + "|".join(f"{each:%Y-%m-%dT%H:%M:%S}" for each in times)
                    + f"|2|gres/gpu=16|{nodes[0]}|{nodes[1]}\n"
                )
    return "".join(found)


def made(folder: Path, *, named: bool = True) -> Path:
    """The store with its ledger, and a price of two a GPU-hour."""
    return stored(folder, rows(named=named))


def stored(folder: Path, accounting: str) -> Path:
    """The same of another text."""
    folder.mkdir(exist_ok=True)
    (folder / "sacct.txt").write_text(accounting)
    root = folder / "store"
    _, errors = ingest_files(root, "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    assert not errors
    (root / "site.toml").write_text('[cluster.c]\ngpu_hour_price = 2.0\ncurrency = "EUR"\n')
    build_ledger(root, lambda _step: None)
    return root
