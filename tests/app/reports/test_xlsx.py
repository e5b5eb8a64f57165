"""A workbook that reads back: numbers as numbers, times as times, units in headers, no formulas."""

from __future__ import annotations

import datetime
import io
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest

from analytics.estimate import Estimate
from app.reports import kinds
from app.show import xlsx
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.reports.report import Report
    from data.store import Store


def _book(content: bytes) -> Any:
    return openpyxl.load_workbook(io.BytesIO(content))


def _rows(sheet: Any) -> list[dict[str, Any]]:
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("kind", kinds.kinds())
def test_each_table_has_a_sheet_of_its_own(
    reports: dict[str, Report], written: Callable[[str, str], bytes], kind: str
) -> None:
    report = reports[kind]
    names = _book(written(kind, "xlsx")).sheetnames
    assert names[0] == "Report"
    assert [table.key.replace("_", " ") for table in report.tables] == names[
        1 : 1 + len(report.tables)
    ]


def test_the_cover_holds_numbers_definitions_filters_and_versions(
    reports: dict[str, Report], written: Callable[[str, str], bytes]
) -> None:
    report = reports["fleet"]
    cover = list(_book(written("fleet", "xlsx"))["Report"].iter_rows(values_only=True))
    by_name = {row[0]: row for row in cover}
    first = {row[0]: row for row in reversed(cover)}
    for headline in report.headlines:
        row = first[headline.term.label]
        assert by_name[headline.term.label][1] == headline.term.definition
        if isinstance(headline.exact, Estimate):
            assert row[1:5] == pytest.approx(
                (headline.exact.value, headline.exact.lower, headline.exact.upper, headline.exact.n)
            )
        elif headline.exact is not None:
            assert row[1:5] == (pytest.approx(headline.exact), None, None, None)
        for part in (headline.value, headline.interval, headline.n):
            assert part in row[6]
        assert row[5] == (headline.unit or None)
    assert by_name["content"][1] == report.content_sha256
    assert by_name["filters"][1] == "all jobs"
    assert by_name["product"][1].startswith("Faultline")
    assert by_name["configuration"][1] == dict(report.basis)["configuration"]
    assert by_name["Projection"][1].startswith("MTTF of a job of N nodes")
    assert report.answer in by_name


def test_numbers_are_numbers_with_their_unit_in_the_header(
    reports: dict[str, Report], written: Callable[[str, str], bytes]
) -> None:
    book = _book(written("fleet", "xlsx"))
    (table,) = (table for table in reports["fleet"].tables if table.key == "mttf_by_size")
    rows = _rows(book["mttf by size"])[: len(table.rows)]
    for row, (size, failures, hours, mttf) in zip(rows, table.shown, strict=True):
        assert row["Job size"] == size
        assert row["Failures"] == failures
        assert row["Running time (h)"] == pytest.approx(hours)
        assert row["MTTF (h)"] == (None if mttf.value is None else pytest.approx(mttf.value))
        assert row["MTTF, lower (h)"] == pytest.approx(mttf.lower)
        assert row["MTTF, n"] == mttf.n
    assert book["mttf by size"].auto_filter.ref
    assert book["mttf by size"].freeze_panes == "A2"


def test_times_are_times(reports: dict[str, Report], written: Callable[[str, str], bytes]) -> None:
    (table,) = (table for table in reports["fleet"].tables if table.key == "incidents")
    rows = _rows(_book(written("fleet", "xlsx"))["incidents"])
    assert isinstance(rows[0]["Began (UTC)"], datetime.datetime)
    assert rows[0]["Began (UTC)"] == table.values[0][1].tz_localize(None).round("ms")


def test_the_filter_stands_in_every_sheet(
    reports: dict[str, Report], written: Callable[[str, str], bytes]
) -> None:
    report = reports["fleet"]
    _, *sheets = _book(written("fleet", "xlsx"))
    assert sheets
    for sheet in sheets:
        last = [row[0] for row in sheet.iter_rows(values_only=True)][-1]
        assert last == f"{report.period}; {report.filters}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "about"),
    [(kind, {"incident": "latest", "node": "n2"}.get(kind, "")) for kind in kinds.kinds()],
)
def test_no_cell_is_a_formula(awkward: Store, kind: str, about: str) -> None:
    report = kinds.report(awkward, kind, Selection(), about=about)
    cells = [
        cell for sheet in _book(xlsx.render(report)) for row in sheet.iter_rows() for cell in row
    ]
    texts = [cell.value for cell in cells if isinstance(cell.value, str)]
    assert all(cell.data_type != "f" for cell in cells)
    assert not [text for text in texts if text.startswith(("=", "+", "@", "\t", "\r"))]
    if about:
        assert any(text.startswith("'=") for text in texts)


def test_names_of_sheets_are_short_and_differ() -> None:
    taken: set[str] = set()
    names = [xlsx.sheet_name("Log of job 1: a/very/long/name/of/a/file", taken) for _ in range(12)]
    assert len({name.casefold() for name in names}) == 12
    assert all(len(name) <= 31 for name in names)


@pytest.mark.parametrize("kind", kinds.kinds())
def test_the_same_report_is_the_same_file(
    reports: dict[str, Report], written: Callable[[str, str], bytes], kind: str
) -> None:
    assert xlsx.render(reports[kind]) == written(kind, "xlsx")
