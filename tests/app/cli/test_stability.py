"""faultline stability: of a file, of a run of the store, of what cannot be judged."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.answers.training import runs, stability
from app.ask import of_store
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def written(path: Path, **columns: np.ndarray) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def logged(n: int = 800) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    loss = 2 + 0.01 * rng.normal(size=n)
    loss[500:520] += np.linspace(2.0, 0.1, 20)
    norm = 0.3 * np.exp(0.1 * rng.normal(size=n))
    return {"step": 10 * np.arange(n), "loss": loss.round(5), "grad_norm": norm.round(5)}


def test_a_spike_of_a_file_has_its_start_peak_and_end(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    file = written(tmp_path / "steps.csv", **logged())
    found = faultline("stability", file, "--format", "json").json
    (event,) = found["events"]
    kept = {key: event[key] for key in ("kind", "series", "start_step", "peak_step", "end_step")}
    assert kept == {
        "kind": "spike", "series": "loss", "start_step": 5_000, "peak_step": 5_000,
        "end_step": 5_200,
    }  # fmt: skip
    assert event["start_at"] is None
    assert found["not_logged"] == ["step_time_s", "loss_scale"]
    assert {each["rule"] for each in found["compared"]} == {"ours", "zclip", "plain_z", "jump"}
    table = faultline("stability", file, "--format", "table")
    said = table.out + table.err
    assert "One episode, a spike from step 5,000, was over by step 5,200." in said
    assert "loss alone misses corruption" in said
    header, row = faultline("stability", file, "--format", "csv").out.splitlines()[:2]
    assert header.startswith("kind,series,start_step,peak_step,last_step,end_step")
    assert row.startswith("spike,loss,5000,5000")


def test_nan_is_told_and_what_is_not_logged_cannot_be_judged(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    columns = logged()
    columns["loss"] = columns["loss"].astype(object)
    columns["loss"][700:] = "nan"
    found = faultline("stability", written(tmp_path / "nan.csv", **columns), "--format", "json")
    assert [each["kind"] for each in found.json["events"]] == ["spike", "nan"]
    assert found.json["episodes"][1]["rewind_step"] == 6_900
    blind = {
        "step": np.arange(200),
        "learning_rate": np.full(200, 1e-4),
        "step_time_s": np.full(200, 9.0),
    }
    said = faultline("stability", written(tmp_path / "blind.csv", **blind), "--format", "table").out
    assert "Stability cannot be judged: neither loss nor gradient norm is logged." in said
    few = {name: column[:5] for name, column in logged().items()}
    said = faultline("stability", written(tmp_path / "few.csv", **few), "--format", "table").out
    assert "Stability cannot be judged: too few rows." in said


def test_several_runs_of_a_file_are_judged_one_by_one(
    faultline: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    two = {name: np.concatenate([column, column[:300]]) for name, column in logged().items()}
    two["run_id"] = np.repeat(["first", "second"], [800, 300])
    file = written(tmp_path / "two.csv", **two)
    assert "holds several runs (first, second): name one by --run" in refused("stability", file)
    assert "holds no run third (first, second)" in refused("stability", file, "--run", "third")
    found = faultline("stability", file, "--run", "second", "--format", "json").json
    assert (found["run_id"], found["last_step"], found["events"]) == ("second", 2_990, [])


def test_further_series_are_looked_at_where_they_are_asked_for(
    faultline: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    columns = logged()
    columns["entropy"] = columns["loss"][::-1].copy()
    file = written(tmp_path / "more.csv", **columns)
    notes = faultline("stability", file, "--format", "table").err
    assert "Further series are logged (entropy)" in notes
    found = faultline("stability", file, "--series", "entropy", "--format", "json").json
    assert {each["series"] for each in found["events"]} == {"loss", "entropy"}
    assert "the run logs no such series (further: entropy)" in refused(
        "stability", file, "--series", "nothing"
    )


def test_a_run_of_the_store_is_the_page_s(
    faultline: Callable[..., Any], refused: Callable[..., str], demo_store: Path
) -> None:
    with closing(Store.open(demo_store)) as store:
        ask = of_store(store)
        listed = runs.listed(store, runs.Selection())
        judged = {
            run: ask(stability.measured, cluster, run)
            for cluster, run in zip(listed["cluster"][:6], listed["run_id"][:6], strict=True)
        }
    run, found = next((r, f) for r, f in judged.items() if f.found.episodes)
    printed = faultline("stability", "--run", run, "--store", demo_store, "--format", "json").json
    record = stability.answer(found).record
    assert [e["start_step"] for e in printed["events"]] == [
        e["start_step"] for e in record["events"]
    ]
    assert printed["synthetic"] is True
    told = faultline("stability", "--run", run, "--store", demo_store, "--format", "table").out
    assert "Beside the episodes" in told
    assert "no run 0815 logged its steps (runs that did:" in refused(
        "stability", "--run", "0815", "--store", demo_store
    )
    assert "name a FILE, or --run RUN" in refused("stability", "--store", demo_store)


@pytest.mark.parametrize(
    "text", ["", "step\n", "a,b\n1,2\n", "step,loss\nx,y\n", "\x00\x01\x02", "{}\n"]
)
def test_what_holds_no_step_is_refused(
    refused: Callable[..., str], tmp_path: Path, text: str
) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(text)
    assert refused("stability", file)
