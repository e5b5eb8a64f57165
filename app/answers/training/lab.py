"""Which flipped bits does which indicator see, and which mitigation survives them?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.training.lab.findings import ANY, delay_of, detections, harm, share, survivals
from app.answers.content import Answer, Chart, Number, estimated
from app.answers.described import Rows, field
from app.words import numbers
from app.words.glossary import of_corruption

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.training.lab.experiment import Flip, Found
    from analytics.training.lab.findings import Detection, Group, Survival
    from app.answers.content import Block

SYNTHETIC = "synthetic: a small transformer in NumPy, trained for some hundred steps, not your run"
MOST_LISTED = 20
INDICATORS = {
    "loss": "Loss",
    "gradient_norm": "Gradient norm",
    "query_norm": "Query norm",
    "key_norm": "Key norm",
    "attention_entropy": "Attention entropy",
    "update_cosine": "Cosine of updates",
    "replica_loss": "A replica's loss against the others",
    "replica_norm": "A replica's gradient norm against the others",
    "jump_5x": "5x jump of loss or gradient norm",
    "not_finite": "NaN or infinite",
    "checksum": "Checksums of replicas",
    ANY: "Any of them",
}
MITIGATIONS = {
    "gradient_clipping": "Gradient clipping",
    "qk_normalisation": "QK normalisation",
    "lower_learning_rate": "Lower learning rate",
    "singularity_smoothing": "Singularity smoothing",
}


def _first(flip: Flip) -> str | None:
    """The indicator that sees a flip first; of several at once the first of the list."""
    seen = {name: delay for name, delay in flip.alarms.items() if delay is not None}
    return INDICATORS[min(seen, key=lambda name: seen[name])] if seen else None


BY_INDICATOR = (
    field("indicator", "Indicator", of=lambda one: INDICATORS[one.indicator], on=("table",)),
    field("indicator", on=("json", "csv")),
    field("threshold", "Alarms above", "number", unit="deviations", none="none of its own"),
    field("false_alarm_rate", "False alarms", "share", term=of_corruption.LAB_FALSE_ALARMS),
    field("detected", "All flips", "share", term=of_corruption.DETECTED),
    field("detected_harmful", "Harmful flips", "share", term=of_corruption.HARMFUL_FLIPS),
    field("n_left_out", on=("json", "csv")),
    field("median_delay_steps", "Delay", "number", unit="steps", term=of_corruption.LAB_DELAY,
          none="none seen"),
    field("by_place", on=("json",), of=lambda one: _groups("place", one.by_place)),
    field("by_field", on=("json",), of=lambda one: _groups("field", one.by_field)),
    field("by_bit", on=("json",), of=lambda one: [
        group | {"bit": int(group["bit"])} for group in _groups("bit", one.by_bit)
    ]),
)  # fmt: skip
BY_MITIGATION = (
    field("mitigation", "Mitigation", of=lambda one: MITIGATIONS[one.mitigation], on=("table",)),
    field("mitigation", on=("json", "csv")),
    field("survived", "Survived", "share", term=of_corruption.SURVIVED),
    field("kept_finite", "Kept finite", "share", term=of_corruption.KEPT_FINITE),
    field("harmed", "Harmed by it", "share", term=of_corruption.MITIGATION_HARM),
    field("clean_loss", "Clean loss", "number", unit="nats", on=("json", "csv")),
    field("clean_loss_change", "Cost in clean runs", "rate", unit="nats",
          term=of_corruption.MITIGATION_COST),
    field("by_place", on=("json",), of=lambda one: _groups("place", one.by_place, "survived")),
)  # fmt: skip
INJECTIONS = (
    field("place", "Place", of="injection.place"),
    field("tensor", "Tensor", of="injection.tensor"),
    field("bit", "Bit", "count", "injection.bit"),
    field("step", "Step", "count", "injection.step"),
    field("persistent", "Stuck", "flag", "injection.persistent"),
    field("value", "Value", of=lambda flip: f"{flip.value_before:.3g}", on=("table",)),
    field("became", "Became", of=lambda flip: f"{flip.value_after:.3g}", on=("table",)),
    field("value_before", on=("json", "csv"), of=lambda flip: _known(flip.value_before)),
    field("value_after", on=("json", "csv"), of=lambda flip: _known(flip.value_after)),
    field("final_loss", "Final loss", "number", lambda flip: _known(flip.final_loss), unit="nats",
          none="not finite"),
    field("loss_change", on=("json", "csv"), of=lambda flip: _known(flip.loss_change)),
    field("parameter_drift_ratio", on=("json", "csv"), of=lambda flip: _known(flip.drift)),
    field("harmful", on=("json", "csv")),
    field("first_indicator", "Seen first by", of=_first),
    field("delay_steps", "After (steps)", "count", of=lambda flip: delay_of(flip, ANY),
          none="never"),
    field("delays", on=("json",), of="alarms"),
    field("clean_alarms", on=("json",), of=lambda flip: sorted(flip.clean_alarms)),
    field("element", on=("json", "csv"), of="injection.element"),
    field("replica", on=("json", "csv"), of="injection.replica"),
    field("run", on=("json", "csv"), of="injection.run"),
    field("even", on=("json", "csv")),
)  # fmt: skip


def answer(
    found: Found, *, conf_level: float = CONF_LEVEL, processor_seconds: float | None = None
) -> Answer:
    """What the lab measured: by indicator and bit, by mitigation, and each injection."""
    seen, kept = detections(found, conf_level), survivals(found, conf_level)
    harmed = harm(found, conf_level)
    by_indicator, by_mitigation = Rows(BY_INDICATOR, seen), Rows(BY_MITIGATION, kept)
    injections = Rows(INJECTIONS, found.flips)
    return Answer(
        _sentence(found, seen),
        tuple(_numbers(found, seen, conf_level)),
        tuple(_blocks(found, by_indicator, by_mitigation)),
        notes=(SYNTHETIC, *_notes(found)),
        terms=(of_corruption.SILENT_CORRUPTION, of_corruption.INJECTION),
        record={
            **_settings(found),
            "harm": [
                {
                    "flips": one.name,
                    "harmful": one.harmful,
                    "median_drift_ratio": _known(one.median_drift),
                }
                for one in harmed
            ],
            "injections": injections.records(),
            "by_indicator": by_indicator.records(),
            "mitigations": by_mitigation.records(),
            "processor_seconds": processor_seconds,
        },
        sheet=injections.sheet(),
        about="Synthetic: a small transformer in NumPy",
    )


def _settings(found: Found) -> dict[str, Any]:
    """What was tried, and the clean runs that it is judged by."""
    lab = found.lab
    clean = found.clean_loss
    return {
        "synthetic": True,
        "seed": lab.seed,
        "steps": lab.steps,
        "n_parameters": lab.recipe.shape.n_parameters,
        "replicas": lab.recipe.replicas,
        "severest_bit": lab.severest,
        "n_injections": len(found.flips),
        "n_harmful": sum(flip.harmful for flip in found.flips),
        "n_clean_runs": lab.n_calibration + lab.n_verification,
        "false_alarms_wanted": lab.false_alarms,
        "harm_limit_loss": found.limit,
        "clean_loss_mean": float(clean.mean()),
        "clean_loss_deviation": float(clean.std(ddof=1)) if len(clean) > 1 else None,
    }


def detection_chart(names: Sequence[str], bits: Sequence[int], grid: Any) -> Chart:
    """Indicators by bits; estimates of the share of flips that are seen."""
    title = "Flips that each indicator sees, by bit"
    return Chart("training.lab_detection", title, title, (names, bits, grid), whole=True)


def mitigation_chart(names: Sequence[str], survived: Any, finite: Any) -> Chart:
    """Shares of the harmful flips that mitigations survive."""
    title = "Harmful flips that a mitigation survives"
    return Chart("training.lab_mitigations", title, title, (names, survived, finite), whole=True)


def _charts(seen: Sequence[Detection], kept: Sequence[Survival]) -> Iterator[Chart]:
    """Both pictures."""
    yield detection_chart(
        tuple(INDICATORS[one.indicator] for one in seen),
        tuple(int(group.name) for group in seen[0].by_bit),
        tuple(tuple(group.detected for group in one.by_bit) for one in seen),
    )
    yield mitigation_chart(
        tuple(MITIGATIONS[one.mitigation] for one in kept),
        tuple(one.survived for one in kept),
        tuple(one.kept_finite for one in kept),
    )


def _sentence(found: Found, seen: Sequence[Detection]) -> str:
    """How many flips did harm, and how many of these the loss and the best indicator see."""
    n = len(found.flips)
    harmful = sum(flip.harmful for flip in found.flips)
    begin = f"{harmful:,} of {n:,} flipped bits did harm in a small synthetic transformer"
    rates = {one.indicator: one.detected_harmful for one in seen if one.indicator != ANY}
    if not harmful:
        return f"{begin}."
    best = max(rates, key=lambda name: rates[name].value or 0.0)
    return (
        f"{begin}: the loss sees {numbers.percent(rates['loss'].value)} of these, "
        f"{_lower(INDICATORS[best])} {numbers.percent(rates[best].value)}."
    )


def _numbers(found: Found, seen: Sequence[Detection], conf_level: float) -> Iterator[Number]:
    """Harm, what is seen of it, and how often a clean run alarms."""
    even = ((flip, flip.harmful) for flip in found.flips if flip.even)
    yield estimated(of_corruption.HARMFUL_FLIPS, "share", share(even, conf_level))
    every = next(one for one in seen if one.indicator == ANY)
    yield estimated(
        of_corruption.DETECTED, "share", every.detected_harmful, more="; of harmful flips, by any"
    )
    yield estimated(of_corruption.LAB_FALSE_ALARMS, "share", every.false_alarm_rate)


def _blocks(found: Found, by_indicator: Rows, by_mitigation: Rows) -> Iterator[Block]:
    """Pictures, and the three tables."""
    detection, mitigation = _charts(by_indicator.items, by_mitigation.items)
    yield detection
    yield by_indicator.table("by_indicator", "What each indicator sees, and at which false alarms")
    yield mitigation
    yield by_mitigation.table("mitigations", "What each mitigation survives, and costs")
    harmful = [flip for flip in found.flips if flip.harmful]
    yield (
        Rows(INJECTIONS, harmful)
        .table("injections", "Injections that did harm", empty="None did.")
        .first(MOST_LISTED)
    )


def _notes(found: Found) -> Iterator[str]:
    """How to read the rates."""
    lab = found.lab
    yield (
        f"Thresholds let an indicator alarm in {numbers.percent(lab.false_alarms)} of clean runs; "
        "what they do in other clean runs is measured beside each."
    )
    yield (
        "A flip is not counted for an indicator that alarms without it too; flips of one clean run "
        "count as a cluster."
    )
    yield (
        f"Of bit {lab.severest} further flips were made: they count by bit and among the harmful "
        "flips, not among all flips."
    )


def _groups(name: str, groups: Sequence[Group], value: str = "detected") -> list[dict[str, Any]]:
    """Groups under the keys of the JSON."""
    return [{name: group.name, value: group.detected} for group in groups]


def _known(value: float) -> float | None:
    """A number; None where it is not finite."""
    return value if math.isfinite(value) else None


def _lower(text: str) -> str:
    """A title within a sentence."""
    return text[:1].lower() + text[1:] if not text[:2].isupper() else text
