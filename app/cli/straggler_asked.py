"""What faultline stragglers can be asked beside the results: fixes, timelines, stored traces."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options, output
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from analytics.training.stragglers.drawn import TimelineOf
    from analytics.training.stragglers.what_if import WhatIf

TIMELINES: tuple[TimelineOf, ...] = ("original", "ideal", "fixed", "traced")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--fix, --timeline and what it draws, --store."""
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="PART",
        help="step time before and after fixing worker:DP,STAGE, stage:N or type:NAME; again for "
        "each of several",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write the operations of one trace as JSON that ui.perfetto.dev opens",
    )
    parser.add_argument(
        "--of",
        choices=TIMELINES,
        help="what the timeline draws: simulated with its own costs, with ideal ones, or with the "
        "part of --fix fixed; or as traced (default original, with one --fix fixed)",
    )
    parser.add_argument(
        "--step",
        type=options.whole,
        action="append",
        metavar="N",
        help="draw this step alone; again for each of several (default all)",
    )
    options.add_store(parser)


@dataclass(frozen=True)
class Asked:
    """What is asked of one trace beside its results."""

    fixes: tuple[str, ...]
    timeline: str | None
    of: TimelineOf
    steps: tuple[int, ...] | None

    @classmethod
    def of_arguments(cls, arguments: argparse.Namespace, n_traces: int) -> Asked:
        """What the options ask; refuses those that need something else."""
        fixes, timeline = tuple(arguments.fix), arguments.timeline
        of = arguments.of or ("fixed" if len(fixes) == 1 else "original")
        if timeline is None and (arguments.of or arguments.step):
            raise DataError("--of and --step choose what a timeline draws: add --timeline FILE")
        if timeline is not None and n_traces != 1:
            raise DataError(f"--timeline draws one trace, got {n_traces}: name one")
        if timeline is not None and of == "fixed" and len(fixes) != 1:
            raise DataError(
                f"--of fixed draws one part fixed, got {len(fixes)}: add one --fix, e.g. "
                "--fix worker:3,1"
            )
        return cls(fixes, timeline, of, tuple(arguments.step) if arguments.step else None)

    def refuse_overwriting(self, trace: str) -> None:
        """Refuses a timeline in place of the trace that it draws."""
        if self.timeline is None:
            return
        target, given = Path(self.timeline), Path(trace)
        if target.exists() and given.exists() and target.samefile(given):
            raise DataError(f"--timeline {target} is the trace itself: name another file")

    def answers(self, model: WhatIf, n_gpus: int | None) -> output.Row:
        """Keys that the record of a trace gains; writes the timeline."""
        found: output.Row = {}
        if self.fixes:
            found["fixes"] = _fixes(model, self.fixes, n_gpus)
        if self.timeline is not None:
            self._write(model, self.timeline)
            found["timeline"] = self.timeline
        return found

    def _write(self, model: WhatIf, file: str) -> None:
        from analytics.training.stragglers.drawn import drawn_timeline

        part = self.fixes[0] if self.of == "fixed" else None
        text = drawn_timeline(model, self.of, part=part, steps=self.steps)
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{file}: cannot be written ({error.strerror}): name another file"
            ) from None


def _fixes(model: WhatIf, parts: tuple[str, ...], n_gpus: int | None) -> list[output.Row]:
    from analytics.training.stragglers.fixes import Part, fixed

    return [
        {
            "part": str(found.part),
            "original_seconds": float(found.original_seconds.mean()),
            "fixed_seconds": float(found.fixed_seconds.mean()),
            "saved_ratio": found.saved_ratio,
            "saved_gpu_hours_per_day": None
            if n_gpus is None
            else found.saved_gpu_hours_per_day(n_gpus),
        }
        for found in fixed(model, [Part.named(part) for part in parts])
    ]


def stored(root: Path) -> list[output.Row]:
    """The records of all traces of a store, newest first."""
    from app import questions
    from data.queries.selection import Selection
    from data.store import Store

    with contextlib.closing(Store.open(root)) as store:
        ids = questions.straggler_traces(store, Selection())["trace_id"]
        found = [questions.straggler_trace(store, trace_id) for trace_id in ids]
    if not found:
        raise DataError(
            f"{root}: holds no straggler trace: name trace files, or store one with "
            "`faultline ingest straggler-trace FILE`"
        )
    return [_record(each.facts, each.results) for each in found]


def _record(facts: output.Row, results: output.Row) -> output.Row:
    """A stored trace with the keys of one that was just analysed."""
    named = ("trace_id", "cluster", "job_id", "run_id", "traced_at")
    sizes = {f"{name}_size": facts[name] for name in ("dp", "pp", "tp", "vpp")}
    return (
        {"trace": facts["name"]}
        | {name: facts[name] for name in named}
        | {"job_meta": {"trial_name": facts["name"], **sizes, "world_size": facts["n_gpus"]}}
        | results
    )
