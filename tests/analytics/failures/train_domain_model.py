"""Trains the log classifier's model of domains on the composed logs: `make log-model`."""

from __future__ import annotations

import csv
import json
from importlib import resources
from pathlib import Path

from analytics.failures.log_classifier.second_opinion import COLUMNS, MODEL, UNCLEAR, texts_of
from analytics.failures.taxonomy import taxonomy
from analytics.failures.text_model.features import Texts
from analytics.failures.text_model.model import TextModel, to_document
from analytics.failures.text_model.training import train

FIRST = Path(__file__).parent / "logs"
UNSEEN = Path(__file__).parent / "unseen_logs"
MOST_TERMS = 4_000


def labelled(folder: Path) -> list[tuple[Path, str]]:
    """Logs of a set with their domain; the first logs have their cause in their name."""
    if folder == FIRST:
        return [
            (path, taxonomy().domain_of(path.stem.split("--")[0]))
            for path in sorted(folder.glob("*.log"))
        ]
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        return [(folder / row["file"], row["domain"]) for row in csv.DictReader(file)]


def rows_of(sets: list[Path]) -> tuple[list[Texts], list[str]]:
    """What the model reads of each log, and its label."""
    logs = [one for folder in sets for one in labelled(folder)]
    texts = [texts_of(path.read_text(encoding="utf-8").split("\n")) for path, _ in logs]
    return texts, [UNCLEAR if domain == "unknown" else domain for _, domain in logs]


def trained_on(sets: list[Path]) -> TextModel:
    """The model that these sets teach."""
    rows, labels = rows_of(sets)
    return train(rows, labels, columns=COLUMNS, most_terms=MOST_TERMS).model


def all_sets() -> list[Path]:
    """Every set, in order."""
    numbered = (one for one in UNSEEN.iterdir() if one.is_dir())
    return [FIRST, *sorted(numbered, key=lambda one: int(one.name))]


def main() -> None:
    """Writes the model beside the rules."""
    document = to_document(trained_on(all_sets()))
    path = Path(str(resources.files("analytics.failures.log_classifier"))) / MODEL
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
