"""What a page says first, sent with the page itself, so that it is read before any script runs.

Streamlit's scripts take a second or two in a new browser. The sentence of a page, what it rests on
and its headline numbers are kept as they were last drawn for an address. Whoever opens the same
address while the store says the same gets them in the page's own HTML, where they stand until the
page has drawn its own.
"""

from __future__ import annotations

import html
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.ask import cached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from app.answers.content import Number

KEPT = 256
"""Addresses whose first sight is held, the latest asked for."""

Address = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Sight:
    """The head of one page."""

    sentence: str = ""
    basis: str = ""
    synthetic: bool = False
    numbers: Sequence[Number] = ()

    def written(self) -> str:
        """The head as HTML, for the style sheet of the first page."""
        badge = "<mark>synthetic data</mark> " if self.synthetic else ""
        numbers = "".join(
            f"<div><p>{html.escape(each.term.label)}</p><b>{html.escape(each.value)}</b>"
            f"<p>{html.escape(each.says or each.interval or each.basis)}</p></div>"
            for each in self.numbers
        )
        return (
            '<main id="first-sight"><p role="heading" aria-level="1">'
            f"{html.escape(self.sentence)}</p><p>{badge}{html.escape(self.basis)}</p><div>{numbers}</div></main>"
        )


_drawn: ContextVar[Sight | None] = ContextVar("drawn", default=None)
_kept: OrderedDict[Address, tuple[object, str]] = OrderedDict()


@contextmanager
def kept(page: str) -> Iterator[None]:
    """Keeps the head of the page that is drawn within, where a browser has just opened it.

    Later runs of a session answer clicks that its address need not name. So does the first run of
    a browser that had lost its server: it sends again what its reader has chosen and typed.
    """
    context = get_script_run_ctx()
    typed = context is not None and bool(context.session_state.get_widget_states())
    later = "opened" in st.session_state
    st.session_state["opened"] = True
    if typed or later:
        yield
        return
    address, store, sight = address_of(page, st.query_params.items()), cached.standing(), Sight()
    before = _drawn.set(sight)
    try:
        yield
    finally:
        _drawn.reset(before)
        if sight.sentence:
            _kept.pop(address, None)  # the latest stands last
            _kept[address] = store, sight.written()
            while len(_kept) > KEPT:
                _kept.popitem(last=False)


def sentence(text: str, basis: str, *, synthetic: bool) -> None:
    """Notes the sentence of the page that is drawn, and what it rests on."""
    if (sight := _drawn.get()) is not None:
        sight.sentence, sight.basis, sight.synthetic = text, basis, synthetic


def numbers(shown: Sequence[Number]) -> None:
    """Notes the headline numbers of the page that is drawn: the first that it has."""
    if (sight := _drawn.get()) is not None and not sight.numbers:
        sight.numbers = tuple(shown)


def held(address: Address, standing: cached.Standing | None) -> str:
    """The first sight of an address as HTML; empty where none holds for what the store says now."""
    found = _kept.get(address)
    return found[1] if found is not None and found[0] == standing else ""


def address_of(page: str, query: Iterable[tuple[str, str]]) -> Address:
    """A page and what its address asks for, in any order."""
    return page.strip("/"), tuple(sorted(query))
