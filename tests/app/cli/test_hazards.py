"""faultline survival --hazard: what makes nodes fail sooner, and where that cannot be told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
MAPPING = """cluster = "hal"
[columns]
node = "node"
start = "start"
"""


@pytest.fixture
def store_of(faultline: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """A store of 20 nodes, every second with driver b, and failures by number of day and node."""

    def make(failures: list[tuple[int, int]], *, known: int = 20) -> Path:
        root = tmp_path / "store"
        files = {
            "failures.csv": ["node,start", *(
                f"n{node},{BEGIN + timedelta(days=day, hours=node):%FT%TZ}" for day, node in failures
            )],
            "mapping.toml": [MAPPING],
            "nodes.csv": ["node,gpus,observed_at", *(f"n{k},8,{BEGIN:%FT%TZ}" for k in range(20))],
            "facts.csv": ["node,key,value,from_at", *(
                f"n{k},driver,{'b' if k % 2 else 'a'},{BEGIN:%FT%TZ}" for k in range(known)
            )],
        }  # fmt: skip
        for name, lines in files.items():
            (tmp_path / name).write_text("\n".join(lines) + "\n")
        for arguments in (
            ("failure-log", tmp_path / "failures.csv", "--mapping", tmp_path / "mapping.toml"),
            ("node-inventory", tmp_path / "nodes.csv", "--cluster", "hal"),
            ("node-facts", tmp_path / "facts.csv", "--cluster", "hal"),
        ):
            said = faultline("ingest", *arguments, "--store", root)
            assert said.code == 0, said
        return root

    return make


FAILURES = [(day, node) for day in range(1, 60) for node in (day * 7 % 20, day * 3 % 20)
            if node % 2 or day % 4 == 0]  # fmt: skip


def test_a_driver_that_fails_more_often_is_named(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    root = store_of(FAILURES)
    found = faultline("survival", "--hazard", "driver", "--store", root, "--format", "json").json
    (driver,) = [row for row in found["covariates"] if row["covariate"].startswith("driver")]
    assert driver["covariate"] == "driver b (to a)"
    assert driver["hazard_ratio"]["lower"] > 1.0
    assert driver["stands_out"]
    assert found["n_nodes"] == 20
    rates = faultline("rates", "--by", "driver", "--store", root, "--format", "json").json
    by_level = {row["level"]: row["failures"] for row in rates["levels"]}
    assert driver["failed_steps"] <= by_level["b"]
    said = faultline("survival", "--hazard", "DRIVER", "--store", root, "--format", "table")
    assert said.out.startswith("Nodes of driver b fail")
    assert "`rates`" in said.err


@pytest.mark.slow
def test_what_is_not_known_of_some_nodes_is_told(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    root = store_of(FAILURES, known=10)
    said = faultline("survival", "--hazard", "driver", "--store", root, "--format", "table")
    assert "node-days of nodes whose driver is not known are left out" in said.err
    said = faultline("survival", "--hazard", "firmware", "--store", root, "--format", "table")
    assert "No firmware has a ratio" in said.err
    assert "known are driver" in said.err


def test_few_failures_are_too_few(
    faultline: Callable[..., Any], store_of: Callable[..., Path]
) -> None:
    root = store_of(FAILURES[:4])
    said = faultline("survival", "--hazard", "driver", "--store", root, "--format", "table")
    assert "cannot be told: 4 failures of nodes, and 10 are needed." in said.out
    found = faultline("survival", "--hazard", "none", "--store", root, "--format", "json").json
    assert found["covariates"] == []
    assert found["own_variance"] is None


def test_options_that_would_change_nothing_are_refused(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "lives.csv"
    file.write_text("age,died\n1,1\n")
    said = faultline("survival", file, "--hazard", "driver")
    assert said.code
    assert "--hazard is of the jobs of a store" in said.err
    said = faultline("survival", "--hazard", "driver", "--by", "size", "--store", tmp_path / "none")
    assert said.code
    assert "leave out one" in said.err
