"""Delays of transfers over a made-up fabric: queues, hops and bandwidths, not the detector's model.

A transfer takes start-up time, hops and bytes over the slowest of what it passes: the sender's
port, its leaf switch, the spine, the receiver's port. Samples wait in queues and sometimes behind
bursts. What is slow loses bandwidth and gains start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.nodes.links.samples import DelaySamples

KINDS = ("link", "sender", "receiver", "group")


@dataclass(frozen=True)
class Fabric:
    hosts: int
    leaf: int  # hosts of one leaf switch
    gpus: int  # endpoints of one host
    samples: int
    sizes: tuple[int, ...]
    missing: float  # share of pairs without samples
    noise: float  # mean queueing as a share of the delay
    burst: float  # share of samples that wait behind a burst
    ports: float  # spread of healthy ports
    oversubscribed: float  # how much slower the spine is than a leaf
    groups_given: bool


def fabric(rng: np.random.Generator) -> Fabric:
    leaf = int(rng.choice([4, 8]))
    gpus = int(rng.choice([1, 1, 2, 4]))
    most = 64 if gpus == 1 else 24
    return Fabric(
        hosts=leaf * int(rng.integers(3, max(4, most // leaf + 1))),
        leaf=leaf,
        gpus=gpus,
        samples=int(rng.choice([4, 6, 10])),
        sizes=((8,), (1 << 20,), (8, 1 << 16, 1 << 24), (1 << 22, 1 << 26))[rng.integers(4)],
        missing=float(rng.choice([0.0, 0.05, 0.2])),
        noise=float(rng.uniform(0.02, 0.10)),
        burst=float(rng.choice([0.0, 0.01, 0.03])),
        ports=float(rng.uniform(0.0, 0.02)),
        oversubscribed=float(rng.choice([1.0, 1.5, 2.0])),
        groups_given=bool(rng.integers(2)),
    )


@dataclass(frozen=True)
class Case:
    samples: DelaySamples
    verdict: str
    source: str | None
    destination: str | None
    hosts: frozenset[str]


def case(kind: str, seed: int, factor: tuple[float, float] = (1.8, 5.0)) -> Case:
    """One fabric with one slow thing of a kind, or none."""
    rng = np.random.default_rng([seed, len(kind), ord(kind[0])])
    made = fabric(rng)
    slow = rng.uniform(*factor)
    n = made.hosts * made.gpus
    host = np.repeat(np.arange(made.hosts), made.gpus)
    leaf = host // made.leaf
    pairs = np.argwhere(~np.eye(n, dtype=bool))
    a, b = pairs[rng.random(len(pairs)) >= made.missing].T
    of = _slow_pairs(kind, rng, host, leaf, a, b)
    parts, names = (
        [],
        [f"n{h:03d}" + (f":{g % made.gpus}" if made.gpus > 1 else "") for g, h in enumerate(host)],
    )
    port = 1 + np.abs(rng.normal(0, made.ports, (2, n)))
    for size in made.sizes:
        inside = host[a] == host[b]
        near = leaf[a] == leaf[b]
        start = np.where(inside, 2.5, np.where(near, 5.0, 5.0 + 1.6 * made.oversubscribed))
        spine = np.where(near, 1.0, made.oversubscribed)
        rate = np.where(inside, 250e3, 45e3 / spine)  # bytes a microsecond
        start, rate = start * np.where(of.mask, slow, 1), rate / np.where(of.mask, slow, 1)
        wire = start + size / rate * np.maximum(port[0, a], port[1, b])
        for _ in range(made.samples):
            queue = wire * rng.gamma(0.7, made.noise / 0.7, len(a))
            burst = (
                np.where(rng.random(len(a)) < made.burst, rng.exponential(2.0, len(a)), 0) * wire
            )
            parts.append(
                (
                    a,
                    b,
                    np.full(len(a), float(size)),
                    wire * rng.normal(1, 0.01, len(a)) + queue + burst,
                )
            )
    source, destination, sizes, delay = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = rng.permutation(len(delay))
    hosts = [f"n{h:03d}" for h in host]
    groups = (
        {f"n{h:03d}": f"leaf{leaf[i]}" for i, h in enumerate(host)} if made.groups_given else {}
    )

    def name(at: int | None, level: str) -> str | None:
        return None if at is None else names[at] if level == "endpoint" else hosts[at]

    return Case(
        DelaySamples(
            tuple(names),
            source[order],
            destination[order],
            delay[order],
            sizes[order],
            group_of=groups,
        ),
        kind,
        name(of.source, of.level),
        name(of.destination, of.level),
        frozenset(hosts[at] for at in of.members),
    )


@dataclass(frozen=True)
class Slow:
    mask: np.ndarray
    source: int | None = None
    destination: int | None = None
    members: tuple[int, ...] = ()
    level: str = "endpoint"


def _slow_pairs(
    kind: str,
    rng: np.random.Generator,
    host: np.ndarray,
    leaf: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> Slow:
    apart = host[a] != host[b]
    if kind == "none":
        return Slow(np.zeros(len(a), dtype=bool))
    if kind == "link":
        at = rng.integers(len(a))
        return Slow((a == a[at]) & (b == b[at]), int(a[at]), int(b[at]), (int(a[at]), int(b[at])))
    if kind == "group":
        which = rng.integers(leaf.max() + 1)
        hit = (leaf[a] == which) | (leaf[b] == which)
        if rng.integers(2):  # only what leaves the switch
            hit = (leaf[a] == which) != (leaf[b] == which)
        return Slow(hit & apart, members=tuple(map(int, np.flatnonzero(leaf == which))))
    one = int(rng.integers(len(host)))
    level = "host" if rng.integers(2) and np.sum(host == host[one]) > 1 else "endpoint"
    mine = a if kind == "sender" else b
    hit = (host[mine] == host[one] if level == "host" else mine == one) & apart
    end = {"source": one} if kind == "sender" else {"destination": one}
    return Slow(hit, members=(one,), level=level, **end)
