"""Which signals failures show together, and how sure that is."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError, ShapeError
from analytics.failures.co_occurrence import co_occurrence, companions


def shown(patterns: dict[tuple[str, ...], int]) -> pd.DataFrame:
    rows, number = [], 0
    for signals, n in patterns.items():
        for _ in range(n):
            rows += [(number, signal) for signal in signals]
            number += 1
    return pd.DataFrame(rows, columns=["failure", "signal"])


def test_the_published_shares_of_pcie_errors_come_out() -> None:
    # Kokolis et al., section III, RSC-1: of 100 PCIe errors 43 with XID 79, 21 with IPMI as well
    seen = shown(
        {("pcie",): 57, ("pcie", "XID 79"): 22, ("pcie", "XID 79", "ipmi"): 21, ("ib",): 50}
    )
    found = {(one.given, one.companions): one for one in companions(co_occurrence(seen, 400))}
    assert found["pcie", ("XID 79",)].share.value == 0.43
    assert found["pcie", ("XID 79", "ipmi")].share.value == 0.21
    assert found["pcie", ("XID 79",)].share.n == 100
    assert not any("ib" in companions for _, companions in found)


def test_the_lift_is_one_by_chance_and_more_where_signals_belong_together() -> None:
    chance = shown({("a", "b"): 25, ("a",): 25, ("b",): 25})
    assert co_occurrence(chance, 100)[-1].lift == pytest.approx(1.0)
    together = shown({("a", "b"): 10})
    assert co_occurrence(together, 100)[-1].lift == pytest.approx(10.0)


def test_signals_shown_twice_and_unknown_ones_do_not_count_again() -> None:
    seen = pd.DataFrame({"failure": [1, 1, 1, 2], "signal": ["a", "a", None, None]})
    (found,) = co_occurrence(seen, 1)
    assert found.share.n == 1


def test_nothing_has_no_signals() -> None:
    assert co_occurrence(shown({}), 0) == ()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="n_failures must be >= the 3 failures"):
        co_occurrence(shown({("a",): 3}), 2)
    with pytest.raises(ShapeError, match="signals must have the columns"):
        co_occurrence(pd.DataFrame({"failure": [1]}), 1)


@given(st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1), max_size=40))
def test_counts_are_those_of_a_plain_count(patterns: list[frozenset[str]]) -> None:
    rows = [(k, signal) for k, pattern in enumerate(patterns) for signal in pattern]
    found = co_occurrence(pd.DataFrame(rows, columns=["failure", "signal"]), len(patterns))
    for one in found:
        shown_by = sum(set(one.signals) <= pattern for pattern in patterns)
        assert one.share.value == pytest.approx(shown_by / one.share.n)
        assert one.share.lower <= one.share.value <= one.share.upper
    assert len(found) == len({one.signals for one in found})
