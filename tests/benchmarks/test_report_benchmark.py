"""A report of a year of four million jobs, in all forms, in under 40 processor seconds."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

MAX_SECONDS = 40.0


@pytest.mark.parametrize("forms", ["html", "html,pdf,xlsx,md,json"])
def test_a_year_of_four_million_jobs_is_reported_in_time(
    large_store: Path, tmp_path: Path, forms: str
) -> None:
    command = [sys.executable, "-m", "app.cli", "report", "--store", str(large_store)]
    command += ["--as", forms, "--out", str(tmp_path)]
    seconds = spent(lambda: subprocess.run(command, check=True))
    print(f"\nreport as {forms}: {seconds:.1f} processor s")
    assert seconds < MAX_SECONDS
