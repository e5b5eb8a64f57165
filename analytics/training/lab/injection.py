"""One bit of a float32 flipped at a chosen place of training, once or stuck from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from analytics.errors import OutOfRangeError
from analytics.training.lab.training import Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.training.lab.training import Recipe, State
    from analytics.training.lab.transformer import Singles

Place = Literal["weights", "activations", "gradients", "optimizer"]
PLACES: Final[tuple[Place, ...]] = ("weights", "activations", "gradients", "optimizer")
BITS: Final = 32
EARLIEST, LATEST = 0.25, 0.6
"""Share of the steps between which a bit flips: indicators have a past, and the run a future."""
TAPS: Final = ("query_key_value", "attention", "hidden", "residual")
"""Activations of a block, as the transformer shows them."""


@dataclass(frozen=True)
class Injection:
    """A bit that flips in one replica of one run."""

    run: int
    """The clean run that it changes."""
    place: Place
    tensor: str
    """Parameter tensor, activation or moment."""
    element: int
    """Place among the parameters of a replica, or in the activation."""
    bit: int
    """From 0, the last of the mantissa, to 31, the sign."""
    step: int
    persistent: bool
    """Whether the bit stays as it fell, at every later step, as in a broken cell or wire."""
    replica: int


def bit_field(bit: int) -> str:
    """Which part of a float32 a bit is; the upper 16 are a bfloat16's.

    >>> [bit_field(bit) for bit in (31, 30, 16, 15)]
    ['sign', 'exponent', 'upper mantissa', 'lower mantissa']
    """
    if bit == BITS - 1:
        return "sign"
    if bit >= 23:
        return "exponent"
    return "upper mantissa" if bit >= 16 else "lower mantissa"


def flipped(value: float, bit: int) -> float:
    """A float32 with one bit flipped.

    >>> flipped(1.0, 31), flipped(1.0, 23), flipped(1.0, 22), flipped(1.0, 30)
    (-1.0, 0.5, 1.5, inf)
    """
    bits = np.array([value], dtype=np.float32).view(np.uint32)
    bits ^= np.uint32(1 << bit)
    return float(bits.view(np.float32)[0])


def check(places: Sequence[str], bits: Sequence[int]) -> None:
    """Refuses places that are none, bits outside a float32, or none of either."""
    wrong = [place for place in places if place not in PLACES]
    if wrong or not places:
        raise OutOfRangeError(
            "places", f"among {', '.join(PLACES)}", wrong[0] if wrong else "none", "name some"
        )
    outside = [bit for bit in bits if not 0 <= bit < BITS]
    if outside or not bits:
        raise OutOfRangeError(
            "bits", "from 0 to 31", outside[0] if outside else "none", "name bits of a float32"
        )


def planned(
    recipe: Recipe,
    n: int,
    rng: np.random.Generator,
    *,
    steps: int,
    runs: Sequence[int],
    places: Sequence[Place] = PLACES,
    bits: Sequence[int] = tuple(range(BITS)),
) -> list[Injection]:
    """Injections spread evenly over places, bits and clean runs, half of them persistent, the rest
    by chance.

    Parameters
    ----------
    n : int
        How many.
    steps : int
        Of a run.
    runs : sequence of int
        Clean runs of which each injection changes one.

    Raises
    ------
    OutOfRangeError
        For a place that is none, a bit outside 0 to 31, or none of either.
    """
    check(places, bits)
    cells = [(place, bit) for place in places for bit in bits]
    hit = np.concatenate([rng.permutation(runs) for _ in range(-(-n // len(runs)))])
    return [
        _drawn(recipe, *cells[i % len(cells)], rng, steps, int(hit[i]),
               persistent=(i + i // len(cells)) % 2 == 1)
        for i in range(n)
    ]  # fmt: skip


def _drawn(
    recipe: Recipe,
    place: Place,
    bit: int,
    rng: np.random.Generator,
    steps: int,
    run: int,
    *,
    persistent: bool,
) -> Injection:
    """An injection of a place and bit, by chance in all else."""
    shape = recipe.shape
    element = int(rng.integers(shape.n_parameters))
    tensor = shape.tensor_of(element)
    if place == "optimizer":
        tensor = f"{('first', 'second')[int(rng.integers(2))]} moment of {tensor}"
    if place == "activations":
        layer, tap = int(rng.integers(shape.n_layers)), TAPS[int(rng.integers(len(TAPS)))]
        widths = {"query_key_value": 3 * shape.width, "hidden": shape.hidden}
        size = recipe.sequences * shape.length * widths.get(tap, shape.width)
        element, tensor = int(rng.integers(size)), f"{tap}_{layer}"
    return Injection(
        run=run,
        place=place,
        tensor=tensor,
        element=element,
        bit=bit,
        step=int(rng.integers(int(EARLIEST * steps), int(LATEST * steps) + 1)),
        persistent=persistent,
        replica=int(rng.integers(recipe.replicas)),
    )


class Injected(Faults):
    """The injections of runs that are trained side by side, one of each."""

    def __init__(self, injections: Sequence[Injection]) -> None:
        self.injections = injections
        self.stuck: dict[int, np.uint32] = {}
        """Run -> the value at which its bit stays."""
        self.before: dict[int, float] = {}
        """Run -> the value that was hit first."""

    def of_state(self, step: int, state: State) -> None:
        """Bits of parameters and moments."""
        for run, each in self._due(step, "weights"):
            self._hit(run, each, state.parameters[run, each.replica])
        for run, each in self._due(step, "optimizer"):
            moment = state.first if each.tensor.startswith("first") else state.second
            self._hit(run, each, moment[run, each.replica])

    def tap(self, step: int) -> Callable[[str, Singles], None] | None:
        """Bits of activations."""
        due = list(self._due(step, "activations"))
        if not due:
            return None
        shown = dict.fromkeys(TAPS, 0)

        def hit(name: str, values: Singles) -> None:
            layer = shown[name]
            shown[name] += 1
            lanes = len(values) // len(self.injections)
            for run, each in due:
                if each.tensor == f"{name}_{layer}":
                    self._hit(run, each, values[run * lanes + each.replica].reshape(-1))

        return hit

    def of_gradient(self, step: int, gradient: Singles) -> None:
        """Bits of a replica's gradient, before the average over replicas."""
        for run, each in self._due(step, "gradients"):
            self._hit(run, each, gradient[run, each.replica])

    def _due(self, step: int, place: Place) -> list[tuple[int, Injection]]:
        """Run and injection of those that strike in a step."""
        return [
            (run, each)
            for run, each in enumerate(self.injections)
            if each.place == place and (step == each.step or (each.persistent and step > each.step))
        ]

    def _hit(self, run: int, each: Injection, values: Singles) -> None:
        """Flips the bit, or puts it where it stays; `values` lie in one piece."""
        bits, mask = values.view(np.uint32), np.uint32(1 << each.bit)
        if run not in self.stuck:
            self.before[run] = float(values[each.element])
            self.stuck[run] = (bits[each.element] ^ mask) & mask
        bits[each.element] = (bits[each.element] & ~mask) | self.stuck[run]
