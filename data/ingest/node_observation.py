"""What an export shows of nodes at one time, whichever tool wrote it: rows of `node_inventory`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import Batch, RecordError
from data.ingest.rows import Gathered, LocalClock, typed_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from data.ingest.reader import Options, Source

_NOTHING = frozenset({"", "(null)", "n/a", "none", "unknown", "null", "n/s", "invalid"})
_MARKS = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN",
    "%": "POWERING_DOWN", "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}  # fmt: skip
"""What a mark behind a state means (sinfo(1), NODE STATE CODES)."""
_SHORT = {
    "ALLOC": "ALLOCATED", "MIX": "MIXED", "COMP": "COMPLETING", "DRNG": "DRAINING",
    "RESV": "RESERVED", "PLND": "PLANNED", "FUTR": "FUTURE", "UNK": "UNKNOWN",
    "FAILG": "FAILING", "POW_UP": "POWERING_UP", "POW_DN": "POWERED_DOWN", "NPC": "PERFCTRS",
}  # fmt: skip
"""Compact states of sinfo -> long ones."""
_BRACKETS = re.compile(r"\([^)]*\)?")
_COUNT = re.compile(r"(\d+)([kKmM]?)")
_NO_CONSUME = "no_consume"

WITHOUT_STATE: dict[str, dict[tuple[str, ...], str]] = {
    "node_inventory": {
        ("state",): "which nodes were out of service stays unknown, where no node events say it"
    }
}
"""What inventories say whose rows name no state."""


class Gpus(NamedTuple):
    """GPUs that the scheduler hands out on a node."""

    n: int | None
    """None where nothing says it."""
    model: str | None = None


class Observation(NamedTuple):
    """What was seen of a node; the columns of `node_inventory` that readers fill."""

    cluster: str
    node: str
    observed_at: datetime
    gpus: int | None = None
    gpu_model: str | None = None
    state: str | None = None
    reason: str | None = None
    reason_user: str | None = None
    reason_at: datetime | None = None
    partitions: str | None = None
    features: str | None = None
    rack: str | None = None
    topology: str | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    os: str | None = None
    driver: str | None = None
    boot_at: datetime | None = None


@dataclass
class Observations:
    """What has been read of one export so far."""

    source: Source
    options: Options
    name: str
    """Of the reader."""
    make: Callable[[Any, Observations], Iterable[Observation] | str]
    """Of a record its nodes, or a reason to skip it; RecordError where it cannot be read."""
    default_zone: str | None = None
    """Of local times, where the file says it."""
    stated_at: datetime | None = None
    """When the export itself says that it was made."""

    def __post_init__(self) -> None:
        self.clock = LocalClock(self.options, self.default_zone)
        self._dated = False
        self.gathered = Gathered(self.options, self.clock, lambda record, _: self._made(record))
        self.told = self.gathered.told

    @property
    def observed_at(self) -> datetime:
        """When a record was so that says nothing of it: as stated, else as the file was written."""
        self._dated = True
        at = self.options.at or self.stated_at or self.source.modified_at
        return at.replace(microsecond=0)

    def cluster(self, stated: str | None) -> str:
        """The cluster of a record that may name one."""
        return self.options.cluster_of(known(stated))

    def time(self, text: str | None, cluster: str) -> datetime | None:
        """An instant of a local time; None where the text is none."""
        try:
            return self.clock.utc(datetime.fromisoformat(text or ""), cluster)
        except (ValueError, OverflowError):
            return None

    def _made(self, record: Any) -> Iterable[Observation] | str:
        made = self.make(record, self)
        if not isinstance(made, str):
            made = list(made)
            for row in made:
                self.gathered.saw(row.cluster, row.observed_at)
        return made

    def batch(self) -> Batch:
        """All of the export: one row a node and time, whatever partitions repeat it."""
        rows: dict[tuple[str, str, datetime], Observation] = {}
        for row in self.gathered.rows:
            key = row[:3]
            rows[key] = _joined(rows[key], row) if key in rows else row
        frame = typed_frame(
            "node_inventory", list(rows.values()), Observation._fields, source=self.name
        )
        batch = self.gathered.batch("node_inventory", frame)
        if self._dated and self.options.at is None and self.stated_at is None:
            batch.notices.append(
                "the export does not say when it was made: taken as observed at "
                f"{self.observed_at:%Y-%m-%d %H:%M:%S} UTC, when the file was last changed "
                "(pass --at TIME)"
            )
        if len(frame) and not frame["gpus"].notna().any():
            batch.notices.append(
                "no record says how many GPUs a node has: export them too (sinfo: %G)"
            )
        return batch


def _joined(first: Observation, again: Observation) -> Observation:
    """One row of two records of a node: the first one's values, the partitions of both."""
    values = {
        name: value if value is not None else getattr(again, name)
        for name, value in first._asdict().items()
    }
    names = [name for one in (first, again) for name in (one.partitions or "").split(",") if name]
    return Observation(**values | {"partitions": ",".join(dict.fromkeys(names)) or None})


def known(text: object) -> str | None:
    """A text; None where it says that nothing is known.

    Examples
    --------
    >>> known(" a100 "), known("(null)"), known("N/A")
    ('a100', None, None)
    """
    if not isinstance(text, str) or text.strip().lower() in _NOTHING:
        return None
    return text.strip()


def whole(value: object) -> int | None:
    """A number; None where it is none, or Slurm's sign for unknown.

    Examples
    --------
    >>> whole("80"), whole("500000+"), whole({"set": True, "infinite": False, "number": 7})
    (80, 500000, 7)
    >>> whole({"set": False, "infinite": False, "number": 0}) is whole("N/A") is whole(-2)
    True
    """
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) is True else None
    if isinstance(value, str) and value.strip().rstrip("+").isdecimal():
        value = int(value.strip().rstrip("+")[:18])
    return value if type(value) is int and 0 <= value < 2**31 - 1 else None


def gpus_of_gres(gres: str) -> Gpus:
    """GPUs in a list of generic resources; shards and MPS shares of a GPU are none.

    Raises
    ------
    RecordError
        Where GPUs stand there without a count: a column that was cut off.

    Examples
    --------
    >>> gpus_of_gres("gpu:a100:4(S:0),gpu:a100:4(S:1),shard:80,mps:400")
    Gpus(n=8, model='a100')
    >>> gpus_of_gres("gpu:8(S:0,1)"), gpus_of_gres("(null)"), gpus_of_gres("gpu:a100_1g.5gb:14")
    (Gpus(n=8, model=None), Gpus(n=0, model=None), Gpus(n=14, model='a100_1g.5gb'))
    """
    return _counted(part.split(":") for part in _BRACKETS.sub("", known(gres) or "").split(","))


def gpus_of_tres(tres: str) -> Gpus | None:
    """GPUs in a list of trackable resources; None where it counts none.

    Examples
    --------
    >>> gpus_of_tres("cpu=80,mem=1M,gres/gpu=8,gres/gpu:a100=8,gres/gpumem=0")
    Gpus(n=8, model='a100')
    >>> gpus_of_tres("cpu=80,mem=386619M,billing=136,gres/shard=4") is None
    True
    """
    counts = dict(part.rpartition("=")[::2] for part in tres.split(","))
    typed = [
        ["gpu", name.removeprefix("gres/gpu:"), count]
        for name, count in counts.items()
        if name.startswith("gres/gpu:")
    ]
    if "gres/gpu" not in counts:
        return _counted(typed) if typed else None
    total = _counted([["gpu", counts["gres/gpu"]]])
    return Gpus(total.n, _counted(typed).model)


def _counted(parts: Iterable[list[str]]) -> Gpus:
    """The sum of entries `gpu:type:count`, and their types."""
    total, models = 0, []
    for kind, *words in parts:
        if kind.strip().lower() != "gpu":
            continue
        words = [word.strip() for word in words if word.strip() != _NO_CONSUME]
        number = _COUNT.fullmatch(words[-1]) if words else None
        if number is None:
            raise RecordError("GPUs without a count: a column too narrow")
        total += int(number[1][:9]) * {"": 1, "k": 1024, "m": 1024**2}[number[2].lower()]
        models += words[:-1]
    return Gpus(total, "+".join(dict.fromkeys(models)) or None)


def gpus_of(gres: str | None, tres: str | None) -> Gpus:
    """GPUs of a node by its resources as configured and as tracked, None where it has no field.

    What the scheduler tracks counts, for jobs are counted so; else what is configured.

    Examples
    --------
    >>> gpus_of("(null)", "cpu=80,gres/gpu=8"), gpus_of("gpu:a100:8", "cpu=80"), gpus_of(None, None)
    (Gpus(n=8, model=None), Gpus(n=8, model='a100'), Gpus(n=None, model=None))
    """
    configured = None if gres is None else gpus_of_gres(gres)
    tracked = gpus_of_tres(tres) if tres else None
    if tracked is None:
        return configured or (Gpus(None) if tres is None else Gpus(0))
    return Gpus(tracked.n, tracked.model or (configured.model if configured else None))


def state_words(states: Iterable[str]) -> str | None:
    """State and flags of a node in Slurm's long words, each once, in the order written.

    Examples
    --------
    >>> state_words(["idle~"]), state_words(["DOWN*+DRAIN"]), state_words(["drng$"])
    ('IDLE+POWERED_DOWN', 'DOWN+DRAIN+NOT_RESPONDING', 'DRAINING+MAINT')
    >>> state_words(["down", "NOT_RESPONDING"]), state_words(["alloc+"])
    ('DOWN+NOT_RESPONDING', 'ALLOCATED')
    """
    words, marks = [], []
    for part in "+".join(states).upper().split("+"):
        text = part.strip()
        word = text.rstrip("".join(_MARKS))
        marks += [_MARKS[mark] for mark in text[len(word) :]]
        words.append(_SHORT.get(word, word))
    return "+".join(dict.fromkeys(word for word in (*words, *marks) if word)) or None
