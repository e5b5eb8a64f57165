"""The common look."""

from __future__ import annotations

from app.figures import template


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
