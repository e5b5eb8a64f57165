"""The top of every page: the answer as a sentence, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet import coverage
from app.ask import cached
from app.ask.cached import ask
from app.show import first_sight, page
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope


SYNTHETIC = "synthetic data"
NO_BREAK = "\N{NO-BREAK SPACE}"


def show(sentence: str, scope: Scope) -> None:
    """The answer, the filters, the coverage and, where it applies, the synthetic badge."""
    chosen = scope.selection
    rests_on = coverage.basis(ask(coverage.held, chosen), chosen)
    in_utc = numbers.period(chosen.from_at, chosen.to_at, "UTC")
    local = scope.timezone != "UTC"
    _head(sentence, f"{scope.filters}. {rests_on}", scope, f"In UTC: {in_utc}" if local else None)


def of_one(sentence: str, basis: str, scope: Scope) -> None:
    """The head of a page about one thing: the answer, what it is, and the synthetic badge."""
    _head(sentence, f"{basis.removesuffix('.')}.", scope)


def of_file(sentence: str, name: str) -> None:
    """The head of a page about a file that its reader sent: nothing of it is in the store."""
    st.title(_on_one_line(sentence), anchor=False)
    st.caption(f"{escaping.escaped(name)}, read and not kept.")


def _head(sentence: str, basis: str, scope: Scope, explained: str | None = None) -> None:
    """The sentence, its numbers and their % on one line; below it what it rests on."""
    first_sight.sentence(sentence, basis, synthetic=scope.synthetic)
    marked = f"{badge()} " if scope.synthetic else ""
    with st.container(gap="xsmall"):
        st.title(_on_one_line(sentence), anchor=False)
        st.caption(f"{marked}{escaping.escaped(basis)}", help=explained)
        page.notes(cached.site_changes())


def _on_one_line(sentence: str) -> str:
    """The sentence, its numbers, their % and n unbroken."""
    written = escaping.escaped(sentence).replace(" %", f"{NO_BREAK}%")
    return written.replace("n = ", f"n{NO_BREAK}={NO_BREAK}")


def badge() -> str:
    """The badge as part of a line of text."""
    return f":violet-badge[:material/science: {SYNTHETIC}]"
