"""A reduction that is killed anywhere goes on at its next run: nothing is lost, nothing doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.reduce.kinds import JOBS, KINDS, METRICS
from data.reduce.manifest import load
from tests.data.reduce import accounts
from tests.data.reduce.events import events
from tests.data.reduce.samples import HOURS, asked, content, fed, reduced, same, samples, written

ROOT = Path(__file__).parents[3]


def sound(out: Path) -> None:
    """Each file that the manifest names is there, whole or not at all."""
    manifest = load(out)
    if manifest is None:
        return
    for kind in KINDS[manifest.kind].files:
        assert all((out / name).is_file() for name in manifest.files(kind))


def inputs(kind: str, folder: Path) -> tuple[list[Path], Callable[[], Path]]:
    """Two partitions of such records, and what writes the first of them anew."""
    if kind == JOBS:
        rows = accounts.dumps(0, n_jobs=20, n_dumps=2)
        paths = [accounts.written(some, folder / f"{k}.txt") for k, some in enumerate(rows)]
        return paths, lambda: accounts.written(rows[0], paths[0])
    frame = samples(hours=3.0, step_s=60) if kind == METRICS else events(busy=0.3)
    pieces = [written(frame.iloc[k::2], folder / f"{k}.parquet") for k in range(2)]
    return pieces, lambda: written(frame.iloc[0::2], pieces[0])


def killed_at(
    ended: Callable[..., dict[str, Any]],
    folder: Path,
    moments: list[dict[str, float]],
    least: int,
    kind: str,
) -> None:
    """Kills runs of a reduction at such moments, one after the other, then lets one end."""
    pieces, write_anew = inputs(kind, folder)
    reduced(folder / "whole", *pieces, kind=kind)
    out, n_killed, done = folder / "out", 0, False
    command = ["reduce", kind, *map(str, pieces), "--out", str(out), "--format", "json"]
    for moment in moments:
        if done:  # an input that changed, so that there is work to be killed in
            write_anew()
        done = "killed" not in ended(folder=str(folder), argv=command, **moment)
        n_killed += not done
        if out.is_dir():
            sound(out)
    assert n_killed >= least
    assert ended(folder=str(folder), argv=command)["code"] == 0
    left = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    manifest = load(out)
    assert manifest is not None
    named = {name for each in KINDS[kind].files for name in manifest.files(each)}
    assert left == named | {"manifest.json"}
    if kind != METRICS:  # sums of samples depend on their order
        main = KINDS[kind].main
        assert content(out, main) == content(folder / "whole", main)
        return
    whole, done = (
        asked(fed(folder / f"of-{each}", folder / each), HOURS)[0] for each in ("whole", "out")
    )
    same(done, whole)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_killed_before_some_steps_goes_on(
    ended: Callable[..., dict[str, Any]], tmp_path: Path, kind: str
) -> None:
    killed_at(ended, tmp_path, [{"step": step} for step in (3, 7)], 2, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_killed_a_hundred_times_goes_on(
    ended: Callable[..., dict[str, Any]], tmp_path: Path, kind: str
) -> None:
    chance = random.Random(0)
    moments: list[dict[str, float]] = [{"step": chance.randrange(25)} for _ in range(100)]
    moments += [{"seconds": chance.uniform(0.02, 0.5)} for _ in range(100)]
    killed_at(ended, tmp_path, chance.sample(moments, len(moments)), 100, kind)
