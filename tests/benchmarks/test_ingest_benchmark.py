"""Four million sacct rows: against DuckDB's own typed reader, and what pages then cost."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest

from app.answers.fleet import coverage, nodes
from app.answers.fleet.choices import choices
from app.answers.reliability import mttf, rate_by_group
from app.ask import FEW
from data.filters import MTTF_MIN_GPUS, Selection
from data.queries import fleet
from data.store import Store
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

MAX_RATIO = 4.0
MAX_MEMORY_GB = 4.0
MAX_PAGE_SECONDS = 2.0
RUNS = 3
COMMAND = """
import sys
from app.cli import main
code = main(sys.argv[1:])
print(open("/proc/self/status").read())
sys.exit(code)
"""
TYPED = {
    "Submit": "TIMESTAMP", "Eligible": "TIMESTAMP", "Start": "TIMESTAMP", "End": "TIMESTAMP",
    "ElapsedRaw": "BIGINT", "NNodes": "INTEGER", "NCPUS": "INTEGER", "Restarts": "INTEGER",
}  # fmt: skip


def _typed_read(path: Path, database: Path) -> float:
    """Processor seconds of one typed read_csv of the file into one table of a new database."""
    database.unlink(missing_ok=True)
    with path.open(encoding="utf-8") as stream:
        names = stream.readline().rstrip("\n").split("|")
    columns = ", ".join(f"'{name}': '{TYPED.get(name, 'VARCHAR')}'" for name in names)

    def read() -> None:
        with duckdb.connect(str(database)) as connection:
            connection.execute(
                f"""CREATE TABLE jobs AS SELECT * FROM read_csv('{path}', delim='|', header=true,
                    quote='', escape='', auto_detect=false, columns={{{columns}}})"""
            )

    return spent(read)


def _ingest(path: Path, root: Path) -> tuple[float, float]:
    """Processor seconds and peak memory (GB) of the whole command on a new store."""
    command = [sys.executable, "-c", COMMAND, "ingest", "sacct", str(path), "--store", str(root)]
    done: list[subprocess.CompletedProcess[str]] = []
    seconds = spent(
        lambda: done.append(subprocess.run(command, check=True, capture_output=True, text=True))
    )
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done[0].stdout)
    return seconds, int(peak) / 1e6


@pytest.fixture(scope="module")
def big_store(sacct_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("big")
    reads, ingests, memory = [], [], []
    for run in range(RUNS):
        reads.append(_typed_read(sacct_file, root / "plain.duckdb"))
        seconds, peak = _ingest(sacct_file, root / f"store{run}")
        ingests.append(seconds)
        memory.append(peak)
    ratio = statistics.median(a / b for a, b in zip(ingests, reads, strict=True))
    print(
        f"\n4 million sacct rows: ingest {statistics.median(ingests):.1f} s, typed read_csv "
        f"{statistics.median(reads):.1f} s, ratio {ratio:.2f}, peak {max(memory):.2f} GB"
    )
    (root / "figures").write_text(f"{ratio} {max(memory)}", encoding="utf-8")
    return root


def test_ingest_is_at_most_four_typed_reads_in_under_4_gb(big_store: Path) -> None:
    ratio, memory = map(float, (big_store / "figures").read_text(encoding="utf-8").split())
    assert ratio <= MAX_RATIO
    assert memory < MAX_MEMORY_GB


@pytest.mark.parametrize("page", ["overview", "mttf", "data"])
def test_what_a_page_asks_takes_under_two_processor_seconds(big_store: Path, page: str) -> None:
    store = Store.open(big_store / "store0")
    everything, large = Selection(), Selection(min_gpus=MTTF_MIN_GPUS)
    asks = {
        "overview": lambda: (
            mttf.measured(store, everything),
            nodes.nodes(store, everything),
            coverage.held(store, everything),
            choices(store),
        ),
        "mttf": lambda: (
            mttf.measured(store, large),
            rate_by_group.rates(store, large, "week"),
            choices(store),
        ),
        "data": lambda: (
            coverage.held(store, everything),
            fleet.ingests(store),
            fleet.rejected_rows(store, None, FEW),
        ),
    }
    seconds = spent(asks[page])
    store.close()
    print(f"\nquestions behind {page}, nothing cached: {seconds:.2f} processor s")
    assert seconds < MAX_PAGE_SECONDS
