"""Local times as machines write them, in hours that come twice or never, in all forms of a table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from data.ingest.reader import Options
from data.ingest.rows import LocalClock

ZONE = "Europe/Berlin"
LOCAL = [
    "1971-06-01T10:00:00", "2026-01-05T10:00:00.25", "2026-03-29T02:30:00", "2026-10-25T01:30:00",
    "2026-10-25T02:00:00", "2026-10-25T02:30:00", "2026-10-25T03:00:00",
]  # fmt: skip
ZONED = ["2026-10-25T02:31:00+02:00", "2026-10-25T02:31:00+0100", "2026-01-05T10:02:00Z"]


def instants(times: list[str]) -> list[int]:
    """Microseconds since 1970, as the readers of a store read them."""
    clock = LocalClock(Options(timezone=ZONE))
    since = datetime(1970, 1, 1, tzinfo=UTC)
    found = [clock.utc(datetime.fromisoformat(at), "a") - since for at in times]
    return sorted(round(each.total_seconds() * 1e6) for each in found)


def tables(folder: Path) -> dict[Path, list[str]]:
    """Files of samples that are events, too, and the times in each."""
    folder.mkdir()
    told = {"node": "n1", "metric": "x", "value": 1.0, "xid": 79, "message": "fell off"}
    of_file = {}
    for form in ("csv", "jsonl"):
        frame = pd.DataFrame({"at": LOCAL + ZONED}).assign(**told)
        path = folder / f"texts.{form}"
        frame.to_csv(path, index=False) if form == "csv" else frame.to_json(
            path, orient="records", lines=True
        )
        of_file[path] = LOCAL + ZONED
    for unit in ("us", "ns"):
        at = pd.to_datetime(pd.Series(LOCAL), format="ISO8601").astype(f"datetime64[{unit}]")
        path = folder / f"local {unit}.parquet"
        pd.DataFrame({"at": at}).assign(**told).to_parquet(path)
        of_file[path] = LOCAL
        path = folder / f"instants-{unit}.parquet"
        pd.DataFrame({"at": at.dt.tz_localize("UTC")}).assign(**told).to_parquet(path)
        of_file[path] = [f"{each}Z" for each in LOCAL]
    path = folder / "instants of Spark.parquet"
    pd.DataFrame({"at": at}).assign(**told).to_parquet(path, use_deprecated_int96_timestamps=True)
    of_file[path] = [f"{each}Z" for each in LOCAL]
    return of_file
