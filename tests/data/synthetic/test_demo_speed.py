"""The demo is quick by default and possible at the size of the paper's cluster."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from data.synthetic import DemoSpec, demo_cluster

PAPER_SIZED = """
import resource
from data.synthetic import DemoSpec, demo_cluster
demo = demo_cluster(DemoSpec(n_jobs=4_000_000, n_nodes=2_000, days=330))
assert demo.tables["jobs"].num_rows == 4_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.benchmark
def test_the_default_takes_less_than_twelve_seconds() -> None:
    began = time.perf_counter()
    demo_cluster(DemoSpec())
    assert time.perf_counter() - began < 12


@pytest.mark.benchmark
def test_four_million_jobs_take_minutes_and_less_than_eight_gigabytes() -> None:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PAPER_SIZED], check=True, capture_output=True, text=True
    )
    assert time.perf_counter() - began < 300
    assert int(done.stdout) < 8_000_000
