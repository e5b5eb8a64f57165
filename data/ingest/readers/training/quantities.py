"""Quantities that a training logs, by the names that loggers give them.

Names are compared in lower case with every run of other signs as one `_`: `Wall time`, `_step`,
`train/loss` and `elapsed time per iteration (ms)` are found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES: Final = {
    "step": (
        *("step", "global_step", "iteration", "iter", "iterations", "train_step"),
        *("training_step", "trainer_global_step", "update", "num_updates", "n_iter"),
    ),
    "logged_at": (
        *("logged_at", "timestamp", "time", "date", "datetime", "date_time", "wall_time"),
        *("walltime", "created_at", "observed_at", "log_time", "ts", "at"),
    ),
    "loss": (
        *("loss", "train_loss", "training_loss", "lm_loss", "total_loss", "reduced_train_loss"),
        *("train_loss_step", "loss_train", "cross_entropy_loss", "crossentropyloss", "ce_loss"),
    ),
    "grad_norm": (
        *("grad_norm", "gradient_norm", "global_grad_norm", "train_grad_norm", "gnorm"),
        *("total_grad_norm", "gradnorm"),
    ),
    "step_time": (
        *("step_time", "iteration_time", "iter_time", "time_per_step", "time_per_iteration"),
        *("seconds_per_step", "sec_per_step", "s_per_step", "seconds_per_iteration"),
        *("step_duration", "elapsed_time_per_iteration", "train_step_timing", "train_step_time"),
        *("batch_time", "time_per_iter", "perf_step_time"),
    ),
    "throughput": (
        *("throughput", "tokens_per_second", "tokens_per_sec", "tokens_per_s", "tokens_s"),
        *("train_tokens_per_second", "tok_s", "tps", "wps"),
    ),
    "learning_rate": ("learning_rate", "lr", "train_lr", "current_lr", "lr_step", "base_lr"),
    "loss_scale": ("loss_scale", "loss_scaler", "train_loss_scale", "grad_scale", "scaler_scale"),
    "rank": ("rank", "global_rank", "process_index", "world_rank"),
    "run_id": ("run_id", "run", "run_name"),
    "job_id": ("job_id", "jobid", "slurm_job_id", "slurm_jobid"),
    "cluster": ("cluster", "cluster_name"),
    "checkpoint_event": (
        *("checkpoint_event", "ckpt_event", "checkpoint", "ckpt", "event", "event_type"),
    ),
    "checkpoint": (
        *("checkpoint_s", "checkpoint_time", "checkpoint_duration", "checkpoint_save_time"),
        *("save_time", "save_duration", "save_checkpoint_time", "ckpt_time", "ckpt_duration"),
        *("checkpoint_seconds", "checkpoint_stall", "checkpoint_write_time"),
    ),
}
"""Quantity -> names of its column, the surest first."""

NUMBERS: Final = ("loss", "grad_norm", "throughput", "learning_rate", "loss_scale")
"""Quantities that are stored as the source states them, under their own names."""

DURATIONS: Final = {"step_time": "step_time_s", "checkpoint": "checkpoint_s"}
"""Quantity that is a time -> its column in the store, in seconds."""

_UNITS: Final = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "ms": 1e-3, "msec": 1e-3, "millis": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ns": 1e-9,
    "min": 60.0, "mins": 60.0, "minutes": 60.0,
}  # fmt: skip
"""Unit at the end of a name -> seconds."""

SAVED: Final = frozenset(
    ("saved", "save", "checkpoint_saved", "checkpoint_save", "save_checkpoint", "saved_checkpoint",
     "checkpoint", "ckpt", "ckpt_saved", "ckpt_save", "save_ckpt", "save_end", "save_done",
     "checkpoint_written", "written", "write", "end_save", "true", "1", "yes")
)  # fmt: skip
"""Spellings of a save that is done; `true`, `1` and `yes` of a column that asks whether."""

LOADED: Final = frozenset(
    ("loaded", "load", "checkpoint_loaded", "checkpoint_load", "load_checkpoint",
     "loaded_checkpoint", "ckpt_loaded", "ckpt_load", "load_ckpt", "load_end", "load_done",
     "restored", "restore", "checkpoint_restored", "restore_checkpoint", "resumed", "resume",
     "resumed_from_checkpoint")
)  # fmt: skip

NO_EVENT: Final = frozenset(
    ("", "none", "null", "nan", "na", "n_a", "false", "0", "no", "step", "train", "training",
     "train_step", "training_step", "log", "iteration")
)  # fmt: skip
"""Spellings of a plain step."""


class Column(NamedTuple):
    """A column of the file that holds a known quantity."""

    place: int
    """Among the columns of the file, from 0."""
    factor: float = 1.0
    """What its values are multiplied by."""
    free: bool = False
    """A column of events of every kind, of which checkpoints are some."""


def known_columns(header: Sequence[str]) -> dict[str, Column]:
    """Quantity -> the column that holds it; where several could, that of the surest name.

    Examples
    --------
    >>> found = known_columns(["Wall time", "Step", "step time (ms)", "optim/lr", "eval/loss"])
    >>> found["step_time"], sorted(found)
    (Column(place=2, factor=0.001, free=False), ['learning_rate', 'logged_at', 'step', 'step_time'])
    """
    plain = [plain_name(name) for name in header]
    bare = [_without_group(name) for name in header]
    found: dict[str, Column] = {}
    for quantity, names in NAMES.items():
        for name in names:
            column = _column(quantity, name, plain) or _column(quantity, name, bare)
            if column is not None and column.place not in {c.place for c in found.values()}:
                found[quantity] = column
                break
    return found


def plain_name(name: str) -> str:
    """A name in lower case, its other signs as single `_`."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


_GROUPS: Final = frozenset(
    ("train", "training", "trainer", "optim", "optimizer", "perf", "performance", "timing", "time",
     "metrics", "lm_loss_training", "iteration_time")
)  # fmt: skip
"""Groups of series whose members are of the training; `eval`, `device`, `layers` are not."""


def _without_group(name: str) -> str:
    """The plain name of a series of a group of the training, and of `loss-scale/loss-scale`."""
    group, _, last = name.rpartition("/")
    if plain_name(group) in _GROUPS or plain_name(group) == plain_name(last):
        return plain_name(last)
    return ""


def _column(quantity: str, name: str, plain: Sequence[str]) -> Column | None:
    """The first column of that name, for a duration also with a unit behind."""
    free = name in ("event", "event_type")
    for index, found in enumerate(plain):
        if found == name:
            unit = name.rpartition("_")[2] if quantity in DURATIONS else ""
            return Column(index, _UNITS.get(unit, 1.0), free)
        if quantity in DURATIONS and found.startswith(f"{name}_"):
            unit = found.removeprefix(f"{name}_").removeprefix("in_")
            if unit in _UNITS:
                return Column(index, _UNITS[unit])
    return None
