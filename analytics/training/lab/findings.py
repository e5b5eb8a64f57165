"""What the lab measured, as rates with intervals: by indicator, place, bit, and mitigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.clustered_proportion import clustered_proportion
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.proportion import proportion
from analytics.training.lab.indicators import INDICATORS
from analytics.training.lab.injection import bit_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from analytics.arrays import Floats
    from analytics.training.lab.experiment import Flip, Found

ANY: Final = "any"
"""In place of an indicator: at least one of them."""


@dataclass(frozen=True)
class Group:
    """Flips that are alike, and what an indicator says of them."""

    name: str
    detected: Estimate


@dataclass(frozen=True)
class Detection:
    """What one indicator sees."""

    indicator: str
    threshold: float | None
    """Score above which it alarms; None where a rule decides."""
    false_alarm_rate: Estimate
    """Share of clean runs, others than those that set the threshold, in which it alarms."""
    detected: Estimate
    """Share of the flips that are spread evenly over places and bits, where the indicator is silent
    without the flip."""
    detected_harmful: Estimate
    """Share of all flips that did harm, where it is silent without the flip."""
    n_left_out: int
    """Flips, of all, in whose clean run it alarms after the same step."""
    median_delay_steps: float | None
    """From the flip to the alarm, of harmful flips that it sees; None where it sees none."""
    by_place: tuple[Group, ...]
    by_field: tuple[Group, ...]
    """By the part of a float32 that the bit belongs to."""
    by_bit: tuple[Group, ...]


@dataclass(frozen=True)
class Harm:
    """What flips that are alike do."""

    name: str
    harmful: Estimate
    """Share of them that are."""
    median_drift: float
    """Distance of the parameters from those of the run without the flip, at its end and over the
    way that it has come."""


@dataclass(frozen=True)
class Survival:
    """What a mitigation is worth."""

    mitigation: str
    survived: Estimate
    """Share of the flips harmful without it that do no harm with it."""
    kept_finite: Estimate
    """Share of the flips whose loss is not finite without it and is finite with it."""
    harmed: Estimate
    """Share of the flips harmless without it that do harm with it."""
    by_place: tuple[Group, ...]
    """`survived` by place."""
    clean_loss: float
    """Mean held-out loss of clean runs under it."""
    clean_loss_change: Estimate
    """Beyond that of clean runs without it, as a difference of means."""


def detections(found: Found, conf_level: float = CONF_LEVEL) -> tuple[Detection, ...]:
    """Detection and false alarms of each indicator, and of any of them.

    A flip is left out for an indicator that alarms without it too, in the same clean run: such an
    alarm says nothing of the flip. Flips of one clean run share its tokens, so the intervals are
    those of clusters (`clustered_proportion`).
    """
    return tuple(_detection(found, name, conf_level) for name in (*INDICATORS, ANY))


def _detection(found: Found, name: str, conf_level: float) -> Detection:
    """What one indicator sees."""
    judged = [flip for flip in found.flips if not alarms_without(flip, name)]
    even = [flip for flip in found.flips if flip.even]
    harmful = [flip for flip in judged if flip.harmful]
    false = found.false_alarms[name]
    delays = [delay for flip in harmful if (delay := delay_of(flip, name)) is not None]

    def rate(flips: Iterable[Flip]) -> Estimate:
        return share(((flip, delay_of(flip, name) is not None) for flip in flips), conf_level)

    def grouped(key: Callable[[Flip], str], of: Sequence[Flip]) -> tuple[Group, ...]:
        names = dict.fromkeys(key(flip) for flip in of)
        known = [flip for flip in of if not alarms_without(flip, name)]
        return tuple(Group(one, rate(f for f in known if key(f) == one)) for one in names)

    return Detection(
        name,
        found.thresholds.get(name),
        proportion(int(false.sum()), len(false), conf_level),
        rate(flip for flip in judged if flip.even),
        rate(harmful),
        len(found.flips) - len(judged),
        float(np.median(delays)) if delays else None,
        grouped(lambda flip: flip.injection.place, even),
        grouped(lambda flip: bit_field(flip.injection.bit), even),
        grouped(
            lambda flip: str(flip.injection.bit),
            sorted(found.flips, key=lambda flip: -flip.injection.bit),
        ),
    )


def share(flips: Iterable[tuple[Flip, bool]], conf_level: float = CONF_LEVEL) -> Estimate:
    """Share of the flips of which something holds; those of one clean run are a cluster."""
    pairs = list(flips)
    runs = [flip.injection.run for flip, _ in pairs]
    return clustered_proportion([holds for _, holds in pairs], runs, conf_level)


def alarms_without(flip: Flip, name: str) -> bool:
    """Whether an indicator, or any, alarms in the same clean run without the flip."""
    return bool(flip.clean_alarms) if name == ANY else name in flip.clean_alarms


def delay_of(flip: Flip, name: str) -> int | None:
    """Steps from a flip to the first alarm of an indicator, or of any; None without one."""
    if name != ANY:
        return flip.alarms[name]
    return min((delay for delay in flip.alarms.values() if delay is not None), default=None)


def harm(found: Found, conf_level: float = CONF_LEVEL) -> tuple[Harm, ...]:
    """Harm by part of a float32, of flips that are spread evenly; of the severest bit, of all, and
    of these by place, once and stuck."""
    even = [flip for flip in found.flips if flip.even]
    severe = [flip for flip in found.flips if flip.injection.bit == found.lab.severest]
    bit = f"bit {found.lab.severest}"
    groups = {
        name: [flip for flip in even if bit_field(flip.injection.bit) == name]
        for name in dict.fromkeys(bit_field(flip.injection.bit) for flip in even)
    } | {bit: severe}
    for flip in severe:
        way = "stuck" if flip.injection.persistent else "once"
        groups.setdefault(f"{bit}, {flip.injection.place}, {way}", []).append(flip)
    return tuple(
        Harm(
            name,
            share(((f, f.harmful) for f in flips), conf_level),
            float(np.median([f.drift for f in flips])),
        )
        for name, flips in sorted(groups.items(), key=lambda group: _order(group[0]))
    )


def _order(name: str) -> tuple[bool, int, str]:
    """Parts of a float32 from the sign down, then the severest bit."""
    parts = ("sign", "exponent", "upper mantissa", "lower mantissa")
    return (name not in parts, parts.index(name) if name in parts else 0, name)


def survivals(found: Found, conf_level: float = CONF_LEVEL) -> tuple[Survival, ...]:
    """What each mitigation survives, with intervals of clusters, and what it costs."""
    flips = [found.flips[at] for at in found.replayed]
    rows = []
    for replay in found.replays:
        pairs = list(zip(flips, map(bool, replay.harmed), strict=True))
        spared = [(flip, not harmed) for flip, harmed in pairs if flip.harmful]
        ends = [
            (flip, bool(np.isfinite(loss)))
            for flip, loss in zip(flips, replay.final_loss, strict=True)
            if not np.isfinite(flip.final_loss)
        ]
        spoilt = [(flip, harmed) for flip, harmed in pairs if not flip.harmful]
        places = dict.fromkeys(flip.injection.place for flip, _ in spared)
        rows.append(
            Survival(
                replay.mitigation,
                share(spared, conf_level),
                share(ends, conf_level),
                share(spoilt, conf_level),
                tuple(_survived(place, spared, conf_level) for place in places),
                float(np.mean(replay.clean_loss)),
                _difference(replay.clean_loss, found.clean_loss, conf_level),
            )
        )
    return tuple(rows)


def _survived(place: str, spared: Sequence[tuple[Flip, bool]], conf_level: float) -> Group:
    """Flips of one place that a mitigation survives."""
    own = [(flip, ok) for flip, ok in spared if flip.injection.place == place]
    return Group(place, share(own, conf_level))


def _difference(some: Floats, others: Floats, conf_level: float) -> Estimate:
    """Difference of two means, with Welch's interval."""
    variances = [float(np.var(each, ddof=1)) / len(each) for each in (some, others)]
    error = float(np.sqrt(sum(variances)))
    value = float(np.mean(some) - np.mean(others))
    n = len(some) + len(others)
    if not error:
        return Estimate(value, value, value, conf_level, n)
    parts = [v**2 / (len(each) - 1) for v, each in zip(variances, (some, others), strict=True)]
    reach = error * float(special.stdtrit(error**4 / sum(parts), (1.0 + conf_level) / 2.0))
    return Estimate(value, value - reach, value + reach, conf_level, n)
