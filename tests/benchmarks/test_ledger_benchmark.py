"""The ledger of four million attempts: built in under 5 s, its page answered in under 300 ms."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from app.answers.efficiency import ettr, ledger, ledger_parts
from data.filters import MTTF_MIN_GPUS, Selection
from data.publish import writer
from data.queries import efficiency
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

MAX_BUILD_SECONDS = 5.0
MAX_PAGE_SECONDS = 0.3
RUNS = ("joining attempts to runs", "writing the runs")
"""Steps of the derivation that are about job_runs, not about gpu_time."""
ROUNDS = 3


@pytest.fixture(scope="module")
def ledger_store(large_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ledger") / "store"
    shutil.copytree(large_store, root)
    return root


def built(root: Path) -> dict[str, float]:
    """Seconds of each step of one derivation."""
    steps: list[tuple[float, str]] = []
    with writer(root) as building:
        building.connection.execute("DELETE FROM stage_runs WHERE stage IN ('runs', 'ledger')")
        building.publish_ledger(lambda text: steps.append((time.perf_counter(), text)))
    begins = [begin for begin, _ in steps[1:]]
    return {text: end - begin for (begin, text), end in zip(steps, begins, strict=False)}


def test_the_ledger_is_built_in_under_5_s(ledger_store: Path) -> None:
    rounds = [built(ledger_store) for _ in range(ROUNDS)]
    ledger = min(sum(s for text, s in each.items() if text not in RUNS) for each in rounds)
    runs = min(sum(each[text] for text in RUNS) for each in rounds)
    print(f"\nledger of 4 million attempts: {ledger:.2f} s, runs: {runs:.2f} s; {rounds[0]}")
    assert ledger < MAX_BUILD_SECONDS


def test_the_page_is_answered_in_under_300_ms(ledger_store: Path) -> None:
    if not efficiency.has_ledger(Store.open(ledger_store)):
        built(ledger_store)
    seconds = []
    for _ in range(ROUNDS):
        store = Store.open(ledger_store)
        begin = time.perf_counter()
        ledger.measured(store, Selection())
        ledger_parts.measured(store, Selection(), "day")
        ledger_parts.measured(store, Selection(), "account")
        seconds.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        ettr.measured(store, Selection(min_gpus=MTTF_MIN_GPUS))
        print(f"\nledger page: {seconds[-1]:.3f} s, ETTR: {time.perf_counter() - begin:.3f} s")
        store.close()
    assert min(seconds) < MAX_PAGE_SECONDS
