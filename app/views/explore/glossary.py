"""What do the words of this dashboard mean?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.explore import glossary
from app.ask import cached
from app.show import links, page
from app.widgets import filter_bar, inputs, page_head
from app.words import escaping
from app.words.menu import FIRST, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.answers.explore.glossary import Entry

WIDTH = 860
"""Of the text, in pixels: longer lines are hard to follow."""


def written(entries: Iterable[Entry]) -> None:
    """Label with unit, definition, then equation, source and the pages that show it."""
    st.markdown("\n\n".join(map(_written, entries)), width=WIDTH)


def _written(entry: Entry) -> str:
    """One entry as a paragraph of markdown."""
    term = entry.term
    told = term.unit.casefold() in term.label.casefold()
    unit = "" if told else f" ({escaping.escaped(term.unit)})"
    name = links.page("glossary", {"term": entry.key}, term.label)
    behind = [escaping.code(term.equation)] if term.equation else []
    behind += [escaping.escaped(term.source)] if term.source else []
    on = ", ".join(_page(each) for each in term.pages)
    behind += [f"on {on}"] if on else []
    more = f"  \n:small[{' · '.join(behind)}]" if behind else ""
    return f"**{name}**{unit}  \n{escaping.with_code(term.definition)}{more}"


def _page(name: str) -> str:
    """A link to a page; the first page of the dashboard has no name in the address."""
    return links.page("./" if name == FIRST else name, {}, TITLES[name])


scope = filter_bar.show(uses=())
head = st.container()
word = inputs.searched(
    "Find a term", key="term", placeholder="A word, or the key of an entry", width=320
)
found = glossary.found(cached.store_root(), word)
with head:
    page_head.of_one(glossary.sentence(found), "Every number says on hover what stands here", scope)
    st.markdown("[Take the tour](#tour)")
if found.word:
    written(found.entries)
else:
    page.blocks([glossary.listed(found)], scope, titled=False)
