"""Records that leave a store: what an ingest brought, and what a site keeps no longer."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data import publish
from data.audit import noted
from data.errors import DataError
from data.queries import fleet
from data.site import load_site
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from data.current import Current


def roll_back(
    root: Path,
    *,
    ingest_id: str | None = None,
    snapshot: int | None = None,
    expected: int | None = None,
    author: str | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[publish.Plan, Current, str | None]:
    """Takes an ingest back, or goes back to a snapshot: what that meant, what is published now,
    and why the audit does not say it, where it does not.

    All that was read since goes too; what people said, saved queries and the audit stay.

    Parameters
    ----------
    expected
        Snapshot that was published when somebody agreed; another one is refused.

    Raises
    ------
    DataError
        Where the ingest is unknown, the snapshot that is needed is gone, or another process writes.
    """
    done, current = publish.roll_back(
        root, ingest_id=ingest_id, snapshot=snapshot, expected=expected, progress=progress
    )
    detail = {
        "target": ingest_id or f"snapshot {snapshot}",
        "to_snapshot": done.base.snapshot if done.base else None,
        "snapshot": current.snapshot,
        "undone": [each["ingest_id"] for each in done.undone],
    }
    return done, current, noted(root, "rollback", detail, person=author)


@dataclass(frozen=True)
class TooOld:
    """Rows of a table that are older than the site keeps them."""

    table: str
    days: int
    """For how many days its rows are kept."""
    before_at: datetime
    """The midnight (UTC) before which they go."""
    n_rows: int
    first_at: datetime | None
    last_at: datetime | None


def to_forget(root: Path, as_of: datetime) -> list[TooOld]:
    """What the retention of site.toml would remove, by table.

    Raises
    ------
    DataError
        Where site.toml states no retention, or there is no store.
    """
    days = load_site(root).retention.days
    if not days:
        raise DataError(
            f"{root / 'site.toml'}: says of no table how long to keep it: write e.g. jobs = 730 "
            "(days) into [retention]"
        )
    with contextlib.closing(Store.open(root)) as store:
        return [
            TooOld(table, days[table], before_at, *fleet.too_old(store, table, before_at))
            for table, before_at in publish.limits(days, as_of).items()
        ]


def forget(
    root: Path,
    as_of: datetime,
    *,
    author: str | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[list[TooOld], Current | None, str | None]:
    """Removes what the retention of site.toml says, and every earlier snapshot, which holds it.

    What was removed, the snapshot that is published now (None where nothing was too old), and why
    the audit does not say it, where it does not.

    Raises
    ------
    DataError
        As `to_forget` does, or where another process writes.
    """
    gone = to_forget(root, as_of)
    if not any(each.n_rows for each in gone):
        return gone, None, None
    current = publish.forget(root, {each.table: each.days for each in gone}, as_of, progress)
    detail = {
        "target": ", ".join(each.table for each in gone if each.n_rows),
        "rows": {each.table: each.n_rows for each in gone if each.n_rows},
        "before": {each.table: each.before_at for each in gone if each.n_rows},
    }
    return gone, current, noted(root, "forget", detail, person=author)
