"""What start-up alone costs: real training runs of 512 to 10,752 GPUs, none of them interrupted.

MLPerf Training v3.1, GPT-3, read here and nowhere in the product: one `init_start` a rank, then
`run_start` and `run_stop`. Their start-up is u0, their run R: with nothing failing the expected
ETTR is run / (start-up + run).
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from analytics.efficiency.expected_ettr import EttrSettings, expected_ettr

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "mlperf"
MARK = ":::MLLOG "
KEYS = ("init_start", "run_start", "run_stop")


def minutes_of(path: Path) -> tuple[int, float, float]:
    """Ranks of a run, minutes of its start-up and of its training."""
    times: dict[str, list[int]] = {key: [] for key in KEYS}
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            _, mark, text = line.partition(MARK)
            if mark and (entry := json.loads(text))["key"] in times:
                times[entry["key"]].append(entry["time_ms"])
    begun, (started,), (stopped,) = (times[key] for key in KEYS)
    return len(begun), (started - min(begun)) / 60_000, (stopped - started) / 60_000


@pytest.fixture(scope="module")
def ettr_by_size() -> dict[int, float]:
    if not FOLDER.is_dir():
        pytest.skip(f"real data are not at {FOLDER}")
    found = defaultdict(list)
    for path in sorted(FOLDER.glob("*.txt.gz")):
        gpus, start_up, run = minutes_of(path)
        job = EttrSettings(
            gpus=gpus, rate_per_1000_node_days=0.0, restart_min=start_up, run_days=run / 1440
        )
        ettr = expected_ettr(job).full
        assert ettr == pytest.approx(run / (start_up + run))
        found[gpus].append(ettr)
    return {gpus: statistics.median(values) for gpus, values in found.items()}


def test_start_up_costs_a_twentieth_at_512_gpus_and_most_of_a_run_at_10752(
    ettr_by_size: dict[int, float],
) -> None:
    assert ettr_by_size[512] == pytest.approx(0.954, abs=0.0005)
    assert ettr_by_size[10_752] == pytest.approx(0.37, abs=0.005)


def test_the_larger_the_job_the_more_its_start_up_costs(ettr_by_size: dict[int, float]) -> None:
    shares = [ettr_by_size[gpus] for gpus in sorted(ettr_by_size)]
    assert len(shares) == 6
    assert shares == sorted(shares, reverse=True)
