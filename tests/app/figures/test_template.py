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
