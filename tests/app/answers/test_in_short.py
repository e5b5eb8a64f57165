"""The line under the head of a page says what Overview says, whatever the page counts itself."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.answers.efficiency.ledger_parts import NOT_COMPUTED
from app.answers.fleet.actions import listed
from app.answers.fleet.in_short import InShort, as_overview, in_short
from app.ask import of_store
from data.filters import MTTF_MIN_GPUS, Selection
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 9, tzinfo=UTC)


def _line(root: Path, selection: Selection) -> InShort:
    with closing(Store.open(root)) as store:
        seen, ask = as_overview(selection), of_store(store)
        known = listed.found(ask, seen, "UTC")
        return in_short(ask, seen, NOW, timezone="UTC", said=(), known=known)


def test_sizes_and_definition_of_a_page_change_nothing(demo_store: Path) -> None:
    everything = Selection()
    said = _line(demo_store, everything)
    assert said.lost.endswith(" GPU-h")
    assert said.first is not None
    for of_page in (
        replace(everything, min_gpus=MTTF_MIN_GPUS),
        replace(everything, definition="paper"),
    ):
        assert _line(demo_store, of_page) == said
    chosen = replace(everything, min_gpus=MTTF_MIN_GPUS, by_size_min_gpus=MTTF_MIN_GPUS)
    assert _line(demo_store, chosen).lost != said.lost, "sizes that the reader chose count"


def test_nothing_is_well_where_nothing_could_be_seen(empty_store: Path) -> None:
    said = _line(empty_store, Selection())
    assert said.verdict == "unknown"
    assert said.commonest is None
    assert "GPU-h" not in said.lost
    assert said.lost in (NOT_COMPUTED, "unknown")
