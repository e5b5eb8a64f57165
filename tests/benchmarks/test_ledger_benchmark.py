"""The ledger of four million attempts: processor seconds of its build and of its page."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.answers.efficiency import ettr, ledger, ledger_parts
from data.filters import MTTF_MIN_GPUS, Selection
from data.publish import writer
from data.queries import efficiency
from data.store import Store
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

MAX_BUILD_SECONDS = 10.0
MAX_PAGE_SECONDS = 0.6
RUNS = ("joining attempts to runs", "writing the runs")
"""Steps of the derivation that are about job_runs, not about gpu_time."""
ROUNDS = 3


@pytest.fixture(scope="module")
def ledger_store(large_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ledger") / "store"
    shutil.copytree(large_store, root)
    return root


def built(root: Path) -> dict[str, float]:
    """Processor seconds of each step of one derivation."""
    steps: list[tuple[float, str]] = []
    with writer(root) as building:
        building.connection.execute("DELETE FROM stage_runs WHERE stage IN ('runs', 'ledger')")
        building.publish_ledger(lambda text: steps.append((time.process_time(), text)))
    begins = [begin for begin, _ in steps[1:]]
    return {text: end - begin for (begin, text), end in zip(steps, begins, strict=False)}


def test_the_ledger_is_built_in_under_10_processor_s(ledger_store: Path) -> None:
    rounds = [built(ledger_store) for _ in range(ROUNDS)]
    ledger = min(sum(s for text, s in each.items() if text not in RUNS) for each in rounds)
    runs = min(sum(each[text] for text in RUNS) for each in rounds)
    print(f"\nledger of 4 million attempts: {ledger:.2f} s, runs: {runs:.2f} s; {rounds[0]}")
    assert ledger < MAX_BUILD_SECONDS


def test_the_page_is_answered_in_under_600_ms_of_a_processor(ledger_store: Path) -> None:
    if not efficiency.has_ledger(Store.open(ledger_store)):
        built(ledger_store)
    pages, ettrs = [], []
    for _ in range(ROUNDS):
        with closing(Store.open(ledger_store)) as store:  # which keeps some answers
            pages.append(spent(lambda store=store: _page(store)))
            large = Selection(min_gpus=MTTF_MIN_GPUS)
            ettrs.append(spent(lambda store=store, large=large: ettr.measured(store, large)))
    print(f"\nledger page: {min(pages):.3f} processor s, ETTR: {min(ettrs):.3f}")
    assert min(pages) < MAX_PAGE_SECONDS


def _page(store: Store) -> None:
    ledger.measured(store, Selection())
    ledger_parts.measured(store, Selection(), "day")
    ledger_parts.measured(store, Selection(), "account")
