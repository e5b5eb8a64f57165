"""Lines that trainers print at each step, by what stands on them.

Megatron-LM and its kin print ` iteration 5/ 10 | elapsed time per iteration (ms): ... | lm loss:
...`; NeMo `Training epoch 0, iteration 5/99 | lr: ... | global_step: 5 | ...`, or a progress bar
with `global_step=5.0, reduced_train_loss=...`; DeepSpeed's pipeline `steps: 10 loss: ... iter time
(s): ...`. Saves and loads of Megatron-LM's checkpoints are lines of their own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from data.ingest.readers.training.quantities import DURATIONS, known_columns
from data.ingest.readers.training.step_records import MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from data.ingest.readers.training.step_records import Value

_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf)"
_MEGATRON = re.compile(r"\biteration\s+(\d{1,15})\s*/\s*\d+\s*\|")
_PAIR = re.compile(rf"\s*([A-Za-z][^|:]*?(?:\([^|)]*\))?)\s*:\s*({_NUMBER})\s*")
_BAR = re.compile(rf"([A-Za-z][\w/ .-]*?)=({_NUMBER})(?=[,\]\s])")
_BAR_STEP = re.compile(r"\bglobal_step=(\d+(?:\.0*)?)[,\]]")
_PIPELINE = re.compile(
    rf"\bsteps: (\d+) loss: ({_NUMBER}) iter time \(s\): ({_NUMBER})(?: samples/sec: ({_NUMBER}))?"
)
_CHECKPOINT = re.compile(
    r"\bsuccessfully (saved|loaded) checkpoint\b.*?\bat iteration\s+(\d{1,15})\b"
)
BAR = "global_step="
"""What a progress bar holds, which prints its state again and again."""
MARKS = ("iteration", BAR, "iter time (s):")
"""A line without any of these is of no step."""
STEP = "step"


def values_of(line: str, *, is_cut: bool = False) -> dict[str, Value] | None:
    """What a line says of a step; None where it is of none.

    Step times are in seconds, by the unit that the line names. Of a line that is cut off
    (`is_cut`) the last value, which may lack digits, is left out.

    Examples
    --------
    >>> values_of(" iteration 5/ 10 | elapsed time per iteration (ms): 250.0 | lm loss: 2.5E+00 |")
    {'step': 5.0, 'step_time_s': 0.25, 'lm loss': 2.5}
    >>> values_of("successfully saved checkpoint at iteration 5 to /ckpt")
    {'step': 5.0, 'checkpoint_event': 'saved'}
    """
    if not any(mark in line for mark in MARKS):
        return None
    if (found := _MEGATRON.search(line)) is not None:
        return _of_pairs(found[1], line[found.end() :], is_cut=is_cut)
    if (found := _BAR_STEP.search(line)) is not None:
        pairs = [(name.strip(), text) for name, text in _BAR.findall(line)]
        return _values(found[1], (pair for pair in pairs if pair[0] != "global_step"))
    if (found := _PIPELINE.search(line)) is not None:
        names = ("loss", "iter time (s)", "samples/sec")
        texts = zip(names, found.groups()[1:], strict=True)
        return _values(found[1], ((name, text) for name, text in texts if text is not None))
    if (found := _CHECKPOINT.search(line)) is not None:
        return {STEP: float(found[2]), "checkpoint_event": found[1]}
    return None


def _of_pairs(iteration: str, rest: str, *, is_cut: bool) -> dict[str, Value] | None:
    """What the parts of a line between bars say; None where none is a number."""
    parts = rest.split("|")
    if is_cut and parts[-1].strip():
        del parts[-1]
    pairs = [found.groups() for part in parts if (found := _PAIR.fullmatch(part)) is not None]
    steps = [text for name, text in pairs if name == "global_step"]
    others = [(name, text) for name, text in pairs if name != "global_step"]
    return _values(steps[0] if steps else iteration, others) if others else None


def _values(step: str, pairs: Iterable[tuple[str, str]]) -> dict[str, Value]:
    found: dict[str, Value] = {STEP: float(step.replace(",", ""))}
    for name, text in pairs:
        number = float(text.replace(",", ""))
        own, factor = _meaning(name)
        found[own] = number * factor
    return found


@cache
def _meaning(name: str) -> tuple[str, float]:
    """The name of a value as it is kept, and what it is multiplied by."""
    for quantity, column in known_columns([name]).items():
        if quantity in DURATIONS:
            return DURATIONS[quantity], column.factor
        if quantity not in MEASURED or quantity in (STEP, "logged_at"):
            return f"{name}/value", 1.0
    return name, 1.0


def parts_of(line: str) -> Iterator[str]:
    """The states of a progress bar, which overwrites itself; the line where it is none."""
    yield from filter(str.strip, line.rstrip("\r\n").split("\r"))
