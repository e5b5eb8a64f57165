"""All commands: help with an example that works, one line for a refusal, data alone on stdout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import commands, module_of
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("command", commands())
def test_help_holds_the_example_in_one_line(faultline: Callable[..., Any], command: str) -> None:
    said = faultline(command, "--help")
    assert said.code == 0
    assert f"example:\n  {import_module(f'app.cli.{module_of(command)}').EXAMPLE}\n" in said.out


def test_every_module_that_runs_is_found_as_a_command() -> None:
    modules = (ROOT / "app" / "cli").glob("*.py")
    runs = {path.stem for path in modules if "\ndef run(arguments" in path.read_text("utf-8")}
    assert runs == set(map(module_of, commands()))


@pytest.fixture(scope="module")
def workplace(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo in ./demo-store and `faultline` on the path."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "demo-store").symlink_to(demo_store)
    command = folder / "bin" / "faultline"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m app.cli "$@"\n', encoding="utf-8"
    )
    command.chmod(0o755)
    return folder


def shell(folder: Path, line: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    environment.pop("FAULTLINE_STORE", None)
    return subprocess.Popen(
        line if "|" in line or "&&" in line else f"exec {line}", shell=True, cwd=folder, env=environment,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in commands() if name not in ("demo", "serve")])
def test_the_example_works_on_the_demo(workplace: Path, command: str) -> None:
    if command == "restore":  # it begins with what the example of backup leaves
        shutil.rmtree(workplace / "store-backup", ignore_errors=True)
        shell(workplace, import_module("app.cli.backup").EXAMPLE).communicate(timeout=60)
    if command in ("rollback", "forget"):  # they begin with what the example of ingest leaves
        shutil.rmtree(workplace / "own-store", ignore_errors=True)
        shell(workplace, import_module("app.cli.ingest").EXAMPLE).communicate(timeout=60)
        (workplace / "own-store" / "site.toml").write_text("[retention]\nhealth_events = 400\n")
    running = shell(workplace, import_module(f"app.cli.{module_of(command)}").EXAMPLE)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert out.startswith(("{", "["))


@pytest.mark.slow
def test_the_example_of_demo_builds_one(tmp_path: Path, workplace: Path) -> None:
    line = import_module("app.cli.demo").EXAMPLE.replace("--jobs 20000", "--jobs 400")
    running = shell(workplace, line.replace("./demo-store", str(tmp_path)))
    out, err = running.communicate(timeout=100)
    assert running.returncode == 0, err
    assert '"jobs": 400,' in out


@pytest.mark.slow
def test_the_example_of_serve_serves(workplace: Path) -> None:
    running = shell(workplace, import_module("app.cli.serve").EXAMPLE + " --port 0")
    try:
        assert running.stdout.readline().startswith("Faultline is at ")
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=20)
    assert running.returncode == 0


@pytest.mark.parametrize("arguments", [(), ("fly",), ("mttf", "--fly")])
def test_what_is_no_command_is_refused(refused: Callable[..., str], arguments: Any) -> None:
    assert "--help" in refused(*arguments)


@pytest.mark.slow
def test_options_may_stand_between_files(
    faultline: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    names = []
    for number in (1, 2):
        names.append(str(tmp_path / f"{number}.txt"))
        Path(names[-1]).write_text(
            f"JobID|State|Start\n{number}|FAILED|2026-01-05T00:00:00\n", encoding="utf-8"
        )
    store = ("--store", tmp_path / "store")
    for arguments in (
        ("sacct", *store, names[0], "--timezone", "UTC", names[1]),
        (*store, "sacct", names[0], "--cluster", "c", names[1]),
        ("sacct", names[0], names[1], *store),
        ("sacct", *store, "--", *names),
    ):
        assert faultline("ingest", *arguments).json["rows_kept"] == 2
    assert "unrecognized arguments: --fly" in refused("ingest", "sacct", names[0], "--fly", *store)
    assert "name a SOURCE and a FILE" in refused("ingest", "sacct", *store)


def test_the_store_comes_from_the_environment(
    faultline: Callable[..., Any], sacct_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(sacct_store))
    assert faultline("info").json["tables"]["jobs"] == 3
    monkeypatch.setenv("FAULTLINE_STORE", __file__)
    assert "is a file" in faultline("info").err


def test_a_bug_is_not_dressed_up_as_a_refusal(
    faultline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.info.run", lambda arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        faultline("info")


def test_a_refusal_is_one_line_whatever_is_in_its_text(
    faultline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(arguments: object) -> int:
        raise DataError("a\nfile name")

    monkeypatch.setattr("app.cli.info.run", refuse)
    said = faultline("info")
    assert (said.code, said.err) == (2, "faultline info: a file name\n")


def test_a_reader_that_has_seen_enough_ends_it_quietly(demo_store: Path) -> None:
    line = f'{sys.executable} -m app.cli sql "SELECT job_id, node_list FROM jobs" --store {demo_store} | head -1'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[\n", "")


def test_the_version_is_that_of_the_package(faultline: Callable[..., Any]) -> None:
    told = faultline("--version")
    assert (told.code, told.out) == (0, f"faultline {version('faultline')}\n")
