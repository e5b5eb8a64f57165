"""A small decoder-only transformer with its gradient, many copies side by side as one array axis.

Copies ("lanes") share nothing: each has its own parameters and its own tokens. All arithmetic is
float32, as it is where bits flip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.arrays import Ints

    Tap: TypeAlias = Callable[[str, NDArray[np.float32]], None]

Singles: TypeAlias = NDArray[np.float32]
EPSILON: Final = np.float32(1e-6)
"""Below the root of the normalisation."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the transformer."""

    n_tokens: int = 32
    """Size of the vocabulary."""
    length: int = 12
    """Tokens of a sequence that are predicted."""
    width: int = 16
    n_heads: int = 2
    n_layers: int = 2
    hidden: int = 64
    """Width of the hidden layer of each block."""
    qk_norm: bool = False
    """Whether queries and keys are normalised before they meet."""

    @property
    def head_width(self) -> int:
        """Width of a head."""
        return self.width // self.n_heads

    @property
    def tensors(self) -> dict[str, tuple[int, int]]:
        """Parameter tensors in the order of the flat parameters, each a matrix."""
        blocks = {
            f"{name}_{layer}": size
            for layer in range(self.n_layers)
            for name, size in (
                ("qkv", (self.width, 3 * self.width)),
                ("attention_out", (self.width, self.width)),
                ("hidden", (self.width, self.hidden)),
                ("hidden_out", (self.hidden, self.width)),
            )
        }
        return {
            "embedding": (self.n_tokens, self.width),
            "position": (self.length, self.width),
            **blocks,
            "head": (self.width, self.n_tokens),
        }

    @property
    def n_parameters(self) -> int:
        """Of one copy."""
        return sum(a * b for a, b in self.tensors.values())

    def tensor_of(self, element: int) -> str:
        """Tensor that holds an element of the flat parameters.

        >>> Shape().tensor_of(0), Shape().tensor_of(Shape().n_parameters - 1)
        ('embedding', 'head')
        """
        ends = np.cumsum([a * b for a, b in self.tensors.values()])
        return list(self.tensors)[int(np.searchsorted(ends, element, side="right"))]

    def views(self, flat: Singles) -> dict[str, Singles]:
        """The tensors of flat parameters or gradients, (lanes, parameters), without a copy."""
        found, at = {}, 0
        for name, (rows, columns) in self.tensors.items():
            part = flat[:, at : at + rows * columns]
            found[name] = part.reshape(len(flat), rows, columns)
            at += rows * columns
        return found

    def initial(self, rng: np.random.Generator) -> Singles:
        """Parameters to begin with, (parameters,): normal, by the width that each row sums over."""
        parts = []
        for name, (rows, columns) in self.tensors.items():
            scale = 0.3 if name in ("embedding", "position") else rows**-0.5
            if name.startswith(("attention_out", "hidden_out")):
                scale /= (2 * self.n_layers) ** 0.5
            parts.append(scale * rng.standard_normal(rows * columns))
        return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True)
class Seen:
    """What one pass shows of each lane, (lanes,)."""

    loss: Singles
    query_norm: Singles
    """The largest norm of a query, over layers, heads and tokens."""
    key_norm: Singles
    attention_entropy: Singles
    """Mean over sequences and tokens, nats, of the head in which it is least."""


def _no_tap(name: str, values: Singles) -> None:
    """Leaves an activation as it is."""


class Pass:
    """One pass forward, and backward, over the tokens of all lanes.

    Parameters
    ----------
    shape
        Sizes.
    parameters : numpy.ndarray of float32, shape (lanes, parameters)
        Only read.
    tokens : numpy.ndarray of int, shape (lanes, sequences, length + 1)
        Each is asked to be predicted from those before it.
    tap
        Is shown each activation, (lanes, sequences x length, width), before it is used, and may
        change it in place; what it changes is what the gradient is taken of.
    """

    def __init__(self, shape: Shape, parameters: Singles, tokens: Ints, tap: Tap = _no_tap) -> None:
        self.shape, self.tap = shape, tap
        self.weights = shape.views(parameters)
        self.lanes, self.sequences = tokens.shape[:2]
        self.rows = self.sequences * shape.length
        self.given = tokens[:, :, :-1].reshape(self.lanes, self.rows)
        self.wanted = tokens[:, :, 1:].reshape(self.lanes, self.rows)
        self.blocked = np.triu(np.ones((shape.length, shape.length), dtype=bool), 1)
        self.kept: list[dict[str, Singles]] = []
        self.norms: list[tuple[Singles, Singles, Singles]] = []
        self.seen = self._forward()

    def _forward(self) -> Seen:
        """The pass; what the gradient needs is kept."""
        at = np.arange(self.lanes)[:, None]
        sequence = np.arange(self.rows) % self.shape.length
        flow = self.weights["embedding"][at, self.given] + self.weights["position"][:, sequence]
        for layer in range(self.shape.n_layers):
            kept: dict[str, Singles] = {}
            flow = flow + self._attention(layer, flow, kept)
            flow = flow + self._hidden(layer, flow, kept)
            self.tap("residual", flow)
            self.kept.append(kept)
        self.last, self.last_scale = _normalised(flow)
        logits = self.last @ self.weights["head"]
        logits -= logits.max(axis=2, keepdims=True)
        self.chance = np.exp(logits)
        total = self.chance.sum(axis=2, keepdims=True)
        self.chance /= total
        row = np.arange(self.rows)
        told = logits[at, row, self.wanted] - np.log(total[:, :, 0])
        queries, keys, entropies = zip(*self.norms, strict=True)
        return Seen(
            -told.mean(axis=1),
            np.maximum.reduce(queries),
            np.maximum.reduce(keys),
            np.minimum.reduce(entropies),
        )

    def _attention(self, layer: int, flow: Singles, kept: dict[str, Singles]) -> Singles:
        """What attention adds to the residual flow."""
        shape = self.shape
        kept["in"], kept["in_scale"] = _normalised(flow)
        mixed = kept["in"] @ self.weights[f"qkv_{layer}"]
        self.tap("query_key_value", mixed)
        split = mixed.reshape(
            self.lanes, self.sequences, shape.length, 3, shape.n_heads, shape.head_width
        )
        query, key, value = np.ascontiguousarray(split.transpose(3, 0, 1, 4, 2, 5))
        norms = _largest_norm(query), _largest_norm(key)
        if shape.qk_norm:
            query, kept["query_scale"] = _normalised(query)
            key, kept["key_scale"] = _normalised(key)
        scores = query @ key.swapaxes(3, 4)
        scores *= np.float32(shape.head_width**-0.5)
        np.copyto(scores, -np.inf, where=self.blocked)
        scores -= scores.max(axis=4, keepdims=True)
        share = np.exp(scores)
        total = share.sum(axis=4, keepdims=True)
        share /= total
        np.copyto(scores, 0.0, where=self.blocked)
        spread = np.log(total[..., 0]) - np.einsum("lshqk,lshqk->lshq", share, scores)
        self.norms.append((*norms, spread.mean(axis=(1, 3)).min(axis=1)))
        taken = np.ascontiguousarray((share @ value).transpose(0, 1, 3, 2, 4))
        out = taken.reshape(self.lanes, self.rows, shape.width)
        self.tap("attention", out)
        kept |= {"query": query, "key": key, "value": value, "share": share, "taken": out}
        return out @ self.weights[f"attention_out_{layer}"]

    def _hidden(self, layer: int, flow: Singles, kept: dict[str, Singles]) -> Singles:
        """What the hidden layer adds to the residual flow."""
        kept["mid"], kept["mid_scale"] = _normalised(flow)
        hidden: Singles = kept["mid"] @ self.weights[f"hidden_{layer}"]
        np.maximum(hidden, 0.0, out=hidden)
        self.tap("hidden", hidden)
        kept["hidden"] = hidden
        added: Singles = hidden @ self.weights[f"hidden_out_{layer}"]
        return added

    def gradient(self) -> Singles:
        """Gradient of each lane's loss, (lanes, parameters)."""
        flat = np.zeros((self.lanes, self.shape.n_parameters), dtype=np.float32)
        into = self.shape.views(flat)
        at, row = np.arange(self.lanes)[:, None], np.arange(self.rows)
        back = self.chance
        back[at, row, self.wanted] -= 1.0
        back /= np.float32(self.rows)
        np.matmul(self.last.swapaxes(1, 2), back, out=into["head"])
        flow = _through_norm(back @ self.weights["head"].swapaxes(1, 2), self.last, self.last_scale)
        for layer in reversed(range(self.shape.n_layers)):
            flow = flow + self._hidden_back(layer, flow, into)
            flow = flow + self._attention_back(layer, flow, into)
        one_hot = (self.given[:, None, :] == np.arange(self.shape.n_tokens)[:, None]).astype(
            np.float32
        )
        np.matmul(one_hot, flow, out=into["embedding"])
        by_place = flow.reshape(self.lanes, self.sequences, self.shape.length, self.shape.width)
        into["position"][...] = by_place.sum(axis=1)
        return flat

    def _hidden_back(self, layer: int, flow: Singles, into: dict[str, Singles]) -> Singles:
        """Gradient through the hidden layer of a block."""
        kept = self.kept[layer]
        np.matmul(kept["hidden"].swapaxes(1, 2), flow, out=into[f"hidden_out_{layer}"])
        back: Singles = flow @ self.weights[f"hidden_out_{layer}"].swapaxes(1, 2)
        back *= kept["hidden"] > 0
        np.matmul(kept["mid"].swapaxes(1, 2), back, out=into[f"hidden_{layer}"])
        into_norm: Singles = back @ self.weights[f"hidden_{layer}"].swapaxes(1, 2)
        return _through_norm(into_norm, kept["mid"], kept["mid_scale"])

    def _attention_back(self, layer: int, flow: Singles, into: dict[str, Singles]) -> Singles:
        """Gradient through the attention of a block."""
        shape, kept = self.shape, self.kept[layer]
        np.matmul(kept["taken"].swapaxes(1, 2), flow, out=into[f"attention_out_{layer}"])
        back = flow @ self.weights[f"attention_out_{layer}"].swapaxes(1, 2)
        heads = (self.lanes, self.sequences, shape.length, shape.n_heads, shape.head_width)
        taken = np.ascontiguousarray(back.reshape(heads).transpose(0, 1, 3, 2, 4))
        value = kept["share"].swapaxes(3, 4) @ taken
        share = taken @ kept["value"].swapaxes(3, 4)
        share -= np.einsum("lshqk,lshqk->lshq", share, kept["share"])[..., None]
        share *= kept["share"]
        share *= np.float32(shape.head_width**-0.5)
        query = share @ kept["key"]
        key = share.swapaxes(3, 4) @ kept["query"]
        if shape.qk_norm:
            query = _through_norm(query, kept["query"], kept["query_scale"])
            key = _through_norm(key, kept["key"], kept["key_scale"])
        mixed = np.stack([query, key, value]).transpose(1, 2, 4, 0, 3, 5)
        mixed = np.ascontiguousarray(mixed).reshape(self.lanes, self.rows, 3 * shape.width)
        np.matmul(kept["in"].swapaxes(1, 2), mixed, out=into[f"qkv_{layer}"])
        into_norm = mixed @ self.weights[f"qkv_{layer}"].swapaxes(1, 2)
        return _through_norm(into_norm, kept["in"], kept["in_scale"])


def _normalised(values: Singles) -> tuple[Singles, Singles]:
    """Values over the root of their mean square along the last axis, and the factor."""
    square = np.einsum("...i,...i->...", values, values)[..., None]
    square /= np.float32(values.shape[-1])
    square += EPSILON
    scale = 1.0 / np.sqrt(square)
    return values * scale, scale


def _through_norm(back: Singles, out: Singles, scale: Singles) -> Singles:
    """Gradient through the normalisation."""
    along = np.einsum("...i,...i->...", back, out)[..., None] / np.float32(out.shape[-1])
    found: Singles = scale * (back - out * along)
    return found


def _largest_norm(vectors: Singles) -> Singles:
    """The largest norm of a vector of each lane."""
    squares = np.einsum("lshqi,lshqi->lshq", vectors, vectors)
    found: Singles = np.sqrt(squares.max(axis=(1, 2, 3)))
    return found
