"""Which indicator of silent corruption a logged series is, by the names that loggers write."""

from __future__ import annotations

import re
from typing import Final, Literal

Indicator = Literal[
    "checksum", "grad_norm", "loss", "query_norm", "key_norm", "attention_entropy", "update_cosine"
]
INDICATORS: Final[tuple[Indicator, ...]] = (
    "checksum", "grad_norm", "loss", "query_norm", "key_norm", "attention_entropy", "update_cosine",
)  # fmt: skip
_CHECKSUMS: Final = {
    "checksum", "hash", "digest", "crc", "crc32", "md5", "sha1", "sha256", "fingerprint",
}  # fmt: skip
_NOT_TRAINING: Final = {
    "val", "valid", "validation", "eval", "evaluation", "test", "scale", "scaler", "aux",
    "auxiliary", "balancing", "balance", "target", "threshold", "clip", "clipped", "ratio",
    "count", "num", "time",
}  # fmt: skip
"""Words of series that only sound like one: a loss scale, the loss of an evaluation."""
_ATTENTION: Final = {"attention", "attn", "softmax"}
_GRADIENT: Final = {"grad", "gradient", "grads", "gradients", "gnorm"}
_WORD: Final = re.compile(r"[a-z]+\d*")
_JOINED: Final = {
    "gradnorm": ("grad", "norm"),
    "gnorm": ("grad", "norm"),
    "qnorm": ("q", "norm"),
    "knorm": ("k", "norm"),
    "cossim": ("cos", "sim"),
}


def indicator(name: str) -> Indicator | None:
    """The indicator that a series is; None where it is none.

    Words decide, whatever stands between them: `train/grad-norm`, `grad_norm` and `gradNorm` are
    one. A norm of queries and keys together, or of parameters, is none of the indicators.

    >>> indicator("train/grad-norm"), indicator("lm loss"), indicator("layers.3.attn.entropy")
    ('grad_norm', 'loss', 'attention_entropy')
    >>> indicator("q_norm/max"), indicator("param_hash"), indicator("cosine similarity of updates")
    ('query_norm', 'checksum', 'update_cosine')
    >>> indicator("loss scale"), indicator("val_loss"), indicator("learning_rate")
    (None, None, None)
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    words = {part for word in _WORD.findall(apart) for part in _JOINED.get(word, (word,))}
    if words & _CHECKSUMS:
        return "checksum"
    if words & _NOT_TRAINING:
        return None
    return _of_words(words)


def _of_words(words: set[str]) -> Indicator | None:
    """The indicator that lower-case words name."""
    if "entropy" in words:
        return "attention_entropy" if words & _ATTENTION else None
    if words & {"cosine", "cos"} and words & {"update", "updates", "similarity", "sim", *_GRADIENT}:
        return "update_cosine"
    if "norm" in words or "norms" in words:
        return _of_norm(words)
    return "loss" if words & {"loss", "nll"} and not words & _GRADIENT else None


def _of_norm(words: set[str]) -> Indicator | None:
    """The indicator that a norm is."""
    query, key = bool(words & {"q", "query", "queries"}), bool(words & {"k", "key", "keys"})
    if query != key:
        return "query_norm" if query else "key_norm"
    return "grad_norm" if words & _GRADIENT and not query else None
