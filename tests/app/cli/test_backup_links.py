"""Links in a store and in a backup: nothing outside is copied, and nothing outside is written."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRACE = "metrics/straggler_traces/a.parquet"


@pytest.fixture
def store(tmp_path: Path, sacct_store: Path) -> Path:
    """A store with a file of a trace, and a folder that is none of its own."""
    root = tmp_path / "store"
    shutil.copytree(sacct_store, root)
    (root / TRACE).parent.mkdir(parents=True)
    (root / TRACE).write_bytes(b"a trace")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_bytes(b"a trace")
    return root


def linked(path: Path, target: Path) -> None:
    """Puts a link in the place of what is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(target)


def test_a_link_out_of_the_store_is_not_backed_up(
    faultline: Callable[..., Any], store: Path, tmp_path: Path
) -> None:
    linked(store / TRACE, tmp_path / "out" / "secret")
    told = faultline("backup", tmp_path / "backup", "--store", store)
    assert told.code == 2
    assert f"{TRACE}: is no file of the store, or leads out of it" in told.err
    assert not (tmp_path / "backup").exists()


def test_a_folder_of_metrics_on_another_disk_is_backed_up(
    faultline: Callable[..., Any], store: Path, tmp_path: Path
) -> None:
    shutil.move(store / "metrics", tmp_path / "out" / "metrics")
    (store / "metrics").symlink_to(tmp_path / "out" / "metrics")
    assert faultline("backup", tmp_path / "backup", "--store", store).code == 0
    assert not (tmp_path / "backup" / "metrics").is_symlink()
    assert (tmp_path / "backup" / TRACE).read_bytes() == b"a trace"


def test_a_link_in_a_backup_is_not_followed(
    faultline: Callable[..., Any], store: Path, tmp_path: Path
) -> None:
    """Not even to the very bytes that the manifest names."""
    assert faultline("backup", tmp_path / "backup", "--store", store).code == 0
    linked(tmp_path / "backup" / TRACE, tmp_path / "out" / "secret")
    for asked in (["--check"], ["--store", tmp_path / "new"]):
        told = faultline("restore", tmp_path / "backup", *asked)
        assert told.code == 2
        assert f"{TRACE}: is no file of the backup, or leads out of it" in told.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["metrics/straggler_traces", "metrics", "state.sqlite", "scratch"])
def test_a_restore_writes_through_no_link(
    faultline: Callable[..., Any], store: Path, tmp_path: Path, name: str
) -> None:
    assert faultline("backup", tmp_path / "backup", "--store", store).code == 0
    linked(store / name, tmp_path / "out" / "linked")
    told = faultline("restore", tmp_path / "backup", "--store", store, "--force")
    assert told.code == 2
    assert f"{name}: is a link, and a restore writes to no other place" in told.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["secret"]
