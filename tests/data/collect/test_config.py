"""The configuration of a collector: what is stated counts, and a mistake is one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from data.collect import default_sources, load_sources
from data.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = '[[source]]\nkind = "folder"\npath = "x"\nreader = "kernel-log"\n'
URL = '[[source]]\nkind = "url"\nreader = "kernel-log"\n'


def test_without_a_configuration_this_slurm_host_is_asked() -> None:
    readers = [source.settings.reader for source in default_sources()]
    assert readers == ["sacct", "sacctmgr-events", "scontrol-nodes", "kernel-log"]
    claims = [source.settings.whole_cluster for source in default_sources()]
    assert claims == [True, True, True, False], "the kernel log is that of one host"


def test_what_is_stated_counts(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(
        '[[source]]\nname = "alps"\nkind = "slurm"\ncommands = ["sacct"]\noverlap_minutes = 5\n'
        f'timeout_s = 7\ncluster = "a"\n{FOLDER}timezone = "Europe/Berlin"\nname = "logs"\n'
        'whole_cluster = true\nmapping = "own.toml"\ncolumns = ["a", "b"]\n'
    )
    slurm, folder = (source.settings for source in load_sources(path))
    assert (slurm.name, slurm.timeout_s, slurm.options["cluster"]) == ("alps sacct", 7, "a")
    assert (slurm.timing.overlap_s, slurm.timing.slice_s) == (300, 86_400)
    assert (folder.name, folder.whole_cluster) == ("logs", True)
    assert folder.options == {
        "timezone": "Europe/Berlin", "mapping": str(tmp_path / "own.toml"), "columns": ("a", "b"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "holds no source: write [[source]] before each"),
        ("[source]\n", "holds no source"),
        ("x = ", "is not TOML"),
        ("[[sources]]\n", "sources is unknown: did you mean 'source'?"),
        ("[[source]]\n", "source 1: kind must be one of slurm, folder, url, prometheus, got None"),
        ('[[source]]\nkind = "folder"\nreader = "sacct"\n', "needs path: state it"),
        (FOLDER + "reeder = 1\n", "source 1: reeder is unknown: did you mean 'reader'?"),
        (FOLDER.replace("kernel-log", "kernel"), "reader 'kernel' is unknown: did you mean"),
        (FOLDER + "timeout_s = 0\n", "timeout_s must be seconds, 1 to 86400, got 0"),
        (FOLDER + 'cluster = " "\n', "cluster must be no empty text, got ' ': state it, or leave the key out"),
        (FOLDER + "whole_cluster = 1\n", "whole_cluster must be true or false, got 1"),
        (FOLDER + 'columns = ["a", 1]\n', "columns must be names"),
        (FOLDER + 'timezone = "Berlin"\n', "timezone must be an IANA zone, got 'Berlin'"),
        (FOLDER + FOLDER, "two sources are called 'kernel-log'"),
        ('[[source]]\nkind = "slurm"\ncommands = ["squeue"]\n', "'squeue' is unknown"),
        (URL + 'url = "file:///etc/passwd"\n', "url must be an address that begins with https:// or http://"),
        (URL + 'url = "https://ann:secret@host/x"\n', "url must hold no user and password"),
        (URL + 'url = "https://host/x?from={from}"\n', "both {from} and {until}, or neither"),
        (URL + 'url = "https://host/"\nheaders = {Authorization = 1}\n', "headers must be names"),
        ('[[source]]\nkind = "prometheus"\nurl = "http://h"\nquery = ["up"]\nreader = "p"\n',
         "reader 'p' is unknown"),
    ],
    ids=range(20),
)  # fmt: skip
def test_a_mistake_is_one_line_that_says_where(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        load_sources(path)
    assert error in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read .*: check the path"):
        load_sources(tmp_path / "none.toml")
