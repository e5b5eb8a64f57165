"""Published tables of causes: what is printed and what the counts give."""

from __future__ import annotations

import pytest

from analytics.errors import AnalysisError
from analytics.failures.published_causes import published_causes


def test_llama3_counts_419_interruptions_and_prints_shares_of_94_9_percent() -> None:
    table = published_causes("llama3")
    assert (table.total, len(table.rows)) == (419, 18)
    assert table.printed_ratio() == pytest.approx(0.949)


def test_llama3_recomputed_differs_from_the_print_only_in_faulty_gpu() -> None:
    table = published_causes("llama3")
    assert table.printed_ratio(label="Faulty GPU") == pytest.approx(0.301)
    assert table.count_ratio(label="Faulty GPU") == pytest.approx(0.353, abs=5e-4)
    for row in table.rows:
        if row.label != "Faulty GPU":
            assert table.count_ratio(label=row.label) == pytest.approx(row.printed_ratio, abs=6e-4)


def test_llama3_gpu_share_is_64_percent_by_count_and_58_7_as_printed() -> None:
    table = published_causes("llama3")
    assert table.count_ratio(component="GPU") == pytest.approx(268 / 419)
    assert table.count_ratio(component="GPU") == pytest.approx(0.640, abs=5e-4)
    assert table.printed_ratio(component="GPU") == pytest.approx(0.587, abs=5e-4)


def test_acme_counts_2575_failures_in_three_groups_of_29_reasons() -> None:
    table = published_causes("acme")
    counts = {
        group: sum(row.count for row in table.rows if row.component == group)
        for group in ("infrastructure", "framework", "script")
    }
    assert counts == {"infrastructure": 281, "framework": 404, "script": 1890}
    assert (table.total, len(table.rows)) == (2575, 29)


def test_acme_infrastructure_costs_82_percent_of_gpu_time_with_11_percent_of_failures() -> None:
    table = published_causes("acme")
    assert table.count_ratio(component="infrastructure") == pytest.approx(0.109, abs=5e-4)
    for group, printed in (("infrastructure", 0.8206), ("framework", 0.1471), ("script", 0.0322)):
        assert table.printed_ratio(component=group) == pytest.approx(printed, abs=6e-4)


def test_another_table_is_refused() -> None:
    with pytest.raises(AnalysisError, match="scheme must be llama3 or acme, got 'rsc'"):
        published_causes("rsc")
