"""The confusion matrix counts what is right, and says where verdicts mislead."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.failures.confusion import confusion_matrix

COLUMNS = ["actual", "actual_domain", "found", "found_domain", "has_event", "n"]
ROWS = pd.DataFrame(
    [
        ("pcie", "hardware", "pcie", "hardware", True, 18),
        ("pcie", "hardware", "unknown", "unknown", True, 2),
        ("key_error", "user", "unknown", "unknown", False, 70),
        ("key_error", "user", "key_error", "user", False, 20),
        ("key_error", "user", "pcie", "hardware", False, 10),
    ],
    columns=COLUMNS,
)


def test_rows_are_right_causes_and_columns_found_ones() -> None:
    matrix = confusion_matrix(ROWS)
    assert matrix.actual == ("pcie", "key_error")
    assert matrix.found == ("pcie", "key_error", "unknown")
    assert matrix.counts == ((18, 0, 2), (10, 20, 70))
    assert matrix.n_attempts == 120


def test_precision_and_recall_of_a_cause() -> None:
    score = next(s for s in confusion_matrix(ROWS).scores if s.cause == "pcie")
    assert (score.n_actual, score.n_found, score.n_right) == (20, 28, 18)
    assert score.precision.value == pytest.approx(18 / 28)
    assert score.recall.value == pytest.approx(0.9)


def test_a_cause_that_is_never_right_has_no_recall() -> None:
    score = next(s for s in confusion_matrix(ROWS).scores if s.cause == "unknown")
    assert (score.n_actual, score.recall.value, score.precision.value) == (0, None, 0.0)


def test_the_shares_that_say_where_verdicts_mislead() -> None:
    matrix = confusion_matrix(ROWS)
    assert matrix.right_ratio.value == pytest.approx(38 / 120)
    assert matrix.right_where_named_ratio.value == pytest.approx(38 / 48)
    assert matrix.right_with_event_ratio.value == pytest.approx(0.9)
    assert matrix.not_misled_ratio.value == pytest.approx(0.9)
    assert matrix.user_called_hardware_ratio.value == pytest.approx(0.1)


def test_where_nothing_says_which_have_an_event_the_shares_are_unknown() -> None:
    matrix = confusion_matrix(ROWS.assign(has_event=None))
    assert matrix.right_with_event_ratio.value is None
    assert matrix.not_misled_ratio.value is None
    assert matrix.right_ratio.value == pytest.approx(38 / 120)


def test_the_order_of_rows_is_irrelevant() -> None:
    assert confusion_matrix(ROWS) == confusion_matrix(ROWS[::-1])


def test_nothing_to_compare_is_unknown() -> None:
    matrix = confusion_matrix(ROWS.head(0))
    assert (matrix.actual, matrix.counts, matrix.right_ratio.value) == ((), (), None)


def test_shares_of_a_right_cause_sum_to_one() -> None:
    matrix = confusion_matrix(ROWS)
    assert matrix.n_by_actual == (20, 100)
    assert matrix.shares_of_actual == ((0.9, 0.0, 0.1), (0.1, 0.2, 0.7))
