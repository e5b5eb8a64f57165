"""The top of every page: the finding as a title, then chips that open what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet import coverage
from app.answers.reliability import sight
from app.ask import cached
from app.ask.cached import ask
from app.show import first_sight, links, page
from app.words import escaping, numbers
from app.words.plain import titled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope
    from app.words.terms import Term


SYNTHETIC = "synthetic data"
NO_BREAK = "\N{NO-BREAK SPACE}"
RECORDS = {
    "complete": ("check_circle", "Records complete"),
    "gaps": ("contrast", "Records with gaps"),
    "blind": ("visibility_off", "Blind: no failure could be seen"),
}
"""What is collected -> its sign and words."""
KNOWN = "How is this known?"


def show(
    sentence: str, scope: Scope, *, notes: Sequence[str] = (), terms: Sequence[Term] = ()
) -> None:
    """The finding, the period, and chips: what was recorded, and how this is known.

    Parameters
    ----------
    sentence
        The answer; its first clauses are the title, behind the chip stands all of it.
    notes
        Facts without which the numbers would be misread.
    terms
        What the numbers of the page mean.
    """
    chosen = scope.selection
    held, seen = ask(coverage.held, chosen), ask(sight.sight, chosen)
    rests_on = coverage.basis(held, chosen)
    in_utc = numbers.period(chosen.from_at, chosen.to_at, "UTC")
    local = scope.timezone != "UTC"
    with _head(sentence, scope.brief, scope, f"In UTC: {in_utc}" if local else None):
        icon, words = RECORDS[coverage.state(held, chosen, seen)]
        with st.popover(words, type="tertiary", icon=f":material/{icon}:", key="head_records"):
            st.markdown(escaping.escaped(rests_on))
            st.caption(escaping.escaped(scope.filters))
            published = numbers.moment(cached.published_at(), scope.timezone)
            st.caption(
                f"Snapshot {scope.snapshot}, published {published}; a new one is shown at once"
            )
            st.markdown(f"[Which days, which source]({links.address_of('data')})")
        _known(sentence, notes, terms)
    page.notes(cached.site_changes())


def of_one(
    sentence: str,
    basis: str,
    scope: Scope,
    *,
    notes: Sequence[str] = (),
    terms: Sequence[Term] = (),
) -> None:
    """The head of a page about one thing: the answer, what it is, and the synthetic badge."""
    said = f"{basis.removesuffix('.')}."
    with _head(sentence, said, scope):
        _known(sentence, notes, terms)
    page.notes(cached.site_changes())


def of_file(
    sentence: str, name: str, *, notes: Sequence[str] = (), terms: Sequence[Term] = ()
) -> None:
    """The head of a page about a file that its reader sent: nothing of it is in the store."""
    st.title(_on_one_line(titled(sentence)), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{escaping.escaped(name)}, read and not kept.", width="content")
        _known(sentence, notes, terms)


def _head(sentence: str, brief: str, scope: Scope, explained: str | None = None) -> DeltaGenerator:
    """The title, its numbers and their % on one line; below it the line of the chips."""
    first_sight.sentence(titled(sentence), brief, synthetic=scope.synthetic)
    st.title(_on_one_line(titled(sentence)), anchor=False)
    line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="head_chips")
    marked = f"{badge()} " if scope.synthetic else ""
    line.caption(f"{marked}{escaping.escaped(brief)}", help=explained or None, width="content")
    return line


def _known(sentence: str, notes: Sequence[str], terms: Sequence[Term]) -> None:
    """The chip behind which the whole sentence, the notes and the definitions stand."""
    whole = sentence if titled(sentence) != sentence.removesuffix(".") else ""
    if not (whole or notes or terms):
        return
    with st.popover(KNOWN, type="tertiary", icon=":material/function:", key="head_known"):
        if whole:
            st.markdown(_on_one_line(whole))
        page.notes(notes)
        for term in terms:
            st.markdown(f"**{term.label}.** {term.definition}")


def _on_one_line(sentence: str) -> str:
    """The sentence, its numbers, their % and n unbroken."""
    written = escaping.escaped(sentence).replace(" %", f"{NO_BREAK}%")
    return written.replace("n = ", f"n{NO_BREAK}={NO_BREAK}")


def badge() -> str:
    """The badge as part of a line of text."""
    return f":violet-badge[:material/science: {SYNTHETIC}]"
