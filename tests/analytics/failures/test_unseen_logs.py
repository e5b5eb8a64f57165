"""Logs composed by someone who had not seen the rules: what share of them is read rightly."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from analytics.failures.log_classifier import LogVerdict, classify_log

FOLDER = Path(__file__).parent / "unseen_logs"
LEAST_DOMAINS, LEAST_CAUSES, LEAST_TRAPS = 0.98, 0.94, 0.98
MOST_USER_AS_HARDWARE = 0.01
Judged = list[tuple[dict[str, str], LogVerdict]]


@pytest.fixture(scope="module")
def judged() -> Judged:
    with (FOLDER / "labels.csv").open(encoding="utf-8", newline="") as labels:
        rows = list(csv.DictReader(labels))
    logs = [(FOLDER / row["file"]).read_text(encoding="utf-8").split("\n") for row in rows]
    return [(row, classify_log(log)) for row, log in zip(rows, logs, strict=True)]


def share(judged: Judged, field: str) -> tuple[float, list[str]]:
    """Share of logs whose verdict has the label's value in a field, and the others' names."""
    wrong = [row["file"] for row, verdict in judged if getattr(verdict, field) != row[field]]
    return 1 - len(wrong) / len(judged), wrong


def test_all_logs_are_judged(judged: Judged) -> None:
    traps = [row for row, _ in judged if row["trap"] == "yes"]
    assert (len(judged), len(traps)) == (117, 51)


def test_domains_and_causes_are_right_as_often_as_before(judged: Judged) -> None:
    domains, causes = share(judged, "domain"), share(judged, "cause")
    told = f"domain right {domains[0]:.3f}, cause right {causes[0]:.3f}; wrong {causes[1]}"
    assert domains[0] >= LEAST_DOMAINS, told
    assert causes[0] >= LEAST_CAUSES, told


def test_traps_are_seen_through_as_often_as_before(judged: Judged) -> None:
    right, wrong = share([one for one in judged if one[0]["trap"] == "yes"], "domain")
    assert right >= LEAST_TRAPS, f"traps right {right:.3f}; wrong {wrong}"


def test_failures_of_programs_are_not_called_hardware(judged: Judged) -> None:
    user = [one for one in judged if one[0]["domain"] == "user"]
    wrong = [row["file"] for row, verdict in user if verdict.domain == "hardware"]
    assert len(wrong) <= MOST_USER_AS_HARDWARE * len(user), f"{len(wrong)} of {len(user)}: {wrong}"
