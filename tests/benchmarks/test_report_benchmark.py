"""A report of a year of four million jobs, in all forms, in under 20 seconds."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

MAX_SECONDS = 20.0


@pytest.mark.parametrize("forms", ["html", "html,pdf,xlsx,md,json"])
def test_a_year_of_four_million_jobs_is_reported_in_time(
    large_store: Path, tmp_path: Path, forms: str
) -> None:
    command = [sys.executable, "-m", "app.cli", "report", "--store", str(large_store)]
    begin = time.perf_counter()
    subprocess.run([*command, "--as", forms, "--out", str(tmp_path)], check=True)
    seconds = time.perf_counter() - begin
    print(f"\nreport as {forms}: {seconds:.1f} s")
    assert seconds < MAX_SECONDS
