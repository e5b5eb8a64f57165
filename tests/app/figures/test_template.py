"""The common look: contrast, and colours that everybody can tell apart."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest

from app.figures import template

DOMAINS = ("hardware", "system_software", "user")
SEVERITIES = ("info", "warning", "critical", "fatal")

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2."""
    dark, light = sorted(float(_linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_meets_aa_and_marks_meet_the_contrast_of_graphics(mode: template.Mode) -> None:
    palette = template.PALETTES[mode]
    assert _contrast(palette.text, palette.background) >= 4.5
    assert _contrast(palette.muted, palette.background) >= 4.5
    for field in fields(palette):
        if field.name not in ("background", "text", "muted", "grid"):
            assert _contrast(getattr(palette, field.name), palette.background) >= 3.0, field.name


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("sight", list(SIGHT))
@pytest.mark.parametrize("group", [DOMAINS, SEVERITIES], ids=["domains", "severities"])
def test_colours_of_a_group_differ_for_everybody(
    mode: template.Mode, sight: str, group: tuple[str, ...]
) -> None:
    palette = template.PALETTES[mode]
    for one, other in combinations(group, 2):
        seen = [_lab(SIGHT[sight] @ _linear(getattr(palette, name))) for name in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) >= 12, (one, other)


def test_light_and_dark_say_the_same_with_the_same_words() -> None:
    figures = [
        template.figure(title="How often?", note="demo", mode=mode, height=300).to_dict()
        for mode in ("light", "dark")
    ]
    assert figures[0]["layout"]["title"]["text"] == figures[1]["layout"]["title"]["text"]
    assert (
        figures[0]["layout"]["template"]["layout"]["paper_bgcolor"]
        != figures[1]["layout"]["template"]["layout"]["paper_bgcolor"]
    )


def test_a_click_on_a_heat_map_tells_its_cell_as_long_as_they_are_few() -> None:
    cells = [(x, y, f"c/n{x}", f"cell {x}, {y}") for x in range(3) for y in range(2)]
    chart = template.figure(title="t", note="", mode="light", height=300)
    chart.add_heatmap(z=[[1, 2, 3], [4, 5, 6]], hovertemplate="%{z}")
    template.pickable(chart, cells)
    heat, bars = chart.data
    assert (heat.hoverinfo, heat.hovertemplate) == ("skip", None)
    assert [tuple(pair) for pair in bars.customdata][1] == ("c/n0", "cell 0, 1")
    assert list(zip(bars.x, bars.base, strict=True))[1] == (0, 0.5)
    many = template.figure(title="t", note="", mode="light", height=300)
    template.pickable(many, cells * template.MOST_PICKED)
    assert not many.data
