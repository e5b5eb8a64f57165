"""Results of straggler traces as rows for people and sheets."""

from __future__ import annotations

from typing import Any

from app.cli import output

STRONGEST = 3
"""Types of operations that a row names."""
HEADER = ["trace", "S", "GPU-time wasted", "launch", "steps", "left out", "dp", "pp",
          "strongest types (S_t)", "causes (gain)", "seconds"]  # fmt: skip


def print_records(records: list[output.Row], form: str) -> None:
    """One row a trace."""
    rows = [_summary(record) for record in records]
    if form == "csv":
        output.print_csv(list(rows[0]), [list(row.values()) for row in rows])
        return
    output.print_table(
        HEADER,
        [
            [f"{100 * value:.1f} %" if name == "gpu_hours_wasted_ratio" else value
             for name, value in row.items()]
            for row in rows
        ],
    )  # fmt: skip


def print_fixes(records: list[output.Row], form: str) -> None:
    """Before and after of each part that is fixed."""
    names = ["trace", "fixed", "original_seconds", "fixed_seconds", "saved_ratio",
             "saved_gpu_hours_per_day"]  # fmt: skip
    rows = [
        [record["trace"], fix["part"], fix["original_seconds"], fix["fixed_seconds"],
         fix["saved_ratio"].value, _hours(fix["saved_gpu_hours_per_day"])]
        for record in records
        for fix in record.get("fixes", ())
    ]  # fmt: skip
    if form == "csv":
        output.print_csv(names, rows)
    elif rows:
        print()
        output.print_table(
            ["fixed", "step s", "step s fixed", "gives back", "GPU-hours a day"],
            [[part, own, fixed, f"{100 * saved:.1f} %", hours]
             for _, part, own, fixed, saved, hours in rows],
        )  # fmt: skip


def _hours(saved: Any) -> float | None:
    return None if saved is None else saved.value


def _summary(record: output.Row) -> dict[str, Any]:
    """One line of a trace."""
    strongest = list(record["S_t"].items())[:STRONGEST]
    return {
        "trace": record["trace"],
        "S": record["S"],
        "gpu_hours_wasted_ratio": record["gpu_hours_wasted_ratio"],
        "launch_slowdown": record["launch_slowdown"],
        "steps": len(record["per_step_S"]),
        "dropped_steps": len(record["dropped_steps"]),
        "dp": record["job_meta"]["dp_size"],
        "pp": record["job_meta"]["pp_size"],
        "strongest_types": ", ".join(f"{name} {value:.3f}" for name, value in strongest),
        "causes": ", ".join(map(_cause_words, record.get("causes") or ())),
        "seconds": record.get("seconds"),
    }


def _cause_words(found: dict[str, Any]) -> str:
    """A cause, where, and what fixing it gives."""
    if found["cause"] == "none":
        return "none"
    names = (("dp_rank", "dp"), ("stage", "stage"), ("stages", "stages"))
    target = found["target"] or {}
    where = [f"{word} {target[key]}" for key, word in names if target.get(key) is not None]
    place = f" ({', '.join(where)})" if where else ""
    return f"{found['cause']}{place} {100 * found['gain_ratio']:.1f} %"
