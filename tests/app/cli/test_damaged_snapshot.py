"""A bit of the snapshot that is wrong: the right answer or one line, and never another number."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.cli.conftest import SACCT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

READERS = (
    ("info",), ("mttf",), ("failures", "--list"), ("incidents",), ("ledger",), ("ettr",),
    ("sql", "SELECT * FROM jobs ORDER BY ALL"), ("report", "--as", "md", "--out", "report"),
)  # fmt: skip
"""Commands that answer from a snapshot."""
COPIERS = (("backup", "out"), ("ingest", "sacct", "more.txt"))
"""Commands that copy it as a whole, and so check all of it."""
COMMANDS = READERS + COPIERS


@pytest.fixture
def place(
    faultline: Callable[..., Any],
    sacct_store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with a store that has its ledger, and records to come."""
    shutil.copytree(sacct_store, tmp_path / "store")
    (tmp_path / "more.txt").write_text(SACCT.replace("\n1|", "\n11|"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert faultline("ledger", "--store", "store").code == 0
    return tmp_path


def tried(
    faultline: Callable[..., Any], place: Path, tries: Iterable[tuple[int, tuple[str, ...]]]
) -> int:
    """Asks each command of a snapshot with a wrong bit at the byte; how many were refused."""

    def ask(command: tuple[str, ...]) -> Any:
        return faultline(*command, "--store", "store")

    path = place / "store" / "warehouse-2.duckdb"
    sound = path.read_bytes()
    answers = {command: ask(command) for command in READERS}
    assert all(answer.code == 0 for answer in answers.values())
    unchanged = {
        name: (place / "store" / name).read_bytes() for name in ("CURRENT", "warehouse-1.duckdb")
    }
    n_refused = 0
    with path.open("r+b", buffering=0) as file:
        for at, command in tries:
            file.seek(at)
            file.write(bytes([sound[at] ^ 1 << at % 8]))
            told = ask(command)
            case = (at, command, told)
            if told.code == 0:
                assert command in READERS, case
                if command == ("info",):
                    assert "checksum does not hold: restore it from a backup\n" in told.err
                    told = told.json | {"checksum_holds": True}
                    assert told == answers[command].json, case
                else:
                    assert told == answers[command], case
            else:
                n_refused += 1
                assert (told.code, told.out, told.err.count("\n")) == (2, "", 1), case
                assert "warehouse-2.duckdb: is damaged (" in told.err, case
                assert "or remove it and CURRENT to go back to snapshot 1" in told.err, case
            file.seek(at)
            file.write(sound[at : at + 1])
    assert path.read_bytes() == sound
    assert unchanged == {name: (place / "store" / name).read_bytes() for name in unchanged}
    assert not (place / "out").exists()
    return n_refused


def tries(place: Path, step: int) -> list[tuple[int, tuple[str, ...]]]:
    """Bytes of the three headers and of all that follows; the commands take turns."""
    size = (place / "store" / "warehouse-2.duckdb").stat().st_size
    places = [0, 5_000, 9_000, *range(12_288, size, step)]
    return [(at, COMMANDS[n % len(COMMANDS)]) for n, at in enumerate(places)]


@pytest.mark.slow
def test_a_damaged_byte_never_gives_another_number(
    faultline: Callable[..., Any], place: Path
) -> None:
    asked = tries(place, 20_011)
    n_refused = tried(faultline, place, asked)
    print(f"{len(asked)} bytes, refused {n_refused} times")
    assert 50 < n_refused < len(asked)
