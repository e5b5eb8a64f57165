"""The demo is quick by default and possible at the size of the paper's cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from data.synthetic import DemoSpec, demo_cluster
from tests.benchmarks.spent import spent

PAPER_SIZED = """
import resource
from data.synthetic import DemoSpec, demo_cluster
demo = demo_cluster(DemoSpec(n_jobs=4_000_000, n_nodes=2_000, days=330))
assert demo.tables["jobs"].num_rows == 4_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.benchmark
def test_the_default_takes_less_than_twelve_processor_seconds() -> None:
    assert spent(lambda: demo_cluster(DemoSpec())) < 12


@pytest.mark.benchmark
def test_four_million_jobs_take_minutes_and_less_than_eight_gigabytes() -> None:
    peak_kb: list[int] = []
    command = [sys.executable, "-c", PAPER_SIZED]
    seconds = spent(lambda: peak_kb.append(int(subprocess.check_output(command, text=True))))
    assert seconds < 400
    assert peak_kb[0] < 8_000_000
