"""faultline config check: site.toml is explained, mistakes are named."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = """[cluster.a]
gpus_per_node = 8
timezone = "Europe/Berlin"
[attribution]
before_minutes = 20
[alerts]
"""
MISTAKES = {
    "no TOML": ("[cluster", "is not TOML"),
    "a section misspelt": ("[clusters.a]", "did you mean 'cluster'?"),
    "a key misspelt": ("[cluster.a]\ngpus_per_nodes = 8", "did you mean 'gpus_per_node'?"),
    "no number": ('[cluster.a]\ngpus_per_node = "8"', "must be a whole number > 0"),
    "a zone that is none": ('[cluster.a]\ntimezone = "Berlin"', "must be an IANA zone"),
    "an alias that is no list": ('[nodes]\ngpu1 = "mgmt-1"', 'write e.g. "gpu1" = ["gpu1-mgmt"'),
    "an alias without a name": (
        '[nodes]\ngpu1 = [" "]',
        "must be a list of the node's other names",
    ),
    "an alias of two nodes": ('[nodes]\na = ["X"]\nb = ["x"]', "'x' is a name of 'a' too"),
    "an alias that is a node": ('[nodes]\na = ["b"]\nb = []', "'b' is a name of 'a' too"),
    "a window of years": ("[attribution]\nafter_minutes = 99999", "minutes from 0 to 1440"),
}


def test_a_site_without_a_file_has_the_defaults(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    said = faultline("config", "check", "--store", tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.json["valid"] is True
    assert said.json["exists"] is False
    assert said.json["attribution_before_minutes"] == 10.0


def test_other_names_of_nodes_are_told(faultline: Callable[..., Any], tmp_path: Path) -> None:
    text = '[nodes]\ngpu1 = ["mgmt-1", "10.0.0.17"]\n"gpu2.b" = []\n'
    (tmp_path / "site.toml").write_text(text, encoding="utf-8")
    said = faultline("config", "check", "--store", tmp_path)
    assert said.json["nodes"] == {"gpu1": ["mgmt-1", "10.0.0.17"], "gpu2.b": []}


def test_a_good_file_is_told_in_every_form(faultline: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(GOOD, encoding="utf-8")
    said = faultline("config", "check", "--store", tmp_path)
    assert said.json["clusters"] == ["a"]
    assert said.json["attribution_before_minutes"] == 20
    assert said.json["alerts"]["false_alarms_per_month"] == 1.0
    table = faultline("config", "check", "--store", tmp_path, "--format", "table")
    assert "attribution_before_minutes  20" in table.out
    text = faultline("config", "check", "--store", tmp_path, "--format", "csv").out
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["clusters"] == '["a"]'


def test_what_runs_rest_on_is_told_in_the_words_of_the_file(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    text = """[runs]
checkpoint_interval_min = [15, 60]
name_min_gpus = 64
[runs.one_node]
restart_min = 0
"""
    (tmp_path / "site.toml").write_text(text, encoding="utf-8")
    said = faultline("config", "check", "--store", tmp_path).json
    runs = said["runs"]
    assert (runs["names"], runs["name_min_gpus"], runs["gap_hours"]) == ("chain", 64, 24)
    assert runs["checkpoint_interval_min"] == [15, 60]
    assert not {"restart_min", "array_min_gpus"} & runs.keys()  # not stated
    assert said["runs_one_node"] == {"restart_min": [0, 0]}


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_file(
    refused: Callable[..., str], tmp_path: Path, case: tuple[str, str]
) -> None:
    text, message = case
    (tmp_path / "site.toml").write_text(text, encoding="utf-8")
    told = refused("config", "check", "--store", tmp_path)
    assert message in told
    assert str(tmp_path / "site.toml") in told


def test_rules_and_clusters_that_nobody_knows_are_told(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    text = """[alerts]
off = ["new_lemno", "hang"]
[alerts.targets.alsp]
ettr = 0.9
[[alerts.receiver]]
name = "team"
address = "http://a.example/"
rules = ["nolemon"]
clusters = ["alsp"]
"""
    (tmp_path / "site.toml").write_text(text, encoding="utf-8")
    said = faultline("config", "check", "--store", tmp_path)
    assert said.code == 0
    assert "[alerts] off: no rule is called 'new_lemno': did you mean 'new_lemon'?" in said.err
    assert "[alerts] rules of the receiver team: no rule is called 'nolemon'" in said.err
    assert said.err.count("no rule is called") == 2
    assert "no cluster" not in said.err, "no store says which there are"


def test_a_folder_that_is_not_there_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "is no folder" in refused("config", "check", "--store", tmp_path / "none")


def test_there_is_one_thing_to_do(refused: Callable[..., str]) -> None:
    assert "invalid choice: 'mend'" in refused("config", "mend")
