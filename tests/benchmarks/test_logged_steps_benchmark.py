"""Ten million logged steps read, and judged, beside a bare load of the same file."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

ROWS = 10_000_000
BARE = """
import duckdb, time
begin = time.process_time()
duckdb.connect().execute("CREATE TABLE t AS FROM read_csv($path, header=true, columns={{'step': "
    "'BIGINT', 'timestamp': 'DOUBLE', 'loss': 'DOUBLE', 'grad_norm': 'DOUBLE', "
    "'step_time_s': 'DOUBLE', 'lr': 'DOUBLE'}})", {{"path": "{path}"}})
print(time.process_time() - begin)
"""
READ = """
import time
from pathlib import Path
from data.ingest.logged_steps import logged_steps
from data.ingest.reader import Options
begin = time.process_time()
assert len(logged_steps(Path("{path}"), Options()).loss) == {rows}
print(time.process_time() - begin)
print(Path("/proc/self/status").read_text())
"""
JUDGED = """
import time
from pathlib import Path
from app.answers.training import logged, stability
begin = time.process_time()
found = stability.judged(logged.of_file("{path}", print)).found
assert [each.start_step for each in found.notes if each.kind == "shift"] == [7_000_000]
assert any(each.start_step == 5_000_000 for each in found.episodes)
print()
print(time.process_time() - begin)
print(Path("/proc/self/status").read_text())
"""
CASES = {"read": (READ, 2.5, 1.2), "read and judged": (JUDGED, 4.0, 1.5)}
"""Program, processor time beside a bare typed load, and memory in GB at most."""
NOISE = "sqrt(-2 * ln(1 - random())) * cos(6.283185 * random())"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a spike of 100 steps, and slower steps from the seventh million on."""
    file = tmp_path_factory.mktemp("steps") / "steps.csv"
    duckdb.sql(
        f"""COPY (SELECT i AS step, printf('%.3f', 1764547200 + i * 0.75) AS timestamp,
              printf('%.6f', 1.7 + 9 / (1 + i / 200.0) ** 0.35 + 0.02 * {NOISE}
                + CASE WHEN i BETWEEN 5000000 AND 5000099 THEN 1 ELSE 0 END) AS loss,
              printf('%.5f', 0.3 * exp(0.2 * {NOISE})) AS grad_norm,
              printf('%.4f', 0.75 * exp(0.03 * {NOISE}) * CASE WHEN i < 7000000 THEN 1 ELSE 1.3 END)
                AS step_time_s, printf('%.6e', 3e-4) AS lr
            FROM range({ROWS}) AS t(i)) TO '{file}' (HEADER)"""
    )
    return file


def said(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_ten_million_steps_take_little_more_than_a_bare_load(path: Path, name: str) -> None:
    program, most_times, most_gb = CASES[name]
    pairs = [(said(BARE.format(path=path)), said(program.format(path=path, rows=ROWS)))
             for _ in range(3)]  # fmt: skip
    times = sorted(
        float(ours.split("Name:")[0].split()[-1]) / float(bare.split()[-1]) for bare, ours in pairs
    )
    found = re.search(r"VmHWM:\s+(\d+) kB", pairs[-1][1])
    assert found is not None
    memory_gb = int(found[1]) / 1e6
    print(f"\n{name}: {times[1]:.2f} times a bare load, {memory_gb:.2f} GB")
    assert times[1] < most_times
    assert memory_gb < most_gb
