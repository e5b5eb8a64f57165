"""What one session had made, others need not have made again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from app.ask.cached import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

MADE: list[object] = []


@dataclass(frozen=True)
class Asked:
    at: datetime
    sizes: tuple[float, ...]


@pytest.fixture(autouse=True)
def _nothing_made() -> Iterator[None]:
    st.cache_resource.clear()
    MADE.clear()
    yield
    st.cache_resource.clear()


def make(content: object, *, mode: str = "light") -> list[object]:
    MADE.append((content, mode))
    return [content, mode]


def make_other(content: object) -> list[object]:
    return [content]


def _large(changed: int) -> np.ndarray:
    values = np.zeros(100_000)  # printed, all but its ends would be three dots
    values[50_000] = changed
    return values


def test_the_same_content_is_made_once() -> None:
    first = kept(make, Asked(datetime(2026, 1, 5, tzinfo=UTC), (8.0,)))
    again = kept(make, Asked(datetime(2026, 1, 5, tzinfo=UTC), (8.0,)))
    assert first is again
    assert len(MADE) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            Asked(datetime(2026, 1, 5, tzinfo=UTC), (8.0,)),
            Asked(datetime(2026, 1, 6, tzinfo=UTC), ()),
        ),
        (_large(1), _large(2)),
        (pd.DataFrame({"n": _large(1)}), pd.DataFrame({"n": _large(2)})),
        (None, ""),
        (1, "1"),
    ],
    ids=["records", "arrays", "frames", "nothing", "kinds"],
)
def test_other_content_is_made_anew(one: object, other: object) -> None:
    kept(make, one)
    kept(make, other)
    assert len(MADE) == 2


def test_options_and_functions_tell_apart() -> None:
    assert kept(make, 1) == [1, "light"]
    assert kept(make, 1, mode="dark") == [1, "dark"]
    assert kept(make_other, 1) == [1]
