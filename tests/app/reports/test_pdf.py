"""A PDF with real pages: numbered, bookmarked, headers repeated, nothing cut, nothing lost."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from pypdf import PdfReader

from app.answers.content import Excerpt, LogLine, Table
from app.reports import kinds
from app.reports.report import Report, Section
from app.show import pdf
from app.show.printed import FOOT, HEIGHT
from app.words.cells import Column
from app.words.periods import Period
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from data.store import Store

KINDS = ("fleet", "incident", "node")
"""Those of several pages."""
BARE = Report(
    kind="fleet", stem="fleet", title="A title", during=Period(None, None), filters="all jobs",
    answer="An answer.", summary=(), headlines=(), notes=(), sections=(), definitions=(),
    missing=(), conf_level=None, synthetic=False, basis=(),
)  # fmt: skip


def _pages(report: Report) -> list[str]:
    return _texts(pdf.render(report))


@cache
def _texts(content: bytes) -> list[str]:
    """The text of each page."""
    return [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]


def _flat(text: str) -> str:
    """Without the line ends of the page."""
    return re.sub(r"\s+", "", text)


def _with(table: Table | Excerpt) -> Report:
    return replace(BARE, sections=(Section("A section", (table,)),))


def _table(rows: Sequence[tuple[object, ...]], *columns: Column) -> Table:
    return Table("t", "A table", columns, tuple(rows), "None.")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_its_text_holds_every_headline_and_every_cell(
    reports: dict[str, Report], written: Callable[[str, str], bytes], kind: str
) -> None:
    report = reports[kind]
    text = _flat("".join(_texts(written(kind, "pdf"))))
    for headline in report.headlines:
        assert _flat(headline.term.label) in text
        assert _flat(headline.value) in text
        assert _flat(headline.interval) in text
    for table in report.tables:
        for row in table.printed:
            assert all(_flat(cell) in text for cell in row)
    for said in (report.answer, *report.summary, *report.notes, report.content_sha256):
        assert _flat(said) in text


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_has_its_number_and_every_section_a_bookmark(
    written: Callable[[str, str], bytes], kind: str
) -> None:
    reader, texts = PdfReader(io.BytesIO(written(kind, "pdf"))), _texts(written(kind, "pdf"))
    n = len(reader.pages)
    assert len(texts) == n
    for place, text in enumerate(texts, 1):
        assert f"Page {place} of {n}" in text
    titles = [entry.title for entry in reader.outline]
    assert titles[-2:] == ["Definitions", "Made from"]
    for entry in reader.outline:
        assert entry.title in texts[reader.get_destination_page_number(entry)]


def test_the_header_of_a_long_table_stands_on_every_page_and_no_row_is_cut() -> None:
    words = " ".join(["several words that take more than one line of their cell"] * 3)
    rows = [(f"first{n}", words, f"last{n}", n) for n in range(200)]
    columns = (Column("a", "Alpha"), Column("b", "Beta"), Column("c", "Gamma"),
               Column("d", "Delta", "count"))  # fmt: skip
    pages = [page for page in _pages(_with(_table(rows, *columns))) if "first" in page]
    assert len(pages) > 3
    for page in pages:
        assert "Alpha" in page
        assert "Delta" in page
        first, last = (re.findall(rf"{word}(\d+)", page) for word in ("first", "last"))
        assert first == last
    assert [n for page in pages for n in re.findall(r"first(\d+)", page)] == [
        str(n) for n in range(200)
    ]


@pytest.mark.slow
def test_a_heading_is_never_the_last_line_of_a_page() -> None:
    for filling in range(20, 75, 3):
        tables = [
            _table([(f"x{n}",) for n in range(filling)], Column("a", "First")),
            replace(_table([("y",)] * 30, Column("b", "Second")), title="The next one"),
        ]
        report = replace(
            BARE, sections=tuple(Section(f"Part {n}", (t,)) for n, t in enumerate(tables))
        )
        (page,) = (page for page in _pages(report) if "Part 1" in page)
        assert "The next one" in page
        assert page.index("Second") > page.index("Part 1")


def _last_filled(content: bytes) -> tuple[int, float]:
    """Pages, and the share of the last one's height down to its lowest text."""
    reader = PdfReader(io.BytesIO(content))
    lowest = [FOOT + HEIGHT]

    def seen(text: str, cm: list[float], tm: list[float], *_: object) -> None:
        at = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
        if text.strip() and at > FOOT:
            lowest.append(at)

    reader.pages[-1].extract_text(visitor_text=seen)
    return len(reader.pages), (FOOT + HEIGHT - min(lowest)) / HEIGHT


def test_a_last_page_is_never_nearly_empty() -> None:
    table = _table([(f"x{n}",) for n in range(80)], Column("a", "First"))
    spread = 0
    for rows in range(26, 42, 4):
        report = _with(replace(table, rows=table.rows[:rows]))
        plain = pdf._laid_out(report, 0.0)
        spread += plain.n_pages > 1 and plain.last_filled < pdf.LEAST_FILLED
        n_pages, filled = _last_filled(pdf.render(report))
        assert n_pages == 1 or filled > pdf.LEAST_FILLED - 0.02, rows
    assert spread, "no case would have had one"


@pytest.mark.parametrize("kind", KINDS)
def test_nor_is_that_of_the_demo(written: Callable[[str, str], bytes], kind: str) -> None:
    n_pages, filled = _last_filled(written(kind, "pdf"))
    assert n_pages == 1 or filled > pdf.LEAST_FILLED - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nor_is_that_of_an_odd_store(awkward: Store, kind: str) -> None:
    about = {"incident": "latest", "node": "n2"}
    report = kinds.report(awkward, kind, Selection(), about=about.get(kind, ""))
    n_pages, filled = _last_filled(pdf.render(report))
    assert n_pages == 1 or filled > pdf.LEAST_FILLED - 0.02


AWKWARD = {
    "a word without end": "x" * 2000,
    "a word with markup": "<b>not bold</b> & </para> <img src='http://example.org/x.png'/>",
    "another script": "Ошибка памяти 内存错误 ذاكرة",
    "marks": "a\u00a0b\u200b\u2028c \U0001f600 e\u0301",
    "nothing": "",
}


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_awkward_texts_do_no_harm(text: str) -> None:
    table = _table([(text, 1), (text, None)], Column("a", "A"), Column("b", "B", "count"))
    excerpt = Excerpt("A log", (LogLine(1, text[:400], counts=True),))
    report = replace(BARE, answer=text[:300], sections=(Section("S", (table, excerpt)),))
    assert "Page 1 of" in _pages(report)[0]


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    text = "".join(_pages(_with(_table([("<b>not bold</b> &amp;",)], Column("a", "A")))))
    assert "<b>not bold</b> &amp;" in text


def test_words_of_other_scripts_can_be_read_back() -> None:
    assert "Ошибка" in "".join(_pages(_with(_table([("Ошибка памяти",)], Column("a", "A")))))


def test_many_columns_still_fit() -> None:
    columns = [Column(f"c{n}", f"Column {n}") for n in range(14)]
    pages = _pages(_with(_table([tuple("word" for _ in columns)] * 3, *columns)))
    assert all(f"{n}" in "".join(pages) for n in range(14))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_report_is_the_same_file(
    reports: dict[str, Report], written: Callable[[str, str], bytes], kind: str
) -> None:
    assert pdf.render(reports[kind]) == written(kind, "pdf")


def test_it_says_what_it_is_and_holds_no_time_of_writing(
    written: Callable[[str, str], bytes],
) -> None:
    reader = PdfReader(io.BytesIO(written("fleet", "pdf")))
    assert reader.metadata is not None
    assert reader.metadata.title == "Fleet reliability"
    assert str(reader.metadata.get("/CreationDate")).startswith("D:2000")
    assert "synthetic" in _texts(written("fleet", "pdf"))[0].lower()
