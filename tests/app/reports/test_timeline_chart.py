"""The timeline of a document: one drawing, whose texts are escaped, selectable and whole."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest
from pypdf import PdfReader

from analytics.failures.incidents.incident import SOURCES, Lane, Mark, Timeline
from app.answers.content import Chart
from app.reports.report import Report, Section
from app.show import html, pdf
from app.show.drawings import style
from app.words.periods import Period

START = pd.Timestamp("2026-01-05 10:00", tz="UTC")
MINUTE = pd.Timedelta("1min")
BARE = Report(
    kind="incident", stem="i", title="A title", during=Period(None, None), filters="all jobs",
    answer="An answer.", summary=(), headlines=(), notes=(), sections=(), definitions=(),
    missing=(), conf_level=None, synthetic=False, basis=(),
)  # fmt: skip
ONE = Mark(START, None, "seed", "XID 79", "GPU has fallen off the bus", "fatal")


def _timeline(*lanes: Lane, minutes: float = 10) -> Timeline:
    return Timeline(lanes, START - MINUTE, START + minutes * MINUTE, START)


def _lane(*marks: Mark, title: str = "gpu1") -> Lane:
    return Lane("kernel", title, marks)


def _chart(lanes: Timeline) -> Chart:
    return Chart("failures.timeline", "Timeline", "Filled: failures.", (lanes,), captioned=True)


def _report(lanes: Timeline) -> Report:
    return replace(BARE, sections=(Section("What happened when", (_chart(lanes),)),))


def _paper(lanes: Timeline) -> list[str]:
    content = pdf.render(_report(lanes))
    return [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]


def _svg(lanes: Timeline) -> str:
    return style.svg(_chart(lanes))


def _texts(svg: str) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def _hovers(svg: str) -> list[str]:
    return [unescape(text) for text in re.findall(r"<title>([^<]*)</title>", svg)]


def test_names_signals_and_times_are_text_on_the_page_and_on_paper() -> None:
    lanes = _timeline(_lane(ONE))
    texts = _texts(_svg(lanes))
    assert {"kernel · gpu1", "XID 79", "began 10:00:00", "Time (UTC)", "10:05"} <= set(texts)
    (page,) = _paper(lanes)
    assert all(text in page for text in texts)


def test_what_explains_the_marks_stands_below_them() -> None:
    lanes = _timeline(_lane(ONE))
    assert '<p class="muted">Filled: failures.</p>' in html.render(_report(lanes))
    assert "Filled: failures." in _paper(lanes)[0]


def test_every_mark_says_on_hover_what_was_recorded_and_when() -> None:
    ran = Mark(START, START + MINUTE, "running", "ran", "job 7 ran", lasts=True)
    out = Mark(START, None, "consequence", "outage", "node DOWN", lasts=True)
    often = replace(ONE, role="context", n=4)
    assert sorted(_hovers(_svg(_timeline(_lane(ran, out, often, ONE))))) == [
        "5 Jan 2026 10:00:00 UTC to 5 Jan 2026 10:01:00 UTC: job 7 ran",
        "5 Jan 2026 10:00:00 UTC, not ended: node DOWN",
        "5 Jan 2026 10:00:00 UTC: GPU has fallen off the bus",
        "5 Jan 2026 10:00:00 UTC: GPU has fallen off the bus (4 alike)",
    ]


RECORDS = {
    "markup": "<b>smoke</b> &amp; <script>alert(1)</script>",
    "double quotes": 'he said "no" <i>',
    "single quotes": "he said 'no' <i>",
    "both quotes": """he said "no" and 'yes' <i>""",
    "a formula of TeX": r"$\frac{1}{2}$ and $5",
    "an id": '<g id="says: nothing">',
}


@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS)
def test_records_are_texts_and_never_markup_or_formulas(text: str) -> None:
    lanes = _timeline(_lane(replace(ONE, signal=text[:20], text=text), title=text[:25]))
    svg = _svg(lanes)
    assert _hovers(svg) == [f"5 Jan 2026 10:00:00 UTC: {text}"]
    assert f"kernel · {text[:25]}" in _texts(svg)
    assert not re.search(r"<(b|i|script)>|says:(?! nothing)| on\w+=", svg)
    assert f"kernel · {text[:25]}" in _paper(lanes)[0]


def test_control_characters_and_line_ends_are_left_out() -> None:
    mark = replace(ONE, signal="a\x00b", text="\x1b[31mred\x1b[0m\r\nnext")
    svg = _svg(_timeline(_lane(mark, title="n\x071\n")))
    assert _hovers(svg)[0].endswith("red next")
    assert {"kernel · n1", "ab"} <= set(_texts(svg))


def test_letters_of_other_scripts_stay() -> None:
    lanes = _timeline(_lane(replace(ONE, signal="内存错误"), title="узел-1"))
    assert {"kernel · узел-1", "内存错误"} <= set(_texts(_svg(lanes)))
    assert "узел-1" in _paper(lanes)[0]


def test_long_names_are_cut_with_an_ellipsis() -> None:
    texts = _texts(_svg(_timeline(_lane(replace(ONE, signal="s" * 99), title="n" * 99))))
    assert "kernel · " + "n" * 30 + "…" in texts
    assert "s" * 25 + "…" in texts


def test_as_many_lanes_as_there_can_be_stand_on_one_page_below_their_heading() -> None:
    lanes = [Lane(source, f"n{n}", (ONE,)) for source in SOURCES for n in range(8)]
    page = next(page for page in _paper(_timeline(*lanes)) if "What happened when" in page)
    assert all(f"{lane.source} · {lane.title}" in page for lane in lanes)


def test_two_hundred_moments_are_all_there() -> None:
    marks = [replace(ONE, start_at=START + n * MINUTE) for n in range(200)]
    assert len(_hovers(_svg(_timeline(_lane(*marks), minutes=210)))) == 200


SPANS = {"minutes": (5, "10:02:00"), "hours": (300, "12:00"), "days": (20_000, "11 Jan"),
         "years": (1_000_000, "Jan 2027")}  # fmt: skip


@pytest.mark.parametrize(("minutes", "tick"), SPANS.values(), ids=SPANS)
def test_the_axis_tells_time_as_finely_as_it_is_long(minutes: int, tick: str) -> None:
    assert tick in _texts(_svg(_timeline(_lane(ONE), minutes=minutes)))


def test_what_lies_outside_the_axis_is_drawn_at_its_ends() -> None:
    long_ago = START - pd.Timedelta("99D")
    marks = (replace(ONE, start_at=long_ago), Mark(long_ago, None, "context", "o", "o", lasts=True))
    inside = (
        replace(ONE, start_at=START - MINUTE),
        Mark(START - MINUTE, None, "context", "o", "o", lasts=True),
    )
    drawn = [re.sub(r"<title>.*?</title>", "", _svg(_timeline(_lane(*m)))) for m in (marks, inside)]
    assert drawn[0] == drawn[1]


def test_fatal_seeds_consequences_and_context_do_not_look_alike() -> None:
    marks = (ONE, replace(ONE, severity="critical"), replace(ONE, role="consequence"),
             replace(ONE, role="context"))  # fmt: skip
    looks = set()
    for mark in marks:
        (group,) = re.findall(r"<g><title>.*?</g>\s*</g>", _svg(_timeline(_lane(mark))), re.DOTALL)
        fill = re.search(r"fill: (var\(--\w+\))", group)
        looks.add(fill[1] if fill else "none")
    assert looks == {"var(--fatal)", "var(--critical)", "var(--muted)", "var(--page)"}
