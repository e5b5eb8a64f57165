"""Writes a report as JSON: values to the last digit, estimates as objects, unknown as null."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from app.answers.content import Excerpt, Table

if TYPE_CHECKING:
    from app.answers.content import Number
    from app.reports.report import Report, Section


def render(report: Report) -> str:
    """The document."""
    said = {
        "kind": report.kind,
        "title": report.title,
        "synthetic": report.synthetic,
        "period": report.period,
        "filters": report.filters,
        "answer": report.answer,
        "summary": report.summary,
        "headlines": [_headline(headline) for headline in report.headlines],
        "notes": report.notes,
        "sections": [_section(section) for section in report.sections],
        "definitions": dict(report.definitions),
        "missing": report.missing,
        "conf_level": report.conf_level,
        "basis": dict(report.basis),
        "content_sha256": report.content_sha256,
    }
    return json.dumps(said, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _headline(headline: Number) -> dict[str, Any]:
    """A number as printed and to the last digit."""
    return {
        "label": headline.term.label,
        "printed": headline.value,
        "interval": headline.interval,
        "n": headline.n,
        "unit": headline.unit,
        "exact": headline.exact,
    }


def _section(section: Section) -> dict[str, Any]:
    """Tables with one object a row; excerpts as lines."""
    tables = [block for block in section.blocks if isinstance(block, Table)]
    excerpts = [block for block in section.blocks if isinstance(block, Excerpt)]
    return {
        "title": section.title,
        "sentences": section.sentences,
        "tables": [
            {
                "key": table.key,
                "title": table.title,
                "note": table.note,
                "columns": [
                    {"key": column.key, "title": column.title, "unit": column.unit}
                    for column in table.columns
                ],
                "rows": [
                    dict(zip((column.key for column in table.columns), row, strict=True))
                    for row in table.values
                ],
            }
            for table in tables
        ],
        "excerpts": excerpts,
    }


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.isoformat() if hasattr(value, "isoformat") else value.item()
