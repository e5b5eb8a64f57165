"""Real data and small helpers for the tests of data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers.schedulers import sacct
from data.ingest.readers.schedulers.sacct_fields import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

duckdb.execute("SET threads = 1")  # as a writer of a small store does, for readers without one
ROOT = Path(__file__).resolve().parents[2]
SHARED_DATA = ROOT / "../shared/data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("../shared/data is absent: it holds third-party data that is never committed")
    return SHARED_DATA


@pytest.fixture(scope="session")
def xdmod_columns() -> tuple[str, ...]:
    """Columns of the accounting file of xdmod, which has no header."""
    return PRESETS["xdmod"]


class SacctText:
    """What the reader of sacct makes of one text."""

    def __init__(self, batch: Batch, jobs: list[dict[str, Any]]) -> None:
        self.batch, self.jobs = batch, jobs

    @property
    def only(self) -> dict[str, Any]:
        """The one job of the text."""
        (job,) = self.jobs
        return job

    @property
    def rejected(self) -> list[tuple[int, str]]:
        """Line and reason of each rejected record."""
        return [(row.line_no, row.reason) for row in self.batch.rejected]


@pytest.fixture(scope="session")
def read_sacct(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SacctText]:
    """Reads accounting text, as a file holds it; options are those of `faultline ingest`."""
    folder = tmp_path_factory.mktemp("sacct")

    def read(content: str | bytes, **options: Any) -> SacctText:
        path = folder / "sacct.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with duckdb.cursor() as connection, opened(str(path), folder) as found:
            connection.execute("SET TimeZone='UTC'")
            batch = sacct.read(found, Options(**options), connection)
            rows = batch.tables["jobs"]
            jobs = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
        n_skipped = sum(batch.skipped_by_reason.values())
        assert batch.rows_read == batch.rows_kept + n_skipped + len(batch.rejected)
        assert batch.rows_kept == len(jobs)
        return SacctText(batch, jobs)

    return read


@pytest.fixture(scope="module")
def ended() -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs what is asked in a process of its own, to a moment or its end (tests/data/killing.py)."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.data.killing"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as server:  # fmt: skip

        def ask(**asked: object) -> dict[str, Any]:
            assert server.stdin is not None
            assert server.stdout is not None
            print(json.dumps(asked), file=server.stdin, flush=True)
            answered: dict[str, Any] = json.loads(server.stdout.readline())
            return answered

        yield ask
