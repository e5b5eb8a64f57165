"""Contrast of what is written and drawn, and colours that everybody can tell apart.

`pytest -s tests/app/figures/test_palette.py -k table` prints the figures of METHODS.md.
"""

from __future__ import annotations

import re
import tomllib
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.figures import template
from app.figures.efficiency import buckets
from app.figures.explore import result_chart
from app.figures.failures import confusion, domains, node_history
from app.figures.training import worker_heat_map
from app.show.table import LINK_COLOUR
from tests.app.figures.sight import MACHADO, ciede2000, contrast, distance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.figures.template import Mode

ROOT = Path(__file__).parents[3]
THEME = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"]
EDITOR = (ROOT / "app/views/explore/sql_page/editor.css").read_text()
METHODS = (ROOT / "METHODS.md").read_text()
MODES: tuple[Mode, ...] = ("light", "dark")
TEXT, MARK, APART = 4.5, 3.0, 8.0
"""WCAG 2.2, 1.4.3 and 1.4.11; CIEDE2000 from which two marks are told apart at a glance.

Szafir (2018), doi:10.1109/TVCG.2017.2744359: half of all viewers tell small points apart from some 6
to 10 units of CIELAB on, bars and lines from fewer; units of CIEDE2000 are no smaller.
"""


def texts(mode: Mode) -> Iterator[tuple[str, str, str]]:
    """What is written: name, colour, ground."""
    theme, palette = THEME[mode], template.PALETTES[mode]
    grounds = {
        "page": theme["backgroundColor"],
        "field": theme["secondaryBackgroundColor"],
        "sidebar": theme["sidebar"]["backgroundColor"],
    }
    for where, ground in grounds.items():
        yield f"text, {where}", theme["textColor"], ground
        yield f"quiet text, {where}", theme["grayTextColor"], ground
        yield f"caption, {where}", template.mixed(theme["textColor"], ground, 0.8), ground
        yield f"link, {where}", theme["linkColor"], ground
        yield f"chosen, {where}", theme["primaryColor"], ground
    yield "main button", grounds["page"], theme["primaryColor"]
    yield (
        "head of a table",
        theme["dataframeHeaderTextColor"],
        theme["dataframeHeaderBackgroundColor"],
    )
    yield "link in a table", LINK_COLOUR[mode], grounds["page"]
    yield "code", theme["codeTextColor"], theme["codeBackgroundColor"]
    for name, value in re.findall(r"--(\w+): (#\w{6})", EDITOR.split("}")[MODES.index(mode)]):
        yield f"query, {name}", value, grounds["field"]
    yield "figure", palette.text, palette.background
    yield "axis of a figure", palette.muted, palette.background
    for chart in (worker_heat_map, confusion):
        for share in range(101):
            ground = chart.cell(share / 100, mode)
            yield f"cell {share}, {chart.__name__}", template.text_on(ground), ground
    ground = template.mixed(palette.critical, grounds["page"], 0.22)
    yield "line of a log that counts", theme["textColor"], ground


def marks(mode: Mode) -> Iterator[tuple[str, str]]:
    """What is drawn on the ground of a figure."""
    palette = template.PALETTES[mode]
    named = ("series", "reference", *domains.PATTERNS, *node_history.SEVERITIES)
    yield from ((name, getattr(palette, name)) for name in named)
    yield from ((f"bucket {name}", colour) for name, colour in buckets.COLOURS[mode].items())
    yield from ((f"series {at}", each) for at, each in enumerate(result_chart.COLOURS[mode], 1))


def groups(mode: Mode) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Colours that stand in one chart: name of the group, colours, and the sign of each beside it."""
    palette = template.PALETTES[mode]
    yield (
        "domains",
        {name: getattr(palette, name) for name in domains.PATTERNS},
        domains.PATTERNS,
    )
    severities = node_history.SEVERITIES
    yield "severities", {name: getattr(palette, name) for name in severities}, {}
    yield "buckets", buckets.COLOURS[mode], buckets.PATTERNS
    series = {str(at): colour for at, colour in enumerate(result_chart.COLOURS[mode])}
    for signs in (result_chart.PATTERNS, result_chart.DASHES, result_chart.SYMBOLS):
        yield "series of a query", series, {str(at): sign for at, sign in enumerate(signs)}
    yield (
        "what stands out",
        {"series": palette.series, "critical": palette.critical},
        {"series": "circle", "critical": "diamond"},
    )


@pytest.mark.parametrize("mode", MODES)
def test_what_is_written_meets_aa(mode: Mode) -> None:
    found = {name: contrast(colour, ground) for name, colour, ground in texts(mode)}
    assert {name: ratio for name, ratio in found.items() if ratio < TEXT} == {}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_drawn_stands_out_from_its_ground(mode: Mode) -> None:
    ground = template.PALETTES[mode].background
    found = {name: contrast(colour, ground) for name, colour in marks(mode)}
    assert {name: ratio for name, ratio in found.items() if ratio < MARK} == {}


@pytest.mark.parametrize("mode", MODES)
def test_colours_of_one_chart_are_told_apart_by_everybody_or_have_a_sign(mode: Mode) -> None:
    alike = [
        (group, one, other, sight)
        for group, colours, signs in groups(mode)
        for one, other in combinations(colours, 2)
        if not signs or signs[one] == signs[other]
        for sight in MACHADO
        if distance(colours[one], colours[other], sight) < APART
    ]
    assert alike == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("domain", ["hardware", "system_software", "user"])
def test_a_pale_cause_is_outlined_in_the_full_colour_of_its_domain(mode: Mode, domain: str) -> None:
    palette = template.PALETTES[mode]
    for rank in range(len(domains.SHADES)):
        fill = domains.fill(domain, mode, rank)
        assert fill["line"]["color"] == getattr(palette, domain)
        assert fill["pattern"]["shape"] == domains.PATTERNS[domain]


# Sharma, Wu and Dalal (2005), table 1: pairs 1, 6, 14, 17, 23, 31 and 34.
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.1848, -84.8006), (50, 0, -82.7485), 1.0),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_distances_are_those_of_the_paper(
    one: tuple[float, ...], other: tuple[float, ...], expected: float
) -> None:
    assert ciede2000(np.array(one, float), np.array(other, float)) == pytest.approx(
        expected, abs=1e-4
    )


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def _pairs(mode: Mode) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Pairs of each group, and those of them that no sign tells apart."""
    found: dict[str, list[tuple[str, str]]] = {}
    for group, colours, signs in groups(mode):
        for one, other in combinations(colours, 2):
            pair = colours[one], colours[other]
            found.setdefault(group, []).append(pair)
            if signs and signs[one] == signs[other]:
                found.setdefault(f"{group} of one pattern", []).append(pair)
    yield from found.items()


def table() -> str:
    """The figures as METHODS.md prints them."""
    lines = ["| contrast, the least of | needed | light | dark |", "|---|---|---|---|"]
    kinds = {
        "text": lambda name: "cell" not in name and "quer" not in name,
        "text of the query editor": lambda name: name.startswith("query"),
        "numbers in cells of heat maps": lambda name: "cell" in name,
    }
    for kind, belongs in kinds.items():
        least = [
            min(contrast(c, g) for name, c, g in texts(mode) if belongs(name)) for mode in MODES
        ]
        lines.append(f"| {kind} | {TEXT} | {least[0]:.2f} | {least[1]:.2f} |")
    least = [
        min(contrast(c, template.PALETTES[mode].background) for _, c in marks(mode))
        for mode in MODES
    ]
    lines += [f"| marks of figures | {MARK} | {least[0]:.2f} | {least[1]:.2f} |", ""]
    lines += [f"| least distance, light / dark | {' | '.join(MACHADO)} |", "|---" * 6 + "|"]
    of_mode = {mode: list(_pairs(mode)) for mode in MODES}
    for place, (name, _) in enumerate(of_mode["light"]):
        cells = [
            " / ".join(
                f"{min(distance(a, b, sight) for a, b in of_mode[mode][place][1]):.1f}"
                for mode in MODES
            )
            for sight in MACHADO
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_table_of_methods_is_that_of_the_palettes() -> None:
    print(f"\n{table()}")
    assert table() in METHODS
