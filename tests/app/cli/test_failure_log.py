"""Of a failure log no incident and no GPU-hour is known: nothing is claimed, and nothing crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from analytics.frames import LEDGER_GROUPS
from app.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = "node,start,end,cause\n" + "".join(
    f"n{day % 3},2026-01-{day:02}T06:00:00,2026-01-{day:02}T08:00:00,hardware\n"
    for day in range(1, 28)
)
MAPPING = """time_format = ["iso"]
[columns]
node = "node"
start = "start"
end = "end"
cause = "cause"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """27 failures of three nodes, no job."""
    folder = tmp_path_factory.mktemp("failure-log")
    (folder / "log.csv").write_text(LOG)
    (folder / "own.toml").write_text(MAPPING)
    command = ["ingest", "failure-log", str(folder / "log.csv"), "--cluster", "c"]
    mapping = ["--mapping", str(folder / "own.toml"), "--store", str(folder / "store")]
    assert main([*command, *mapping]) == 0
    return folder / "store"


def test_incidents_of_a_failure_log_are_unknown_and_not_zero(
    faultline: Callable[..., Any], store: Path
) -> None:
    said = faultline("incidents", "--store", store, "--summary", "--format", "json")
    of_sight = {
        "definition",
        "notes",
        "days",
        "days_seen",
        "clusters_not_seen",
        "reason",
        "collect",
    }
    assert {value for key, value in said.json.items() if key not in of_sight} == {None}
    assert "n_incidents" in said.json
    table = faultline("incidents", "--store", store, "--summary", "--format", "table").out
    assert table.startswith("Incidents are not derived from failure logs: 27 failures are")
    assert "No incident" not in table


@pytest.mark.parametrize("by", LEDGER_GROUPS)
def test_groups_of_a_ledger_without_jobs_are_none(
    faultline: Callable[..., Any], store: Path, by: str
) -> None:
    assert faultline("ledger", "--store", store, "--by", by, "--format", "json").json == []
    said = faultline("ledger", "--store", store, "--by", by, "--format", "table")
    assert (said.code, "No GPU-hours are known." in said.out) == (0, True)
