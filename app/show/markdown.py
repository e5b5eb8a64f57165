"""Writes a report as Markdown, for a ticket or a chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.answers.content import Excerpt, Table
from app.words.escaping import without_links
from app.words.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answers.content import LogLine
    from app.reports.report import Report

_MARKS = re.compile(r"([\\`*_\[\]<>|#~&$])")
_LEADING = re.compile(r"^([-+=]|\d+(?=[.)](?:\s|$)))")


class Verbatim(str):
    """Markdown that is written as it is."""

    __slots__ = ()


def render(report: Report) -> str:
    """The document; every text is escaped, whether the template says so or not."""
    environment = Environment(
        loader=PackageLoader("app.show"),
        autoescape=False,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests |= {
        "table": lambda block: isinstance(block, Table),
        "excerpt": lambda block: isinstance(block, Excerpt),
    }
    text = environment.get_template("report.md").render(report=report, fenced=fenced)
    return re.sub(r"\n{3,}", "\n\n", text)


def escaped(text: str) -> str:
    r"""Text on one line that no renderer reads as a mark, and of whose addresses none makes links.

    >>> escaped("a|b *c*\n# d"), escaped("1. first"), escaped("ask @ann_b")
    ('a\\|b \\*c\\* \\# d', '1\\. first', 'ask `@ann_b`')
    """
    line = without_links(one_line(text), lambda part: _MARKS.sub(r"\\\1", part))
    leading = _LEADING.match(line)
    if leading is None:
        return line
    mark = leading.group(1)
    if mark.isdigit():
        return f"{mark}\\{line[len(mark) :]}"
    return f"\\{line}"


def fenced(lines: Sequence[LogLine]) -> Verbatim:
    """Lines of a log between fences longer than any in them; `>` stands before those that count."""
    text = "\n".join(
        f"{'>' if line.counts else ' '}{line.line_no:>6}  {line.text}" for line in lines
    )
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max([3, *(run + 1 for run in runs)])
    return Verbatim(f"{fence}text\n{text}\n{fence}")


def _finalized(value: Any) -> str:
    """What stands in the document for a value of the template."""
    return value if isinstance(value, Verbatim) else escaped(str(value))
