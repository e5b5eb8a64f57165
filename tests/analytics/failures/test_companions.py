"""What comes with a signal, and how often."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.failures.co_occurrence import co_occurrence, companions


def _companions(shown: dict[str, list[str]], n: int | None = None) -> dict[tuple[str, ...], float]:
    rows = [(failure, signal) for failure, signals in shown.items() for signal in signals]
    sets = co_occurrence(pd.DataFrame(rows, columns=["failure", "signal"]), n or len(shown))
    return {(one.given, *one.companions): one.share.value for one in companions(sets)}


def test_the_published_share_is_found() -> None:
    """43 of 100 PCIe errors with XID 79, 21 with a critical interrupt as well (Kokolis et al.)."""
    shown = {f"f{n}": ["pcie"] for n in range(100)}
    for n in range(43):
        shown[f"f{n}"] = ["pcie", "XID 79", *(["interrupt"] if n < 21 else [])]
    found = _companions(shown, 1000)
    assert found["pcie", "XID 79"] == pytest.approx(0.43)
    assert found["pcie", "XID 79", "interrupt"] == pytest.approx(0.21)
    assert found["XID 79", "pcie"] == 1.0


def test_the_interval_is_that_of_the_failures_with_the_signal() -> None:
    rows = pd.DataFrame({"failure": ["a", "a", "b"], "signal": ["x", "y", "x"]})
    (of_x,) = (one for one in companions(co_occurrence(rows, 50)) if one.given == "x")
    assert (of_x.n_both, of_x.share.n) == (1, 2)
    assert of_x.share.lower == pytest.approx(0.0253, abs=1e-3)


def test_signals_that_come_alone_have_no_companions() -> None:
    assert _companions({"a": ["x"], "b": ["y"]}) == {}


def test_nothing_shown_is_no_companion() -> None:
    empty = pd.DataFrame({"failure": [], "signal": []}, dtype=object)
    assert companions(co_occurrence(empty, 5)) == ()
