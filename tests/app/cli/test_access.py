"""Files of a store and of its backups are for their owner alone, unless site.toml says who else."""

from __future__ import annotations

import io
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from data import uploads
from data.access import Access, access_of
from data.errors import SiteError
from data.site import load_site
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SACCT = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1
"""
SETTINGS = [("", 0o600, 0o700), ('read = "group"', 0o640, 0o750), ('read = "all"', 0o644, 0o755),
            ('read = "group"\nwrite = "group"', 0o660, 0o770)]  # fmt: skip


@pytest.fixture(params=[0o022, 0o000, 0o077], ids=["022", "000", "077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What the process that writes takes from every file that it makes."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Files and folders of a store but site.toml -> their modes."""
    found = {".": stat.S_IMODE(folder.stat().st_mode)}
    for path in folder.rglob("*"):
        if path.name != "site.toml":
            found[str(path.relative_to(folder))] = stat.S_IMODE(path.stat().st_mode)
    return found


def written(faultline: Callable[..., Any], tmp_path: Path) -> Path:
    """A store that two ingests, a person, a model and a trace wrote to."""
    for number in (1, 2):
        records = tmp_path / f"sacct-{number}.txt"
        records.write_text(SACCT.replace("1|c", f"{number}|c"), encoding="utf-8")
        told = faultline("ingest", "sacct", records, "--store", tmp_path / "store")
        assert told.code == 0, told.err
    told = faultline("annotate", "node:c/n1", "--note", "seen", "--store", tmp_path / "store")
    assert told.code == 0, told.err
    return tmp_path / "store"


def fits(found: dict[str, int], folder: Path, file_mode: int, folder_mode: int) -> None:
    """Asserts that everything in a folder has its mode."""
    wrong = {
        name: oct(mode)
        for name, mode in found.items()
        if mode != (folder_mode if (folder / name).is_dir() else file_mode)
    }
    assert not wrong


@pytest.mark.slow
def test_what_a_store_holds_is_private_whatever_the_umask(
    faultline: Callable[..., Any], tmp_path: Path, umask: int
) -> None:
    store, copy, again = written(faultline, tmp_path), tmp_path / "backup", tmp_path / "again"
    assert faultline("backup", copy, "--store", store).code == 0
    assert faultline("restore", copy, "--store", again).code == 0
    for folder in (store, copy, again):
        found = modes(folder)
        assert {"CURRENT", "state.sqlite", "."} <= found.keys()
        fits(found, folder, 0o600, 0o700)


@pytest.mark.slow
@pytest.mark.parametrize(("said", "file_mode", "folder_mode"), SETTINGS[1:])
def test_site_toml_says_who_may_read(
    faultline: Callable[..., Any], tmp_path: Path, said: str, file_mode: int, folder_mode: int
) -> None:
    store, copy, again = tmp_path / "store", tmp_path / "backup", tmp_path / "again"
    store.mkdir(0o711)
    (store / "site.toml").write_text(f"[access]\n{said}\n", encoding="utf-8")
    written(faultline, tmp_path)
    assert faultline("backup", copy, "--store", store).code == 0
    assert faultline("restore", copy, "--store", again).code == 0
    for folder in (store, copy, again):
        found = modes(folder)
        if folder == store:
            assert found.pop(".") == 0o711, "a folder that a person made stays as it is"
        fits(found, folder, file_mode, folder_mode)


def info(faultline: Callable[..., Any], store: Path) -> str:
    """What `faultline info` prints, on one line."""
    told = faultline("info", "--store", store, "--format", "table")
    return " ".join((told.out + told.err).split())


@pytest.mark.slow
def test_files_that_others_can_read_are_told_until_they_cannot(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    store = written(faultline, tmp_path)
    assert "can be read" not in info(faultline, store)
    store.chmod(0o755)
    for name in ("CURRENT", "warehouse-1.json", "warehouse-2.duckdb"):
        (store / name).chmod(0o644)
    told = info(faultline, store)
    assert (
        "3 files of this store can be read or changed by others than [access] of site.toml says "
        f"(CURRENT, warehouse-1.json, warehouse-2.duckdb): run chmod -R go= {store}"
    ) in told
    (store / "site.toml").write_text('[access]\nread = "all"\n', encoding="utf-8")
    assert "can be read" not in info(faultline, store)
    (store / "site.toml").write_text('[access]\nread = "group"\n', encoding="utf-8")
    assert "chmod -R g-w,o=" in info(faultline, store)


def test_a_setting_that_is_none_is_refused_and_reads_as_private(tmp_path: Path) -> None:
    for said, match in (
        ('read = "everybody"', "access.read must be one of owner, group, all, got 'everybody'"),
        ("read = 644", "access.read must be one of owner, group, all, got 644"),
        ('write = "all"', "access.write must be one of owner, group, got 'all'"),
        ('write = "group"', "access.write must be owner where access.read is owner"),
        ('reed = "all"', "access.reed is unknown: did you mean 'read'"),
    ):
        (tmp_path / "site.toml").write_text(f"[access]\n{said}\n", encoding="utf-8")
        assert access_of(tmp_path) == Access()
        with pytest.raises(SiteError, match=match):
            load_site(tmp_path)


def test_an_upload_and_what_people_said_first_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with uploads.kept(tmp_path / "store", {"a.txt": io.BytesIO(b"a")}) as folder:
            assert modes(tmp_path / "store") == {
                ".": 0o700, "uploads": 0o700, f"uploads/{folder.name}": 0o700,
                f"uploads/{folder.name}/a.txt": 0o600,
            }  # fmt: skip
        State(tmp_path).create()
    finally:
        os.umask(before)
    assert modes(tmp_path)["state.sqlite"] == 0o600


def test_a_lock_that_is_a_link_is_not_written_through(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("of nobody else", encoding="utf-8")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "writer.lock").symlink_to(mine)
    (tmp_path / "a.txt").write_text(SACCT, encoding="utf-8")
    told = faultline("ingest", "sacct", tmp_path / "a.txt", "--store", tmp_path / "store")
    assert told.code == 2
    assert "cannot be written (Too many levels of symbolic links)" in told.err
    assert mine.read_text("utf-8") == "of nobody else"
