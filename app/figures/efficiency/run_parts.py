"""The parts of an attempt's time: their words, the buckets they are of, where each lies in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from app.figures import template
from app.figures.efficiency import buckets

if TYPE_CHECKING:
    from app.figures.template import Mode

TITLES: Final = {
    "queued": "queued",
    "startup": "start-up",
    "productive": "productive",
    "checkpoint": "checkpoints",
    "lost": "lost work",
}
"""Parts in order of time; productive and checkpoints come by turns."""
BY_TURNS = ("productive", "checkpoint")


def bucket(part: str, lost_to: object = None) -> str:
    """Bucket of the ledger that a part is of; lost work in that which ended the attempt.

    >>> bucket("queued"), bucket("startup"), bucket("lost", "lost_work_preempted")
    ('queue_hold', 'startup', 'lost_work_preempted')
    """
    if part == "lost":
        return lost_to if isinstance(lost_to, str) else "lost_work"
    return "queue_hold" if part == "queued" else part


def marker(part: str, rows: pd.DataFrame, mode: Mode) -> dict[str, object]:
    """How the bars of a part are filled: waiting is an outline."""
    colours = [buckets.colour(bucket(part, lost), mode) for lost in rows["lost_to"]]
    if part == "queued":
        background = template.PALETTES[mode].background
        return {"color": background, "line": {"width": 1, "color": colours}}
    return {"color": colours, "line": {"width": 0}}


def spans(attempts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Where the parts of attempts lie: start-up first, lost work last, between them the rest.

    Returns
    -------
    dict
        Part -> a row an attempt that has it: `row` (its place), `start_at`, `seconds` (length in
        time), `hours` (of the part itself), `share` of the height, the shares `below` it, and
        `lost_to`, the bucket of what an interruption lost.
    """
    ran, startup, lost = (attempts[f"{n}_s"].to_numpy(float) for n in ("ran", "startup", "lost"))
    after = ran - startup
    worked = after - attempts["checkpoint_s"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        last = np.where(worked > 0, lost * after / worked, 0.0)
    between = after - last
    whole = attempts[[f"{part}_s" for part in BY_TURNS]].sum(axis=1).to_numpy(float)
    begin = attempts["start_at"]
    found = {
        "queued": _rows(attempts, "waited_s", _moments(attempts["eligible_s"])),
        "startup": _rows(attempts, "startup_s", begin),
        "lost": _rows(attempts, "lost_s", begin + pd.to_timedelta(startup + between, unit="s"))
        .assign(seconds=lambda rows: last[rows["row"]]),
    }  # fmt: skip
    below = np.zeros(len(attempts))
    for part in BY_TURNS:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(whole > 0, attempts[f"{part}_s"].to_numpy(float) / whole, 0.0)
        rows = _rows(attempts, f"{part}_s", begin + pd.to_timedelta(startup, unit="s"))
        place = rows["row"].to_numpy()
        found[part] = rows.assign(seconds=between[place], share=share[place], below=below[place])
        below = below + share
    return {part: found[part] for part in TITLES}


def _moments(seconds: pd.Series) -> pd.Series:
    """Seconds since the epoch as times."""
    return pd.to_datetime(seconds, unit="s", utc=True)


def _rows(attempts: pd.DataFrame, column: str, start_at: pd.Series) -> pd.DataFrame:
    """The attempts that have some of a part, over their whole height."""
    seconds = attempts[column].fillna(0).to_numpy(float)
    rows = pd.DataFrame(
        {
            "row": np.arange(len(attempts)),
            "start_at": start_at.to_numpy(dtype=object),
            "seconds": seconds,
            "hours": seconds / 3600,
            "share": 1.0,
            "below": 0.0,
            "lost_to": attempts["bucket"].to_numpy(dtype=object),
        }
    )
    return rows[(seconds > 0) & rows["start_at"].notna()]
