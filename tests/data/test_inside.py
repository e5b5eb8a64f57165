"""Folders into which others write: no file outside of them is read, whatever lies in them."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.collect import collect, load_sources
from data.collect.collecting import _as_given
from data.collect.folder import Folder
from data.collect.source import Asking, Known, Settings
from data.errors import SourceError
from data.ingest import IngestResult, Options, ingest
from data.inside import Inside, LeftOutError
from data.limits import DEFAULTS
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.collect import Outcome

SECRET = "2026-03-02T06:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, root:x:0:0\n"
OWN = "2026-03-02T06:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, a log\n"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
LEADING_OUT: dict[str, Callable[[Path, Path], object]] = {
    "a link to a file": lambda link, out: link.symlink_to(out / "secret"),
    "a relative link": lambda link, out: link.symlink_to(
        os.path.relpath(out / "secret", link.parent)
    ),
    "a link to a link": lambda link, out: link.symlink_to(out / "link"),
    "a link by way of /proc": lambda link, out: link.symlink_to(f"/proc/self/root{out}/secret"),
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that holds what is nobody's business, beside the folder that is read."""
    folder = tmp_path / "out"
    (folder / "deep").mkdir(parents=True)
    for name in ("secret", "deep/slurm-3.out"):
        (folder / name).write_text(SECRET, encoding="utf-8")
    (folder / "link").symlink_to(folder / "secret")
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with one log of a job."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "slurm-1.out").write_text(OWN, encoding="utf-8")
    return folder


def read(tmp_path: Path, folder: Path) -> IngestResult:
    """What an ingest of a folder of logs tells."""
    with writer(tmp_path / "store") as building:
        result = ingest(building, "job-log", str(folder), Options(cluster="c", timezone="UTC"))
        building.publish()
    return result


def stored(tmp_path: Path) -> list[tuple[str, str]]:
    """Files and lines in the store."""
    with closing(Store.open(tmp_path / "store")) as store:
        return store.rows("SELECT file, text FROM job_logs ORDER BY file, line_no")


def test_what_lies_in_a_folder_of_logs_but_is_no_file_of_it_is_told_and_not_read(
    tmp_path: Path, logs: Path, out: Path
) -> None:
    for number, make in enumerate(LEADING_OUT.values(), 10):
        make(logs / f"slurm-{number}.out", out)
    (logs / "deep").symlink_to(out / "deep")
    (logs / "slurm-20.out").symlink_to("gone")
    os.mkfifo(logs / "slurm-21.out")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(logs / "slurm-22.out"))
    (logs / "again.out").symlink_to("slurm-1.out")
    (logs / "slurm-23.out").symlink_to("slurm-1.out")
    (logs / "by-hash").write_text("by another name\n", encoding="utf-8")
    (logs / "slurm-24.out").symlink_to("by-hash")
    (logs / "same").symlink_to(".")
    result = read(tmp_path, logs)
    assert stored(tmp_path) == [("slurm-1.out", OWN.strip()), ("slurm-24.out", "by another name")]
    assert result.skipped_by_reason == {
        "link_out_of_the_folder": 5,
        "link_to_nothing": 1,
        "no_regular_file": 2,
        "link_to_a_file_read_before": 1,
        "name_without_job_id": 2,
    }
    names = "deep, slurm-10.out, slurm-11.out and 2 more"
    assert [text for text in result.notices if "not read" in text] == [
        f"5 links lead out of the folder and were not read: {names}",
        "1 link leads nowhere and was not read: slurm-20.out",
        "2 pipes, sockets or devices were not read: slurm-21.out, slurm-22.out",
    ]


def test_the_folder_that_a_person_names_may_be_a_link(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "named").symlink_to(logs)
    assert read(tmp_path, tmp_path / "named").notices == read(tmp_path, logs).notices
    assert stored(tmp_path) == [("slurm-1.out", OWN.strip())]


def test_a_folder_of_links_out_of_it_says_so(tmp_path: Path, out: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "slurm-9.out").symlink_to(out / "secret")
    with pytest.raises(SourceError, match=r"no log lies in it: 1 link leads out .*slurm-9\.out$"):
        read(tmp_path, tmp_path / "links")


def test_a_link_that_takes_the_place_of_a_file_meanwhile_is_never_read(
    tmp_path: Path, logs: Path, out: Path
) -> None:
    """A thousand looks at a name that is a file, a link out and a folder's link in turn."""
    name, ended = logs / "sub" / "slurm-1.out", threading.Event()
    forms = [logs / "real", out / "deep"]
    forms[0].mkdir()
    (forms[0] / "slurm-1.out").write_text(OWN, encoding="utf-8")
    (out / "deep" / "slurm-1.out").write_text(SECRET, encoding="utf-8")

    def swap() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            (tmp_path / "next").symlink_to(forms[number % 2])
            (tmp_path / "next").replace(logs / "sub")

    (logs / "sub").symlink_to(forms[0])
    thread = threading.Thread(target=swap)
    thread.start()
    n_read = n_refused = 0
    try:
        for _ in range(1_000):
            try:
                with Inside(logs).take(name) as held:
                    assert held.path.read_text("utf-8") == OWN
                n_read += 1
            except LeftOutError:
                n_refused += 1
    finally:
        ended.set()
        thread.join()
    print(f"\n{n_read:,} read inside, {n_refused:,} refused, 0 read outside")
    assert n_read
    assert n_refused


def collected(tmp_path: Path, pattern: str) -> Outcome:
    """What collecting from a pattern of kernel logs tells."""
    config = tmp_path / "collect.toml"
    config.write_text(f'[[source]]\nkind = "folder"\npath = "{pattern}"\nreader = "kernel-log"\n')
    (outcome,) = collect(
        tmp_path / "store", load_sources(config), Options(cluster="c"), now=NOW
    ).outcomes
    return outcome


def old(path: Path) -> None:
    """Lets a file be as if it had not been written to for a while."""
    at = (NOW - timedelta(hours=1)).timestamp()
    os.utime(path, (at, at), follow_symlinks=False)


@pytest.mark.parametrize("pattern", ["logs/*", "logs/**/*"])
def test_collect_takes_files_of_the_folder_alone(
    tmp_path: Path, logs: Path, out: Path, pattern: str
) -> None:
    old(logs / "slurm-1.out")
    for number, make in enumerate(LEADING_OUT.values(), 10):
        make(logs / f"{number}.log", out)
    (logs / "deep").symlink_to(out / "deep")
    (logs / "everything").symlink_to("/")
    (logs / "current").symlink_to("slurm-1.out")
    os.mkfifo(logs / "pipe")
    names = "10.log, 11.log, 12.log and 3 more"
    for _ in range(2):  # it is told each time
        outcome = collected(tmp_path, pattern)
        assert outcome.error is None
        assert outcome.notices[:2] == [
            f"kernel-log: 6 links lead out of the folder and were not read: {names}",
            "kernel-log: 1 pipe, socket or device is no file and was not read: pipe",
        ]
    with closing(Store.open(tmp_path / "store")) as store:
        assert store.rows(
            "SELECT count(*), any_value(message) LIKE '%a log' FROM health_events"
        ) == [(1, True)]


def test_a_file_that_a_person_names_may_be_a_link(tmp_path: Path, out: Path) -> None:
    old(out / "secret")
    (tmp_path / "named.log").symlink_to(out / "secret")
    assert [each.rows_kept for each in collected(tmp_path, "named.log").results] == [1]


def test_a_folder_below_a_pattern_is_followed_where_its_link_stays_inside(
    tmp_path: Path, logs: Path, out: Path
) -> None:
    (logs / "2026-03").mkdir()
    (logs / "2026-03" / "a.log").write_text(OWN, encoding="utf-8")
    old(logs / "2026-03" / "a.log")
    (logs / "current").symlink_to("2026-03")
    (logs / "other").symlink_to(out)
    outcome = collected(tmp_path, "logs/*/*")
    assert [each.path for each in outcome.results] == [str(logs / "2026-03" / "a.log")]
    assert outcome.notices[0].endswith("1 link leads out of the folder and was not read: other")


def test_a_file_that_became_a_link_since_it_was_found_is_refused(
    tmp_path: Path, logs: Path, out: Path
) -> None:
    old(logs / "slurm-1.out")
    source = Folder(Settings("a", "kernel-log"), f"{logs}/*", 60)
    asking = Asking(Known(), NOW, None, tmp_path, DEFAULTS)
    ((given,), *_) = (fetched.inputs for fetched in source.fetches(asking))
    with _as_given(given) as path:
        assert path.read_text("utf-8") == OWN
    given.path.unlink()
    given.path.symlink_to(out / "secret")
    refused = pytest.raises(SourceError, match=r"slurm-1\.out: leads out of its folder by now")
    with refused, _as_given(given):
        pass
