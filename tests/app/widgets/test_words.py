"""Numbers, commands and published figures as they are written."""

from __future__ import annotations

import doctest
import subprocess
from datetime import date

import pytest

from app import actions
from app.answers.content import Table
from app.answers.reliability import projection
from app.figures import template
from app.widgets import export_help
from app.words import numbers


@pytest.mark.parametrize("module", [numbers, template], ids=lambda m: m.__name__)
def test_examples_hold(module: object) -> None:
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_not_a_number_is_unknown(value: float | None) -> None:
    assert numbers.number(value) == numbers.count(value) == numbers.duration(value) == "unknown"


def test_every_source_has_its_export_explained() -> None:
    assert set(export_help.EXPORTS) == set(actions.sources())


@pytest.mark.parametrize("source", list(export_help.EXPORTS))
def test_commands_are_bash_that_parses(source: str) -> None:
    export = export_help.EXPORTS[source]
    values = {
        "start": date(2026, 1, 1),
        "end": date(2026, 2, 1),
        "cluster": "c",
        "timezone": "Europe/Berlin",
    }
    for command in (export.export.format(**values), export.ingest.format(**values)):
        subprocess.run(["bash", "-n", "-c", command], check=True)
    assert f"faultline ingest {source} " in export.ingest


def test_the_columns_of_sacct_are_one_word_for_the_shell() -> None:
    command = f"printf '%s\\n' --format={export_help.SACCT_COLUMNS}"
    lines = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    (word,) = lines.stdout.splitlines()
    assert "FailedNode" in word
    assert " " not in word


def test_published_figures_stand_beside_the_published_rate() -> None:
    (table,) = projection.published().blocks
    assert isinstance(table, Table)
    printed = {gpus: (projected, implied) for gpus, _, projected, implied, _ in table.printed}
    assert printed["1,024"] == ("28.8 h", "23.7")
    assert printed["8"][1] == "21.0"
    assert printed["131,072"][0] == "13.5 min"
