"""Logs composed by people who had not seen the rules: what share of them is read rightly.

`unseen_logs/README.md` has the figures of the first look at each set, before a rule was changed on
it. The bounds here say that nothing got worse since.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from analytics.failures.log_classifier import LogVerdict, classify_log

FOLDER = Path(__file__).parent / "unseen_logs"
SETS = sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())
LEAST_DOMAINS, LEAST_CAUSES, LEAST_TRAPS = 0.98, 0.84, 0.95
MOST_USER_AS_HARDWARE = 0.01
Judged = list[tuple[dict[str, str], LogVerdict]]


@pytest.fixture(scope="module")
def judged() -> dict[str, Judged]:
    return {name: judge(FOLDER / name) for name in SETS}


def judge(folder: Path) -> Judged:
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as labels:
        rows = list(csv.DictReader(labels))
    logs = [(folder / row["file"]).read_text(encoding="utf-8").split("\n") for row in rows]
    return [(row, classify_log(log)) for row, log in zip(rows, logs, strict=True)]


def share(judged: Judged, field: str) -> tuple[float, list[str]]:
    """Share of logs whose verdict has the label's value in a field, and the others' names."""
    wrong = [row["file"] for row, verdict in judged if getattr(verdict, field) != row[field]]
    return 1 - len(wrong) / len(judged), wrong


def traps(judged: Judged) -> Judged:
    return [one for one in judged if one[0]["trap"] == "yes"]


@pytest.mark.parametrize("name", SETS)
def test_every_log_has_a_label_and_a_quarter_are_traps(
    name: str, judged: dict[str, Judged]
) -> None:
    assert len(judged[name]) == len(list((FOLDER / name).glob("*.log"))) >= 100
    assert len(traps(judged[name])) >= 0.25 * len(judged[name])


@pytest.mark.parametrize("name", SETS)
def test_domains_and_causes_are_right_as_often_as_before(
    name: str, judged: dict[str, Judged]
) -> None:
    domains, causes = share(judged[name], "domain"), share(judged[name], "cause")
    told = f"domain right {domains[0]:.3f} {domains[1]}, cause right {causes[0]:.3f}"
    assert domains[0] >= LEAST_DOMAINS, told
    assert causes[0] >= LEAST_CAUSES, f"{told}; wrong {causes[1]}"


@pytest.mark.parametrize("name", SETS)
def test_traps_are_seen_through_as_often_as_before(name: str, judged: dict[str, Judged]) -> None:
    right, wrong = share(traps(judged[name]), "domain")
    assert right >= LEAST_TRAPS, f"traps right {right:.3f}; wrong {wrong}"


def test_failures_of_programs_are_not_called_hardware(judged: dict[str, Judged]) -> None:
    user = [one for of_set in judged.values() for one in of_set if one[0]["domain"] == "user"]
    wrong = [row["file"] for row, verdict in user if verdict.domain == "hardware"]
    assert len(wrong) <= MOST_USER_AS_HARDWARE * len(user), f"{len(wrong)} of {len(user)}: {wrong}"
