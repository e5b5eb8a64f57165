"""The sample that the README links to is what the demo says, the same bytes each time."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pypdf import PdfReader

from app.actions import build_demo
from app.reports import kinds
from app.show import files
from data.store import Store
from data.synthetic import DemoSpec

if TYPE_CHECKING:
    from app.reports.report import Report

SAMPLE = Path(__file__).resolve().parents[3] / "app" / "reports" / "sample"
SMALL = DemoSpec.of(800, 16, None, 0)
FORMS = ("html", "pdf", "xlsx", "md", "json")


def _of_demo(root: Path, spec: DemoSpec) -> Report:
    build_demo(root, spec)
    with closing(Store.open(root)) as store:
        return kinds.report(store, "fleet")


@pytest.mark.slow
def test_the_same_demo_is_the_same_report_to_the_byte(tmp_path: Path) -> None:
    one, other = (_of_demo(tmp_path / name, SMALL) for name in ("one", "other"))
    assert one.content_sha256 == other.content_sha256
    for form in FORMS:
        assert files.render(one, form) == files.render(other, form)


def test_both_forms_of_the_sample_say_the_same() -> None:
    page = (SAMPLE / "fleet.html").read_text(encoding="utf-8")
    text = "".join(p.extract_text() for p in PdfReader(SAMPLE / "fleet.pdf").pages)
    assert "Synthetic" in page
    assert "Synthetic" in text
    sha256 = page.split('<td class="text">content</td><td class="text"><code>')[1][:64]
    assert sha256 in text


@pytest.mark.slow
def test_the_sample_is_up_to_date(tmp_path: Path) -> None:
    report = _of_demo(tmp_path / "store", DemoSpec.of(None, None, None, 0))
    remedy = "run `make sample`"
    assert report.content_sha256 in (SAMPLE / "fleet.html").read_text(encoding="utf-8"), remedy
    pdf = PdfReader(io.BytesIO(files.render(report, "pdf")))
    assert len(pdf.pages) == len(PdfReader(SAMPLE / "fleet.pdf").pages), remedy
