"""The line under the head of a page says what Overview says, whatever the page counts itself."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.answers.efficiency.ledger_parts import NOT_COMPUTED
from app.answers.fleet.in_short import InShort, as_overview, in_short
from app.ask import of_store, once
from data.filters import MTTF_MIN_GPUS, Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.ask import Ask


@pytest.fixture
def line() -> Iterator[Callable[[Path, Selection], InShort]]:
    """What the line of a page says; the same question is asked of a store once."""
    asks: dict[Path, Ask] = {}

    with ExitStack() as opened:

        def said(root: Path, selection: Selection) -> InShort:
            if root not in asks:
                asks[root] = once(of_store(opened.enter_context(closing(Store.open(root)))))
            return in_short(asks[root], as_overview(selection))

        yield said


@pytest.mark.slow
def test_sizes_and_definition_of_a_page_change_nothing(
    line: Callable[[Path, Selection], InShort], demo_store: Path
) -> None:
    everything = Selection()
    said = line(demo_store, everything)
    assert said.lost.endswith(" GPU-h")
    for of_page in (
        replace(everything, min_gpus=MTTF_MIN_GPUS),
        replace(everything, definition="paper"),
    ):
        assert line(demo_store, of_page) == said
    chosen = replace(everything, min_gpus=MTTF_MIN_GPUS, by_size_min_gpus=MTTF_MIN_GPUS)
    assert line(demo_store, chosen).lost != said.lost, "sizes that the reader chose count"


def test_nothing_is_well_where_nothing_could_be_seen(
    line: Callable[[Path, Selection], InShort], empty_store: Path
) -> None:
    said = line(empty_store, Selection())
    assert said.verdict == "unknown"
    assert said.commonest is None
    assert "GPU-h" not in said.lost
    assert said.lost in (NOT_COMPUTED, "unknown")
