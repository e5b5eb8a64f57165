"""What a snapshot holds of collecting: read before sources are asked, written with answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from data.collect.source import DAY, Known, ReadFile
from data.tables.jobs import FINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from data.collect.source import Settings
    from data.ingest.reader import Rejections
    from data.publish import StoreWriter
    from data.store import Store

FAILED, EMPTY, ROWS = "failed", "empty", "rows"
_NUMBER = "coalesce(job_id_raw, regexp_extract(job_id, '^[0-9]+'))"


def known(store: Store, settings: Settings) -> Known:
    """What a store holds of a source."""
    bound = {
        "source": settings.name,
        "failed": FAILED,
        "look_back": settings.timing.look_back_days * DAY,
        "states": list(FINAL_STATES),
    }
    ((begin, until, looked),) = store.rows(
        """WITH had AS (
             FROM collected_windows WHERE source = $source AND result <> $failed),
           first AS (SELECT min(from_at) AS begin FROM had)
           SELECT any_value(begin), max(until_at), max(collected_at)
             FILTER (from_at <= greatest(collected_at - $look_back, begin))
           FROM had, first""",
        bound,
    )
    clusters = store.rows(
        """SELECT DISTINCT cluster FROM collected_windows
           WHERE source = $source AND result <> $failed AND cluster IS NOT NULL ORDER BY 1""",
        bound,
    )
    files = store.rows(
        """SELECT path, inode, n_bytes, modified_ns, tail_sha256 FROM collected_files
           WHERE source = $source ORDER BY path""",
        bound,
    )
    names = [name for (name,) in clusters]
    open_jobs = store.rows(
        f"""SELECT DISTINCT {_NUMBER} FROM jobs WHERE list_contains($clusters, cluster)
              AND NOT list_contains($states, state) AND {_NUMBER} <> '' ORDER BY 1""",
        bound | {"clusters": names if settings.reader == "sacct" else []},
    )
    return Known(
        from_at=begin,
        until_at=until,
        looked_back_at=looked,
        clusters=tuple(names),
        files=tuple(ReadFile(*row) for row in files),
        open_jobs=tuple(number for (number,) in open_jobs),
    )


class Answered(NamedTuple):
    """A stretch of time that a source was asked for in one cluster; a row of the table."""

    source: str
    cluster: str | None
    reader: str
    covers: str | None
    node: str | None
    whole_cluster: bool
    from_at: datetime | None
    until_at: datetime
    collected_at: datetime
    result: str
    n_rows: int | None
    error: str | None
    asked: str


def write_window(building: StoreWriter, answered: Answered) -> None:
    """Writes down that a source was asked for a stretch of time, and what came of it."""
    places = ", ".join("?" for _ in answered)
    building.connection.execute(
        f"INSERT INTO collected_windows ({', '.join(Answered._fields)}) VALUES ({places})",
        list(answered),
    )


def remember_files(
    building: StoreWriter,
    name: str,
    files: Sequence[ReadFile],
    there: Sequence[str] | None,
    collected_at: datetime,
) -> None:
    """Remembers files as they were read, and forgets those that are not `there` any more."""
    connection = building.connection
    connection.execute(
        "DELETE FROM collected_files WHERE source = ? AND list_contains(?, path)",
        [name, [each.path for each in files]],
    )
    if there is not None:
        connection.execute(
            "DELETE FROM collected_files WHERE source = ? AND NOT list_contains(?, path)",
            [name, list(there)],
        )
    for each in files:
        connection.execute(
            """INSERT INTO collected_files (source, path, inode, n_bytes, modified_ns, tail_sha256,
                 collected_at) VALUES (?, ?, ?, ?, ?, ?, ?)""",
            [
                *(name, each.path, each.inode, each.n_bytes, each.modified_ns, each.tail_sha256),
                collected_at,
            ],
        )


def name_command(building: StoreWriter, ingest_id: str) -> None:
    """Says how to read it again: what is taken back is collected again by itself."""
    building.connection.execute(
        "UPDATE ingests SET command = 'faultline collect' WHERE ingest_id = ?", [ingest_id]
    )


def forget_repeated(building: StoreWriter, ingest_id: str, reader: str) -> Counter[str]:
    """Takes out rejected records that an earlier ingest of the same reader rejected too, and counts
    them by reason.

    What is asked again holds them again: without this each would be listed a dozen times.
    """
    repeated = building.connection.execute(
        """DELETE FROM rejected_rows WHERE ingest_id = $ingest_id AND (reason, raw) IN (
             SELECT reason, raw FROM rejected_rows JOIN ingests USING (ingest_id)
             WHERE ingests.source = $reader AND ingest_id <> $ingest_id)
           RETURNING reason""",
        {"ingest_id": ingest_id, "reader": reader},
    ).fetchall()
    return Counter(reason for (reason,) in repeated)


def rejected_before(building: StoreWriter, reader: str, rejected: Rejections) -> bool:
    """Whether the store holds each of these records as rejected by the same reader."""
    ((n_new,),) = building.connection.execute(
        """SELECT count(*) FROM (SELECT unnest($reasons) AS reason, unnest($raws) AS raw)
           WHERE (reason, raw) NOT IN (
             SELECT reason, raw FROM rejected_rows JOIN ingests USING (ingest_id)
             WHERE ingests.source = $reader)""",
        {
            "reader": reader,
            "reasons": [row.reason for row in rejected],
            "raws": [row.raw for row in rejected],
        },
    ).fetchall()
    return n_new == 0 and rejected.total == len(rejected)
