"""A site.toml other than at the last publish is told until a publish or a check takes it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from data.publish import writer
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATED = """[cluster.c]
gpu_hour_price = 2.5
gpu_model = "H100"
[reports.smtp]
user = "reporter"
"""


@pytest.fixture
def store(tmp_path: Path, sacct_store: Path) -> Path:
    """A store that was published with a site.toml."""
    shutil.copytree(sacct_store, tmp_path / "store")
    (tmp_path / "store" / "site.toml").write_text(STATED, "utf-8")
    with writer(tmp_path / "store") as building:
        building.publish()
    return tmp_path / "store"


@pytest.mark.slow
def test_what_changed_is_told_by_its_setting_until_a_check_takes_it(
    faultline: Callable[..., Any], store: Path
) -> None:
    assert "site.toml changed" not in faultline("info", "--store", store).err
    new = STATED.replace("2.5", "3.0").replace('gpu_model = "H100"\n', "scheduler = 'slurm'\n")
    (store / "site.toml").write_text(new, "utf-8")
    told = (
        "site.toml changed since the last publish: cluster.c.gpu_hour_price (2.5 -> 3.0), "
        'cluster.c.gpu_model ("H100" -> not set), cluster.c.scheduler (not set -> "slurm"); '
        "`faultline config check` takes it as it is"
    )
    for command in ("info", "mttf"):
        assert told in faultline(command, "--store", store).err.splitlines()
    checked = faultline("config", "check", "--store", store)
    assert checked.json["changes"] == [told]
    assert told in checked.err
    assert State(store).audit(1)[0][2:] == ("config check", '{"settings": 3}')
    for command in (("info",), ("mttf",), ("config", "check")):
        assert "site.toml changed" not in faultline(*command, "--store", store).err


def test_a_publish_takes_it(faultline: Callable[..., Any], store: Path) -> None:
    (store / "site.toml").unlink()
    assert 'gpu_model ("H100" -> not set)' in faultline("info", "--store", store).err
    with writer(store) as building:
        building.publish()
    assert "site.toml changed" not in faultline("info", "--store", store).err


@pytest.mark.slow
def test_a_ledger_that_a_reader_builds_takes_nothing(
    faultline: Callable[..., Any], store: Path
) -> None:
    (store / "site.toml").write_text(STATED.replace("2.5", "3.0"), "utf-8")
    for _ in range(2):
        said = faultline("ledger", "--store", store)
        assert said.code == 0
        assert "cluster.c.gpu_hour_price (2.5 -> 3.0)" in said.err
    assert (store / "warehouse-3.duckdb").exists()


def test_of_people_and_servers_the_setting_is_told_and_no_value(
    faultline: Callable[..., Any], store: Path
) -> None:
    (store / "site.toml").write_text(STATED.replace('"reporter"', '"somebody"'), "utf-8")
    told = faultline("info", "--store", store).err
    assert "since the last publish: reports.smtp.user; `faultline config check`" in told
    assert "somebody" not in told
    assert b"reporter" not in (store / "state.sqlite").read_bytes()


def test_a_remark_is_no_change_and_of_many_only_some_are_named(
    faultline: Callable[..., Any], store: Path
) -> None:
    (store / "site.toml").write_text(f"# as agreed in May\n{STATED}", "utf-8")
    assert "site.toml changed" not in faultline("info", "--store", store).err
    nodes = "".join(f'n{n} = ["m{n}"]\n' for n in range(9))
    (store / "site.toml").write_text(f"{STATED}[nodes]\n{nodes}", "utf-8")
    told = faultline("info", "--store", store).err
    assert 'nodes.n0 (not set -> ["m0"]), ' in told
    assert 'nodes.n4 (not set -> ["m4"]), 4 more; ' in told


def test_a_store_of_which_nothing_was_taken_yet_tells_nothing(
    faultline: Callable[..., Any], store: Path
) -> None:
    with State(store)._writing() as connection:
        connection.execute("DELETE FROM facts WHERE name = 'site'")
    (store / "site.toml").write_text("", "utf-8")
    assert "site.toml changed" not in faultline("info", "--store", store).err
