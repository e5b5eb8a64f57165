"""Training of many runs side by side: replicas, AdamW, mitigations, a synthetic task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.training.lab.transformer import Pass, Shape, Singles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.arrays import Bools, Ints
    from analytics.training.lab.transformer import Seen

BETAS: Final = (np.float32(0.9), np.float32(0.95))
DECAY: Final = np.float32(0.01)
"""Weight decay, times the learning rate."""
SUCCESSORS: Final = 4
"""Tokens of which one usually follows another."""
USUALLY: Final = 0.9
"""Share of tokens that follow the rule."""


@dataclass(frozen=True)
class Recipe:
    """How a run is trained."""

    shape: Shape = field(default_factory=Shape)
    replicas: int = 4
    sequences: int = 2
    """Of each replica in a step."""
    learning_rate: float = 1e-2
    warmup: int = 10
    """Steps over which the learning rate rises."""
    adam_epsilon: float = 1e-8
    clip: float | None = None
    """Norm to which the gradient is clipped; None where it is not."""
    smooth_every: int | None = None
    """Steps between smoothings of singular values; None where there are none."""
    smooth_ratio: float = 4.0
    """Largest singular value that smoothing leaves, over the median of the matrix."""


@dataclass(frozen=True)
class Task:
    """What runs learn: tokens of which each is usually followed by one of a few."""

    successors: Ints
    """(tokens, SUCCESSORS)."""

    @classmethod
    def drawn(cls, n_tokens: int, rng: np.random.Generator) -> Task:
        """A task by chance."""
        return cls(np.stack([rng.choice(n_tokens, SUCCESSORS, False) for _ in range(n_tokens)]))

    def sequences(self, rng: np.random.Generator, n: int, length: int) -> Ints:
        """Sequences of the task, (n, length + 1)."""
        n_tokens = len(self.successors)
        found = np.empty((n, length + 1), dtype=np.int64)
        found[:, 0] = rng.integers(0, n_tokens, n)
        follows = rng.random((n, length)) < USUALLY
        which = rng.integers(0, SUCCESSORS, (n, length))
        other = rng.integers(0, n_tokens, (n, length))
        for at in range(length):
            rule = self.successors[found[:, at], which[:, at]]
            found[:, at + 1] = np.where(follows[:, at], rule, other[:, at])
        return found


@dataclass
class State:
    """What training carries from step to step, (runs, replicas, parameters) each."""

    parameters: Singles
    first: Singles
    """Moments of Adam."""
    second: Singles
    update: Singles
    """The last update."""

    @classmethod
    def initial(cls, recipe: Recipe, seeds: Sequence[Sequence[int]]) -> State:
        """Replicas of a run begin alike."""
        each = np.stack([recipe.shape.initial(np.random.default_rng([*seed, 1])) for seed in seeds])
        parameters = np.repeat(each[:, None], recipe.replicas, axis=1)
        return cls(parameters, *(np.zeros_like(parameters) for _ in range(3)))


@dataclass(frozen=True)
class Shown:
    """What one step shows of each run; (runs,) or, of each replica, (runs, replicas)."""

    loss: Singles
    """Of each replica, on its own tokens."""
    gradient_norm: Singles
    """Of the gradient that is averaged over the replicas, before it is clipped."""
    replica_norm: Singles
    """Of each replica's own gradient."""
    query_norm: Singles
    key_norm: Singles
    attention_entropy: Singles
    update_cosine: Singles
    """Cosine of a replica's update with its last one, the least over the replicas."""
    replicas_differ: Bools
    """Whether parameters of replicas are not bit-equal after the step."""


class Faults:
    """Where a step can go wrong; this one leaves all as it is."""

    def of_state(self, step: int, state: State) -> None:
        """Shown parameters and moments before a step."""

    def tap(self, step: int) -> Callable[[str, Singles], None] | None:  # noqa: ARG002
        """What is shown the activations of a step; None where nobody looks."""
        return None

    def of_gradient(self, step: int, gradient: Singles) -> None:
        """Shown each replica's gradient, (runs, replicas, parameters), before the average."""


def step(
    recipe: Recipe, state: State, at: int, tokens: Ints, faults: Faults | None = None
) -> Shown:
    """One step of all runs; the state is changed in place.

    .. math:: m \\leftarrow \\beta_1 m + (1-\\beta_1) g, \\quad
        v \\leftarrow \\beta_2 v + (1-\\beta_2) g^2, \\quad
        w \\leftarrow w - \\eta (\\hat m / (\\sqrt{\\hat v} + \\epsilon) + \\lambda w)

    with g the gradient averaged over replicas, clipped where the recipe says so, and hats for the
    correction of the beginning (AdamW).

    Parameters
    ----------
    at : int
        The step, from 0.
    tokens : numpy.ndarray of int, shape (runs, replicas, sequences, length + 1)
    faults
        What goes wrong.

    References
    ----------
    Loshchilov and Hutter (2019), arXiv 1711.05101.
    """
    faults = faults or Faults()
    with np.errstate(all="ignore"):  # what a flipped bit does is what is looked at
        faults.of_state(at, state)
        seen, gradient = _passed(recipe, state, tokens, faults.tap(at))
        faults.of_gradient(at, gradient)
        averaged = gradient.mean(axis=1, dtype=np.float32)
        norm = _norm(averaged)
        if recipe.clip is not None:
            averaged *= np.minimum(1.0, np.float32(recipe.clip) / (norm + 1e-6))[:, None]
        cosine = _updated(recipe, state, at, averaged)
        if recipe.smooth_every is not None and at % recipe.smooth_every == 0:
            smooth(recipe, state.parameters)
        replica_norm = _norm(gradient)
    runs = tokens.shape[:2]
    bits = state.parameters.view(np.uint32)
    return Shown(
        seen.loss.reshape(runs),
        norm,
        replica_norm,
        seen.query_norm.reshape(runs).max(axis=1),
        seen.key_norm.reshape(runs).max(axis=1),
        seen.attention_entropy.reshape(runs).min(axis=1),
        cosine.min(axis=1),
        (bits[:, 1:] != bits[:, :1]).any(axis=(1, 2)),
    )


def _passed(
    recipe: Recipe, state: State, tokens: Ints, tap: Callable[[str, Singles], None] | None
) -> tuple[Seen, Singles]:
    """One pass of each replica, and its gradient, (runs, replicas, parameters)."""
    lanes = tokens.shape[0] * tokens.shape[1]
    flat = state.parameters.reshape(lanes, -1)
    seqs = tokens.reshape(lanes, *tokens.shape[2:])
    passed = Pass(recipe.shape, flat, seqs) if tap is None else Pass(recipe.shape, flat, seqs, tap)
    return passed.seen, passed.gradient().reshape(state.parameters.shape)


def _norm(values: Singles) -> Singles:
    """Norm along the last axis."""
    found: Singles = np.sqrt(np.einsum("...i,...i->...", values, values))
    return found


def _updated(recipe: Recipe, state: State, at: int, gradient: Singles) -> Singles:
    """Moves moments and parameters; the cosine of each update with the last one.

    Run by run: what one needs stays in the processor's cache.
    """
    cosine = np.empty(state.parameters.shape[:2], dtype=np.float32)
    for run, own in enumerate(gradient):
        moments = state.first[run], state.second[run]
        cosine[run] = _moved(
            recipe, at, own, state.parameters[run], moments, last=state.update[run]
        )
    return cosine


def _moved(
    recipe: Recipe,
    at: int,
    gradient: Singles,
    parameters: Singles,
    moments: tuple[Singles, Singles],
    *,
    last: Singles,
) -> Singles:
    """The same of one run, (replicas, parameters) each; the cosine of each replica."""
    (beta, beta_2), (first, second) = BETAS, moments
    first *= beta
    first += (1 - beta) * gradient
    second *= beta_2
    second += (1 - beta_2) * gradient**2
    rate = np.float32(recipe.learning_rate * min(1.0, (at + 1) / recipe.warmup))
    root = np.sqrt(second / (1 - beta_2 ** (at + 1)))
    root += np.float32(recipe.adam_epsilon)
    update = np.divide(first, root, out=root)
    update *= rate / (1 - beta ** (at + 1))
    update += rate * DECAY * parameters
    parameters -= update
    along = np.einsum("di,di->d", update, last)
    cosine: Singles = along / (_norm(update) * _norm(last))
    last[...] = update
    return cosine


def smooth(recipe: Recipe, parameters: Singles) -> None:
    """Caps singular values of each block's matrices, in place, at a multiple of their median.

    .. math:: W = U S V^T \\rightarrow U \\min(S, \\kappa\\, \\mathrm{median}(S)) V^T

    Matrices stay as they are where a value is not finite, or so large that the rest is lost in the
    rounding of the decomposition.

    References
    ----------
    Cao et al. (2026), arXiv 2602.01308, smooth the singular spectra of weights against
    instability; this form of it is ours.
    """
    flat = parameters.reshape(-1, parameters.shape[-1])
    for name, matrices in recipe.shape.views(flat).items():
        if name in LOOKED_UP:
            continue
        known = np.flatnonzero(np.abs(matrices).max(axis=(1, 2)) < LARGEST)
        spectrum = np.linalg.svd(matrices[known], compute_uv=False)
        above = spectrum[:, 0] > recipe.smooth_ratio * np.median(spectrum, axis=1)
        for place in known[above]:
            u, s, v = np.linalg.svd(matrices[place].astype(np.float64), full_matrices=False)
            most = recipe.smooth_ratio * np.median(s)
            matrices[place] = (u * np.minimum(s, most)) @ v


LARGEST: Final = 1e13
"""Magnitude beyond which double precision loses the rest of a matrix."""
LOOKED_UP: Final = ("embedding", "position")
"""Tensors whose rows are looked up, not multiplied by."""


def held_out_loss(recipe: Recipe, state: State, tokens: Ints) -> Singles:
    """Mean loss of each run's replicas, (runs,), on the same sequences (sequences, length + 1)."""
    runs, replicas = state.parameters.shape[:2]
    lanes = runs * replicas
    same = np.broadcast_to(tokens, (lanes, *tokens.shape))
    with np.errstate(all="ignore"):
        passed = Pass(recipe.shape, state.parameters.reshape(lanes, -1), same)
    worst: Singles = passed.seen.loss.reshape(runs, replicas).max(axis=1)
    return worst


MITIGATIONS: Final[dict[str, Callable[[Recipe], Recipe]]] = {
    "gradient_clipping": lambda recipe: replace(recipe, clip=1.0),
    "qk_normalisation": lambda recipe: replace(recipe, shape=replace(recipe.shape, qk_norm=True)),
    "lower_learning_rate": lambda recipe: replace(recipe, learning_rate=recipe.learning_rate / 3),
    "singularity_smoothing": lambda recipe: replace(recipe, smooth_every=5),
}
"""Name -> the recipe with it."""
