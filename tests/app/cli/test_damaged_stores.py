"""Stores damaged by chance: told wherever it changes what is shown, and nothing wrong is shown."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from app import actions
from app.actions import kept_queries
from app.cli import main
from data.publish import writer
from data.state import State
from data.store import Store
from tests.app.cli.conftest import SACCT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SITE = """[cluster.c]
gpus_per_node = 8
gpu_hour_price = 2.5
currency = "EUR"
[attribution]
before_minutes = 10
[retention]
keep_snapshots = 4
"""
COMMANDS = (
    ("info",), ("mttf",), ("failures", "--list"), ("incidents",), ("ledger",), ("actions",),
    ("annotate", "--list"), ("audit", "--action", "annotate"), ("find", "node"), ("ingests",),
    ("sql", "SELECT * FROM jobs ORDER BY ALL"), ("report", "--as", "md", "--out", "report"),
)  # fmt: skip
"""What is asked of every store, besides its saved queries and the key of its pseudonyms."""
BITS = ("state.sqlite", "CURRENT", "warehouse-2.json", "site.toml", "warehouse-3.duckdb")
OTHERS = ("warehouse-3.duckdb", "state.sqlite", "CURRENT", "CURRENT and snapshot")
KINDS = (*(f"a bit of {name}" for name in BITS), *(f"another's {name}" for name in OTHERS))


def made(root: Path, text: str, note: str) -> None:
    """A store of three snapshots, with a ledger and something of all that people can say."""
    (root.with_name(f"{root.name}.txt")).write_text(text, "utf-8")
    root.mkdir()
    (root / "site.toml").write_text(SITE, "utf-8")
    source = str(root.with_name(f"{root.name}.txt"))
    assert main(["ingest", "sacct", source, "--store", str(root)]) == 0
    with closing(Store.open(root)) as store:
        ((key,),) = store.rows("SELECT attempt_key FROM failures")
    actions.annotate(root, f"attempt:c/{key}", "cause", "pcie", author="ada")
    State(root).undo(
        actions.annotate(root, "node:c/n2", "note", note, author="bob").annotation_id, author="ada"
    )
    actions.annotate(root, "node:c/n2", "status", "acknowledged", author="bob")
    kept_queries(root).save(f"jobs, {note}", "SELECT count(*) FROM jobs", author="ada")
    State(root).redaction_key()
    with writer(root) as building:
        building.publish()
    assert main(["ledger", "--store", str(root)]) == 0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and another one, alike in all but what they hold."""
    folder = tmp_path_factory.mktemp("stores")
    made(folder / "own", SACCT, "loose riser")
    made(folder / "other", SACCT.replace("NODE_FAIL", "FAILED"), "new switch")
    return folder


@pytest.fixture
def place(stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the store."""
    shutil.copytree(stores / "own", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def damaged(kind: str, store: Path, other: Path, chance: random.Random) -> str:
    """Damages a store; where."""
    if kind.startswith("a bit of "):
        path = store / kind.removeprefix("a bit of ")
        content = bytearray(path.read_bytes())
        used = [at for at, byte in enumerate(content) if byte]  # much of a file is empty
        bit = 8 * chance.choice(used) + chance.randrange(8)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        return f"{path.name}, bit {bit}"
    names = kind.removeprefix("another's ")
    both = ("CURRENT", "warehouse-3.duckdb")
    for name in both if names == "CURRENT and snapshot" else (names,):
        shutil.copyfile(other / name, store / name)
    return names


def shown(faultline: Callable[..., Any], store: Path, command: tuple[str, ...]) -> Any:
    """What a command shows of a store."""
    report = store.with_name("report")
    shutil.rmtree(report, ignore_errors=True)
    said = faultline(*command, "--store", store)
    written = sorted(report.rglob("*.md")) if report.exists() else []
    return said, [path.read_text("utf-8") for path in written]


def asked(
    faultline: Callable[..., Any], store: Path, commands: Sequence[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What commands show."""
    for command in commands:
        yield command, shown(faultline, store, command)


def whole(store: Path) -> dict[str, bytes]:
    """Files of a store with their content."""
    return {path.name: path.read_bytes() for path in store.iterdir() if path.is_file()}


def back(store: Path, files: dict[str, bytes]) -> None:
    """Makes a store again what it was."""
    for path in store.iterdir():
        if path.is_file() and path.name not in files:
            path.unlink()
    for name, content in files.items():
        (store / name).write_bytes(content)


def judged(kind: str, before: Any, now: Any) -> str:
    """Whether damage was told, changed nothing, or shows something wrong."""
    said, _ = now
    if said.code == 2 and said.out == "" and said.err.count("\n") == 1:
        return "told"
    if "site.toml changed since the last publish" in said.err and kind == "a bit of site.toml":
        return "told"
    if "warehouse-2.json: is damaged (" in said.err:
        return "told"
    return "unchanged" if told_apart(now) == told_apart(before) else "wrong"


def told_apart(shown: Any) -> Any:
    """What is compared: `info` tells that a bit turned where nothing else changed."""
    said, files = shown
    out = said.out.replace('"checksum_holds": false', '"checksum_holds": true')
    return said.code, out, files


def tried(
    faultline: Callable[..., Any],
    place: Path,
    other: Path,
    n_stores: int,
    commands: Sequence[tuple[str, ...]] = COMMANDS,
) -> tuple[dict[str, Counter[str]], list[Any]]:
    """Damages so many stores and asks each of them; how many were told, by kind, and what was wrong."""
    store, chance = place / "store", random.Random(27)
    sound = dict(asked(faultline, store, commands))
    assert {said.code for said, _ in sound.values()} == {0}
    files, wrong = whole(store), list[Any]()
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for n in range(n_stores):
        kind = KINDS[n % len(KINDS)]
        where = damaged(kind, store, other, chance)
        verdicts = {
            command: judged(kind, sound[command], now)
            for command, now in asked(faultline, store, commands)
        }
        worst = next(one for one in ("wrong", "told", "unchanged") if one in verdicts.values())
        found[kind][worst] += 1
        wrong += [(where, one) for one, verdict in verdicts.items() if verdict == "wrong"]
        back(store, files)
    return found, wrong


def table(found: dict[str, Counter[str]]) -> str:
    """The figures, a kind a line."""
    lines = [f"{'':32}{'tried':>7}{'told':>7}{'unchanged':>11}{'wrong':>7}"]
    for kind, n in found.items():
        numbers = f"{n.total():7}{n['told']:7}{n['unchanged']:11}{n['wrong']:7}"
        lines.append(f"{kind:32}{numbers}")
    return "\n".join(lines)


def assert_told(found: dict[str, Counter[str]]) -> None:
    """What another store held was told every time."""
    for kind, n in found.items():
        assert not kind.startswith("another") or n["told"] == n.total(), kind


@pytest.mark.slow
def test_a_store_of_every_kind_of_damage_is_told_or_shows_what_it_did(
    faultline: Callable[..., Any], place: Path, stores: Path
) -> None:
    found, wrong = tried(
        faultline, place, stores / "other", len(KINDS), COMMANDS[:2] + COMMANDS[6:8]
    )
    print(f"\n{table(found)}")
    assert wrong == []
    assert_told(found)


@pytest.mark.slow
def test_of_a_hundred_damaged_stores_none_shows_what_is_wrong(
    faultline: Callable[..., Any], place: Path, stores: Path
) -> None:
    found, wrong = tried(faultline, place, stores / "other", 100)
    print(f"\n{table(found)}")
    assert sum(n.total() for n in found.values()) == 100
    assert found["a bit of state.sqlite"]["told"] > 0
    assert wrong == []
    assert_told(found)
