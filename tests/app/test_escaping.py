"""Text of logs and people on a page and in a ticket: nothing of it becomes a link or calls anybody."""

from __future__ import annotations

import io
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports import query_files
from app.show import markdown
from app.words import escaping
from data.sandbox import QueryResult

TEXTS = [
    "see http://evil.example/a?b=c#d, then",
    "www.evil.example/x (www.evil.example)",
    "ann@evil.example wrote; .ann+x@evil.example",
    "https://[::1]/x and http://192.0.2.4:80/y",
    "a-http://x.example 1http://y.example .http://z.example",
    "mailto:ann@evil.example xmpp:bob@evil.example/r ftp://evil.example/x",
    "-www.evil.example _www.evil.example_ *www.evil.example*",
    "`http://evil.example` <http://evil.example> [a](http://evil.example)",
    "HTTP://EVIL.EXAMPLE/A|http://b.example\\http://c.example`http://d.example",
    "ünï@evil.example ü.http://evil.example x@y.example-http://z.example",
    "\\http://evil.example \\@a@b.example @channel",
]
# What remark-gfm and cmark-gfm link, as their sources say; code is left out before it is searched.
LINKED = re.compile(
    r"(?<![a-z])(?:https?://|ftp://|mailto:|xmpp:)[^\s<]|(?<![a-z0-9])www\.[^\s<]"
    r"|[-.\w+]@[-\w]+\.[-\w]",
    re.IGNORECASE,
)
CODE = re.compile(r"\\(?P<escaped>[\W_])|`(?P<code>[^`]*)`")
"""A sign behind a backslash, or code: whichever begins first."""


def without_code(text: str) -> str:
    return CODE.sub(lambda found: " " if found["escaped"] is None else found[0], text)


def read(text: str) -> str:
    """What a reader sees: without marks of code and without backslashes before signs."""
    return CODE.sub(lambda found: found["escaped"] or found["code"], text)


@pytest.mark.parametrize("write", [escaping.escaped, markdown.escaped], ids=["page", "ticket"])
@pytest.mark.parametrize("text", TEXTS)
def test_an_address_is_read_as_it_was_written_and_is_no_link(write: object, text: str) -> None:
    assert callable(write)
    written = write(text)
    assert LINKED.search(without_code(written)) is None
    assert read(written) == text


@given(st.text("ahtps:/w.@x-_ `\\|*[]()<>\u00fc1", max_size=60))
def test_whatever_is_written_around_an_address_it_is_no_link(text: str) -> None:
    text = f"{text}http://x.example{text}www.y.example {text}@z.example"
    assert LINKED.search(without_code(escaping.escaped(text))) is None


def test_plain_words_stay_as_they_are() -> None:
    text = "Node gpu-01.rack2 at 12:30, 3.5 % of n = 7 (CUDA 12.4): up to 80 GB"
    assert escaping.escaped(text) == text
    assert markdown.escaped(text) == text


def test_a_long_line_is_written_at_once() -> None:
    line = "a1" * 50_000 + "@" * 1_000 + "http" * 10_000 + "x.-+" * 10_000
    assert read(escaping.escaped(line)) == line


def test_an_address_in_a_workbook_is_a_text() -> None:
    texts = ["http://evil.example", "mailto:ann@evil.example", "internal:Rows!A1", "=HYPERLINK(1)"]
    result = QueryResult(("note",), ("VARCHAR",), [(text,) for text in texts], False, 0.1)
    book = query_files.as_xlsx(result, query_files.Asked("SELECT 1", "no filters", {}, 1, False))
    with zipfile.ZipFile(io.BytesIO(book)) as parts:
        sheet = parts.read("xl/worksheets/sheet1.xml").decode()
        written = parts.read("xl/sharedStrings.xml").decode()
    assert "hyperlink" not in sheet
    assert "<f>" not in sheet
    assert all(text in written for text in texts)
