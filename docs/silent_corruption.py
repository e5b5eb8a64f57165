"""Writes figures and tables of silent-corruption.md from a result of the lab.

faultline lab sdc --format json | python docs/silent_corruption.py -
python docs/silent_corruption.py            # again from what is kept of the last result
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.estimate import Estimate
from app.answers.training import lab
from app.show.drawings import style
from app.words import numbers

if TYPE_CHECKING:
    from app.answers.content import Chart

HERE = Path(__file__).parent
PAGE = HERE / "silent-corruption.md"
KEPT = HERE / "silent-corruption.json"
"""The result without its injections."""
FIELDS = ("sign", "exponent", "upper mantissa", "lower mantissa")
PLACES = ("weights", "activations", "gradients", "optimizer")
DIGITS = 5


def rounded(value: Any) -> Any:
    """A result with numbers as long as the page needs them."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def share(value: dict[str, Any]) -> str:
    """A share with its interval."""
    estimate = Estimate(**value)
    if estimate.value is None:
        return numbers.UNKNOWN
    return f"{numbers.percent(estimate.value)} ({numbers.percent_interval(estimate)})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Each table of the page by its name."""
    seen, kept = result["by_indicator"], result["mitigations"]

    def cells(one: dict[str, Any], key: str, name: str, names: tuple[str, ...]) -> list[str]:
        known = {each[name]: Estimate(**each["detected"]) for each in one[key]}
        return [numbers.percent(known[each].value) if each in known else "" for each in names]

    title = lab.INDICATORS
    return {
        "settings": _settings(result),
        "harm": table(
            ["flips of", "n", "did harm", "drift of parameters, median"],
            [[each["flips"], f"{each['harmful']['n']:,}", share(each["harmful"]),
              _drift(each["median_drift_ratio"])] for each in result["harm"]],
        ),
        "indicators": table(
            ["indicator", "false alarms", "of all flips", "of harmful flips", "delay (steps)"],
            [[title[one["indicator"]], share(one["false_alarm_rate"]), share(one["detected"]),
              share(one["detected_harmful"]),
              "" if one["median_delay_steps"] is None else f"{one['median_delay_steps']:g}"]
             for one in seen],
        ),
        "fields": table(
            ["indicator", *FIELDS],
            [[title[one["indicator"]], *cells(one, "by_field", "field", FIELDS)] for one in seen],
        ),
        "places": table(
            ["indicator", *PLACES],
            [[title[one["indicator"]], *cells(one, "by_place", "place", PLACES)] for one in seen],
        ),
        "mitigations": table(
            ["mitigation", "survived", "kept finite", "harmed by it", "cost in clean runs (nats)"],
            [[lab.MITIGATIONS[one["mitigation"]], share(one["survived"]),
              share(one["kept_finite"]), share(one["harmed"]), _cost(one["clean_loss_change"])]
             for one in kept],
        ),
        "survived": table(
            ["mitigation", *PLACES],
            [[lab.MITIGATIONS[one["mitigation"]], *_survived(one)] for one in kept],
        ),
    }  # fmt: skip


def _settings(result: dict[str, Any]) -> str:
    """What was run, in a sentence."""
    return (
        f"Seed {result['seed']}, {result['n_injections']:,} injections, {result['steps']:,} steps, "
        f"{result['replicas']} replicas of {result['n_parameters']:,} parameters, "
        f"{result['n_clean_runs']:,} clean runs: {result['processor_seconds']:.0f} processor "
        f"seconds. Held-out loss of clean runs {result['clean_loss_mean']:.3f}, standard deviation "
        f"{result['clean_loss_deviation']:.3f}; harmed is a run above "
        f"{result['harm_limit_loss']:.3f}: {result['n_harmful']} of the injections.\n"
    )


def _drift(value: float | None) -> str:
    """A ratio from tiny to huge."""
    return "not finite" if value is None else f"{value:.2g}"


def _cost(value: dict[str, Any]) -> str:
    """A difference of losses with its interval."""
    return f"{value['value']:+.3f} ({value['lower']:+.3f} to {value['upper']:+.3f})"


def _survived(one: dict[str, Any]) -> list[str]:
    """Survived of harmful, a cell a place."""
    known = {each["place"]: each["survived"] for each in one["by_place"]}
    return [
        f"{round(known[place]['value'] * known[place]['n'])} of {known[place]['n']}"
        if place in known
        else "none harmful"
        for place in PLACES
    ]


def page(text: str, result: dict[str, Any]) -> str:
    """The page with its tables as the result says them."""
    for name, body in tables(result).items():
        between = rf"(<!-- {name} -->\n\n).*?(<!-- end -->)"
        text = re.sub(between, lambda m, body=body: f"{m[1]}{body}\n{m[2]}", text, flags=re.DOTALL)
    return text


def charts(result: dict[str, Any]) -> dict[str, Chart]:
    """File name -> the picture."""
    seen, kept = result["by_indicator"], result["mitigations"]
    return {
        "silent-corruption-detection.svg": lab.detection_chart(
            tuple(lab.INDICATORS[one["indicator"]] for one in seen),
            tuple(each["bit"] for each in seen[0]["by_bit"]),
            tuple(tuple(Estimate(**each["detected"]) for each in one["by_bit"]) for one in seen),
        ),
        "silent-corruption-mitigations.svg": lab.mitigation_chart(
            tuple(lab.MITIGATIONS[one["mitigation"]] for one in kept),
            tuple(Estimate(**one["survived"]) for one in kept),
            tuple(Estimate(**one["kept_finite"]) for one in kept),
        ),
    }


def draw(result: dict[str, Any]) -> None:
    """Writes the pictures beside the page."""
    for name, chart in charts(result).items():
        with style.applied("DejaVu Sans", salt=chart.key):
            nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            drawn = style.drawn(chart)
            drawn.savefig(HERE / name, format="svg", facecolor="white", metadata=nothing)


if __name__ == "__main__":
    if sys.argv[1:]:
        named = sys.argv[1]
        given = json.loads(sys.stdin.read() if named == "-" else Path(named).read_text("utf-8"))
        del given["injections"]
        KEPT.write_text(json.dumps(rounded(given)) + "\n", encoding="utf-8")
    last = json.loads(KEPT.read_text("utf-8"))
    draw(last)
    PAGE.write_text(page(PAGE.read_text("utf-8"), last), encoding="utf-8")
