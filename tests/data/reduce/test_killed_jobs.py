"""A reduction of accounting that is killed anywhere goes on: nothing is lost, nothing doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.reduce.manifest import load
from tests.data.reduce.accounts import content, dumps, reduced, written


def sound(out: Path) -> None:
    """Each file that the manifest names is there."""
    manifest = load(out)
    if manifest is not None:
        assert all((out / name).is_file() for name in manifest.files("jobs"))


@pytest.mark.slow
@pytest.mark.parametrize("n_kills", [3, 50])
def test_a_reduction_of_accounting_killed_at_some_steps_goes_on(
    ended: Callable[..., dict[str, Any]], tmp_path: Path, n_kills: int
) -> None:
    rows = dumps(0, n_jobs=20, n_dumps=2)
    paths = [written(some, tmp_path / f"{k}.txt") for k, some in enumerate(rows)]
    reduced(tmp_path / "whole", *paths)
    out, chance, n_killed, done = tmp_path / "out", random.Random(0), 0, False
    command = ["reduce", "jobs", *map(str, paths), "--out", str(out), "--format", "json"]
    for _ in range(4 * n_kills):
        if n_killed == n_kills:
            break
        if done:  # an input that changed, so that there is work to be killed in
            written(rows[0], paths[0])
        step = {"step": chance.randrange(25)}
        done = "killed" not in ended(folder=str(tmp_path), argv=command, **step)
        n_killed += not done
        if out.is_dir():
            sound(out)
    assert n_killed == n_kills
    assert ended(folder=str(tmp_path), argv=command)["code"] == 0
    manifest = load(out)
    assert manifest is not None
    left = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert left == {*manifest.files("jobs"), "manifest.json"}
    assert content(out) == content(tmp_path / "whole")
