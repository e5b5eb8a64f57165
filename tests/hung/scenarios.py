"""Hung jobs of which the rank at fault is known: six kinds, each of a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.hung.cluster import STOP, SYNC, Job, Op, Rank, Recorder, dump_of

KINDS = (
    "missing rank", "wrong order", "different shapes", "subgroup", "ring wrapped round",
    "two candidates",
)  # fmt: skip
WORLD, TENSOR, DATA, PIPE = (
    "default_pg", "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP",
    "PIPELINE_MODEL_PARALLEL_GROUP",
)  # fmt: skip
SHAPES = ((4, 1, 1), (8, 1, 1), (2, 2, 1), (2, 4, 1), (4, 2, 2), (1, 2, 4), (2, 2, 2), (1, 4, 2),
          (2, 1, 2), (3, 2, 1))  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """Dumps of a hung job, and who is at fault."""

    kind: str
    seed: int
    faulty: frozenset[int]
    dumps: dict[int, dict[str, Any]]
    """Rank -> its dump; of some ranks it may be lost."""
    told: str


def scenario(kind: str, seed: int) -> Scenario:
    """A hung job of a kind; where a fault lets the job end, the next place is tried."""
    rng = random.Random(f"{kind} {seed}")
    while True:
        found = _tried(kind, seed, rng)
        if found is not None:
            return found


def _tried(kind: str, seed: int, rng: random.Random) -> Scenario | None:
    shape = rng.choice(SHAPES if kind != "subgroup" else [s for s in SHAPES if s[1] * s[2] > 1])
    ranks = _ranks(shape, steps=rng.randint(2, 4), rng=rng)
    lost: set[int] = set()
    faulty = {rng.randrange(len(ranks))}
    (rank,) = faulty
    if kind == "two candidates":
        other = rng.choice([r.number for r in ranks if r.number != rank])
        faulty = _two(ranks, rank, other, lost, rng)
        if not faulty:
            return None
    elif not _broken(kind, ranks[rank].program, rng):
        return None
    job = Job(ranks, streams=rng.random() < 0.3)
    job.run()
    reached = {r for r in faulty if r in lost or _at_fault(ranks[r])} if kind == "two candidates" \
        else faulty  # fmt: skip
    if not job.hangs or not reached:
        return None
    how = _recorders(kind, ranks, rng)
    dumps = {r.number: dump_of(r, how[r.number]) for r in ranks if r.number not in lost}
    return Scenario(kind, seed, frozenset(reached), dumps, f"{shape} rank {rank} {how[rank]}")


def _at_fault(rank: Rank) -> bool:
    return rank.at < len(rank.program) and rank.program[rank.at] is STOP


@dataclass(frozen=True)
class Style:
    """What the programs of all ranks of a job have in common."""

    layers: int
    hidden: int
    gathers: bool
    uneven: bool
    waits: str
    """When the processor waits for its GPU: after every operation, each step, or seldom."""


def _ranks(shape: tuple[int, int, int], *, steps: int, rng: random.Random) -> list[Rank]:
    """Ranks of a job of data, tensor and pipeline parallelism, with a program each."""
    dp, tp, pp = shape
    n = dp * tp * pp
    place = {(d, t, p): p * dp * tp + d * tp + t
             for d in range(dp) for t in range(tp) for p in range(pp)}  # fmt: skip
    style = Style(
        layers=rng.randint(1, 3), hidden=rng.choice((64, 512, 1024)), gathers=rng.random() < 0.5,
        uneven=rng.random() < 0.3, waits=rng.choice(("every", "step", "seldom")),
    )  # fmt: skip
    found = []
    for (d, t, p), number in place.items():
        groups = {WORLD: tuple(range(n))}
        if tp > 1:
            groups[TENSOR] = tuple(place[d, i, p] for i in range(tp))
        if dp > 1:
            groups[DATA] = tuple(place[i, t, p] for i in range(dp))
        if pp > 1:
            groups[PIPE] = tuple(place[d, t, i] for i in range(pp))
        program = list[Op]()
        for step in range(steps):
            ops = _step(groups, number, p, step=step, style=style)
            program += (
                [each for op in ops for each in (op, SYNC)] if style.waits == "every" else ops
            )
            if style.waits == "step" or (style.waits == "seldom" and step % 2):
                program.append(SYNC)
        program.append(SYNC)
        found.append(Rank(number, program, groups))
    return sorted(found, key=lambda rank: rank.number)


def _step(
    groups: dict[str, tuple[int, ...]], number: int, stage: int, *, step: int, style: Style
) -> list[Op]:
    """One step: forward and backward through the stage, gradients, norm."""
    ops = list[Op]()
    pipe = groups.get(PIPE, ())
    for before, after in ((stage - 1, stage + 1), (stage + 1, stage - 1)):
        if 0 <= before < len(pipe):
            ops.append(Op(PIPE, "recv", (), ((4, style.hidden),), peer=pipe[before]))
        if TENSOR in groups:
            ops += _layers(len(groups[TENSOR]), number, style)
        if 0 <= after < len(pipe):
            ops.append(Op(PIPE, "send", ((4, style.hidden),), (), peer=pipe[after]))
    for layer in range(style.layers if DATA in groups else 0):
        part = (style.hidden * style.hidden * (1 + layer),)
        full = (part[0] * len(groups[DATA]),)
        ops.append(Op(DATA, "_reduce_scatter_base", (full,), (part,), "Float"))
        ops.append(Op(DATA, "_all_gather_base", (part,), (full,)))
    ops.append(Op(WORLD, "all_reduce", ((1,),), ((1,),), "Float"))
    if step % 2:
        ops.append(Op(WORLD, "all_reduce_barrier", ((1,),), ((1,),), "Float"))
    return ops


def _layers(n_ranks: int, number: int, style: Style) -> list[Op]:
    """Tensor parallelism of each layer."""
    ops = list[Op]()
    for layer in range(style.layers):
        size = (4, style.hidden * (1 + layer))
        ops.append(Op(TENSOR, "all_reduce", (size,), (size,)))
        if style.gathers:
            ops.append(Op(TENSOR, "_all_gather_base", (size,), ((4 * n_ranks, size[1]),)))
        if style.uneven:
            mine = (number + layer + 1) * 8
            ops.append(Op(TENSOR, "all_to_all", ((mine, 4),), ((mine + 8, 4),)))
    return ops


def _broken(kind: str, program: list[Op], rng: random.Random) -> bool:
    """Breaks the program of one rank; False where the kind does not fit it."""
    places = [at for at, op in enumerate(program) if op is not SYNC and op.peer is None]
    if kind in ("missing rank", "ring wrapped round"):
        at = rng.choice(places[len(places) // 2 :] if kind == "ring wrapped round" else places)
        if rng.random() < 0.5:
            program.insert(at, STOP)
        else:
            del program[at:]  # it finished before the others
            program.append(STOP)
        return True
    if kind == "subgroup":
        own = [at for at, op in enumerate(program) if op.group not in ("", WORLD)]
        at = rng.choice(own)
        if rng.random() < 0.5 and program[at].peer is None:
            del program[at]  # it leaves one out and goes on
            return True
        program.insert(at, STOP)
        return True
    if kind == "wrong order":
        at, then = sorted(rng.sample(places, 2))
        if rng.random() < 0.7:
            after = [place for place in places if place > at][:3]
            if not after:
                return False
            then = rng.choice(after)
        if program[at] == program[then]:
            return False
        program[at], program[then] = program[then], program[at]
        return True
    at = rng.choice([at for at in places if program[at].name != "all_to_all"])
    op = program[at]
    sizes = tuple((size[0] + 1, *size[1:]) for size in op.sizes_in)
    program[at] = rng.choice((
        replace(op, sizes_in=sizes),
        replace(op, sizes_in=sizes, sizes_out=tuple((s[0] + 3, *s[1:]) for s in op.sizes_out)),
        replace(op, dtype="Double"),
    ))  # fmt: skip
    return True


def _two(ranks: list[Rank], rank: int, other: int, lost: set[int], rng: random.Random) -> set[int]:
    """Two ranks between which the dumps cannot tell, or only just."""
    how = rng.choice(("both stop", "one lost", "pair", "same place"))
    program = ranks[rank].program
    places = [at for at, op in enumerate(program) if op is not SYNC and op.peer is None]
    at = rng.choice(places)
    if how == "both stop":
        program.insert(at, STOP)
        theirs = ranks[other].program
        theirs.insert(rng.randrange(len(theirs)), STOP)
        return {rank, other}
    if how == "same place":
        program.insert(at, STOP)
        ranks[other].program.insert(at, STOP)
        return {rank, other}
    if how == "one lost":
        program.insert(at, STOP)
        lost.add(rng.choice((rank, other)))
        return {rank}
    pairs = [at for at in places if len(ranks[rank].groups[program[at].group]) == 2]
    if not pairs:
        return set()
    at = rng.choice(pairs)
    op = program[at]
    program[at] = replace(op, name="reduce" if op.name != "reduce" else "broadcast")
    program.insert(at + 1, STOP)
    return {rank}


def _recorders(kind: str, ranks: list[Rank], rng: random.Random) -> dict[int, Recorder]:
    """How each rank records: alike for most of a job, with its own numbers and clock."""
    timed, status = rng.random() < 0.6, rng.random() < 0.7
    active = rng.random() < 0.1
    ring = rng.randint(4, 12) if kind == "ring wrapped round" else 2000
    versions = rng.choice((("2.9",), ("2.4", "2.9"), ("2.1",)))
    return {
        rank.number: Recorder(
            version=rng.choice(versions),
            ring=ring,
            timed=timed,
            status=status,
            active_only=active,
            skew_ns=rng.randint(-(10**12), 10**12) if rng.random() < 0.3 else 0,
            first_id=rng.randint(0, 20),
        )
        for rank in ranks
    }
