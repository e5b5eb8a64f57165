"""faultline ledger: every bucket, groups without holes, and what is recorded told from guesses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files

if TYPE_CHECKING:
    from collections.abc import Callable

SACCT = """JobID|Cluster|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList|Restarts
1|c|x|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|2|gres/gpu=16|n[1-2]|0
3|c|x|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T00:30:00|1|gres/gpu=8|n3|0
4|c|y|COMPLETED|2026-01-06T12:00:00|2026-01-06T12:00:00|2026-01-07T00:00:00|1|gres/gpu=8|n2|0
2|c|y|COMPLETED|2026-01-06T00:00:00|2026-01-06T00:00:00|2026-01-07T00:00:00|1|gres/gpu=8|n1|0
"""
EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
c|n2|2026-01-06T02:00:00|2026-01-06T03:00:00|DRAIN|inspection|root
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of two accounts: only one of x, on two nodes, starts up and saves."""
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "sacct.txt").write_text(SACCT, encoding="utf-8")
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    return folder / "store"


def test_a_bucket_of_which_a_group_has_none_is_zero(
    faultline: Callable[..., Any], store: Path
) -> None:
    found = {row["account"]: row for row in faultline("ledger", "--store", store,
             "--by", "account").json}  # fmt: skip
    assert set(found) == {"x", "y", None}
    assert found["y"]["startup"] == 0.0
    assert found["x"]["startup"] > 0.0
    assert found["x"]["idle"] == 0.0
    held = sum(hours for name, hours in found["x"].items() if name != "account")
    assert held == pytest.approx(16 * 24 + 8 / 2)


def test_a_table_of_groups_is_rounded(faultline: Callable[..., Any], store: Path) -> None:
    given = ("ledger", "--store", store, "--by", "account", "--format")
    lines = faultline(*given, "table").out.splitlines()
    cells = [cell for line in lines[2:] for cell in line.split() if cell[0].isdigit()]
    assert cells
    assert all(len(cell.replace(",", "").replace(".", "").strip("0")) <= 3 for cell in cells)
    assert faultline(*given, "csv").out.startswith("account,")


def test_only_estimates_have_an_interval(
    faultline: Callable[..., Any], store: Path, tmp_path: Path
) -> None:
    shutil.copytree(store, tmp_path / "store")
    (tmp_path / "events.txt").write_text(EVENTS, encoding="utf-8")
    ingest_files(
        tmp_path / "store", "sacctmgr-events", [str(tmp_path / "events.txt")],
        Options(timezone="UTC"),
    )  # fmt: skip
    said = faultline("ledger", "--store", tmp_path / "store", "--format", "table").out.splitlines()
    cells = {line.split("  ")[0]: line.split("  ")[1:] for line in said}
    printed = {name: [cell for cell in row if cell.strip()] for name, row in cells.items()}
    assert len(printed["Start-up"]) == 4  # value, both bounds, share
    assert len(printed["Idle"]) == len(printed["Drained"]) == 2
    assert "n = 0" not in "".join(said)


def test_without_states_of_nodes_free_time_is_no_more_than_a_bound(
    faultline: Callable[..., Any], store: Path
) -> None:
    said = faultline("ledger", "--store", store)
    found = {each["bucket"]: each for each in said.json["buckets"]}
    free = found["idle"]["gpu_hours"] + found["queue_hold"]["gpu_hours"]
    assert found["idle"]["lower"] == 0.0 < found["idle"]["gpu_hours"]
    for name in ("drained", "down_planned", "down_unplanned"):
        assert (found[name]["gpu_hours"], found[name]["lower"], found[name]["upper"]) == (
            0,
            0,
            free,
        )
    assert "No record says when nodes were out of service" in said.err
