"""An answer on a page: its headline numbers, notes, tables and charts, and what they open."""

from __future__ import annotations

import html
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Chart, Excerpt, Missing, Table
from app.answers.reliability.sight import CANNOT
from app.ask import FEW
from app.ask.cached import ask
from app.figures import template
from app.show import chart, command_lines, first_sight, table
from app.words import escaping, numbers, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from app.answers.content import Answer, Block, Change, Number, Part, State
    from app.show.scope import Scope


LEAST_WIDTH = 24
"""Of a column, in letters of its label: longer labels get more room, so that none is cut off."""
MOST_COMMANDS, FIRST_COMMANDS = 3, 2
"""Commands that stand whole below what is missing; of more only the first, an export and its
ingest, the others behind a button."""


def show(answer: Answer, scope: Scope, *, titled: bool = True) -> None:
    """The whole answer below its sentence: numbers, notes, then tables and charts in order."""
    if answer.numbers:
        headlines(answer.numbers, scope)
    notes(answer.notes)
    blocks(answer.blocks, scope, titled=titled)


def answered(answer: Answer, scope: Scope) -> None:
    """The answer to a question beside that of the page: its first sentence stands out."""
    if answer.sentence:
        first, rest = _first_sentence(answer.sentence)
        st.markdown(f"**{escaping.escaped(first)}** {escaping.escaped(rest)}")
    show(answer, scope, titled=False)


def headlines(shown: Sequence[Number], scope: Scope) -> None:
    """Headline numbers side by side."""
    if not shown:
        return
    first_sight.numbers(shown)
    widths = [max(len(number.term.label), LEAST_WIDTH) for number in shown]
    with_weeks = next((number for number in shown if len(number.weeks) > 1), None)
    for column, number in zip(st.columns(widths), shown, strict=True):
        with column, st.container(gap="xxsmall"):
            _headline(number, scope)
            if len(number.weeks) > 1:  # the first bars say what all of them are
                st.html(_bars(number.weeks, named=number is with_weeks))


def notes(texts: Sequence[str]) -> None:
    """Facts without which the numbers above would be misread, in small type."""
    for text in texts:
        st.caption(f":material/info: {escaping.with_code(text)}")


def blocks(
    shown: Iterable[Block], scope: Scope, *, titled: bool = True, folded: bool = False
) -> None:
    """Tables and charts in order; tables under their titles where these are wanted.

    Of what must be known of a table the first sentence stands there, the others behind its help.
    `folded` keeps the commands for what is missing behind a button.
    """
    for block in shown:
        if isinstance(block, Chart):
            chart.show(block, scope, opens=partial(opened, scope=scope))
        elif isinstance(block, Missing):
            missing(block, folded=folded)
        elif isinstance(block, Excerpt):
            _excerpt(block, scope)
        elif isinstance(block, Table):
            if titled:
                st.header(escaping.escaped(block.title), anchor=False)
            if block.note:
                said, more = _first_sentence(block.note)
                st.caption(escaping.escaped(said), help=escaping.escaped(more) or None)
            table.show(block, scope, opens=partial(opened, scope=scope))


def _first_sentence(text: str) -> tuple[str, str]:
    """The first sentence of a text, and the others."""
    first, full_stop, rest = text.partition(". ")
    return first + full_stop.rstrip(), rest


def beside(shown: Sequence[Block], widths: Sequence[int], scope: Scope) -> None:
    """Tables and charts side by side."""
    for column, block in zip(st.columns(widths, gap="large"), shown, strict=True):
        with column:
            blocks([block], scope, folded=True)


def folded(label: str, draw: Callable[[], object], *, key: str) -> None:
    """What is drawn once it is opened, which the address says.

    The library of charts is half of what a browser loads and runs for the first page.
    """
    place = st.expander(label, key=key, type="compact", on_change="rerun", bind="query-params")
    if place.open:
        with place:
            draw()


def tabs(drawn: Mapping[str, Callable[[], object]], *, key: str) -> None:
    """Tabs by their titles; only the open one is drawn.

    The address names the open one where the key ends in `_tab`. Each page has a key of its own:
    else the tab of one page would open that of another, and be lost on the way back.
    """
    bind: Any = "query-params" if key.endswith("_tab") else None
    shown = st.tabs([*drawn], key=key, on_change="rerun", bind=bind)
    for tab, draw in zip(shown, drawn.values(), strict=True):
        if tab.open:
            with tab:
                draw()


def missing(block: Missing, *, folded: bool = False) -> None:
    """What is missing, what would fill it, and which commands to run: the first, others behind."""
    st.markdown(f"**{escaping.escaped(block.finding)}** {escaping.with_code(block.remedy)}")
    n_first = 0 if folded else FIRST_COMMANDS if len(block.commands) > MOST_COMMANDS else None
    first = block.commands[:n_first]
    if first:
        command_lines.show(first)
    if others := block.commands[len(first) :]:
        with st.popover("More commands" if first else "Commands", type="tertiary"):
            command_lines.show(others)


def opened(part: Part, scope: Scope) -> None:
    """The rows of a part, in a dialog on top of its page."""
    st.dialog(escaping.escaped(part.title), width="large")(_rows)(part, scope)


def _rows(part: Part, scope: Scope) -> None:
    """The first rows, and in tabs what else shows the same; the download fetches all."""
    first = part.opened(ask, limit=FEW)
    if not first.beside:
        _first_rows(first, part, scope)
        return
    drawn: dict[str, Callable[[], object]] = {first.title: partial(_first_rows, first, part, scope)}
    for other in first.beside:
        drawn[other.title] = partial(_beside, other, scope)
    tabs(drawn, key=f"tabs_{first.key}")


def _beside(part: Part, scope: Scope) -> None:
    """The first rows of what else shows the same."""
    _first_rows(part.opened(ask, limit=FEW), part, scope)


def _first_rows(first: Table, part: Part, scope: Scope) -> None:
    """What must be known of some rows, and the rows."""
    if first.note:
        st.caption(escaping.escaped(first.note))
    table.show(first, scope, total=part.total, everything=part)


def _headline(number: Number, scope: Scope) -> None:
    """One number with its state and the line that opens its rows."""
    told = [number.term.definition]
    told += [terms.CHANGE] if number.change is not None else []
    told += [escaping.escaped(number.basis)] if number.basis else []
    told += [terms.WEEKS.format(len(number.weeks))] if number.weeks else []
    st.metric(
        number.term.label,
        number.value,
        help="\n\n".join(told),
    )
    if (state := _state(number)) is not None:
        st.markdown(state, help=_before(number))
    why = number.basis if number.state == "unknown" else number.basis.partition("; ")[0]
    says = (number.says or number.interval or why).removeprefix(f"{CANNOT}: ")  # "unknown" says it
    if number.opens is None:
        st.caption(_unbroken(says))
    elif st.button(
        _unbroken(says) or "Rows",
        key=f"rows_{number.term.label}",
        type="tertiary",
        icon=":material/table_rows:",
        help="Open the rows behind this number",
    ):
        opened(number.opens, scope)


STATES = {
    "good": ("green", "check"),
    "watch": ("orange", "visibility"),
    "bad": ("red", "priority_high"),
}
"""State -> its colour and sign."""


def _state(number: Number) -> str | None:
    """The state as a badge; None where there is none."""
    if number.state is None or number.change is None:
        return None  # a value that is unknown says so itself
    colour, icon = STATES[number.state]
    return f":{colour}-badge[:material/{icon}: {_in_words(number.change, number.state)}]"


HIGHEST_PX = 22


def _bars(weeks: Sequence[float], *, named: bool) -> str:
    """Values of weeks as bars from 0 to the largest, the last one dark.

    >>> _bars([8.0], named=False)
    '<div class="weeks" title="1 week"><i style="height:22px"></i></div>'
    """
    most = max(weeks) or 1.0
    heights = (max(1, round(HIGHEST_PX * max(value, 0.0) / most)) for value in weeks)
    bars = "".join(f'<i style="height:{height}px"></i>' for height in heights)
    length = numbers.counted(len(weeks), "week")
    says = f"<span>{length}</span>" if named else ""
    return f'<div class="weeks" title="{length}">{bars}{says}</div>'


def _in_words(change: Change, state: State) -> str:
    """How it changed."""
    if not change.certain:
        return "maybe worse" if state == "watch" else "steady"
    better = "better" if state == "good" else "worse"
    return f"{better}: {numbers.percent(change.ratio, signed=True)}"


def _before(number: Number) -> str | None:
    """What it was in the quarter before."""
    return None if number.change is None else f"{number.change.before} in the quarter before"


def _unbroken(text: str) -> str:
    """A basis as it is written, whose lines never break between a number and its sign.

    >>> _unbroken("5.80 to 7.30 (90 %), n = 100")
    '5.80 to 7.30 (90\\xa0%), n\\xa0=\\xa0100'
    """
    return escaping.escaped(text).replace(" %", "\xa0%").replace(" = ", "\xa0=\xa0")


def _excerpt(excerpt: Excerpt, scope: Scope) -> None:
    """The lines under the name of their file."""
    palette = template.PALETTES[scope.mode]
    ground = template.translucent(palette.critical, 0.22)
    muted = f'<span style="color:{palette.muted}">{{}}</span>'
    written, before = [muted.format(html.escape(excerpt.title))], None
    for line in excerpt.lines:
        if before is not None and line.line_no > before + 1:
            written.append(muted.format("   ..."))
        before = line.line_no
        style = f' style="background:{ground}"' if line.counts else ""
        number = f"{line.line_no:>6}"
        number = number if line.counts else muted.format(number)
        written.append(f"<span{style}>{number}  {html.escape(line.text)}</span>")
    st.html(
        f'<pre tabindex="0" role="region" aria-label="Lines of {html.escape(excerpt.title)}" '
        'style="margin:0;padding:0.5rem 0.75rem;overflow-x:auto;font-size:0.8125rem;'
        f'line-height:1.45;border:1px solid {palette.grid};border-radius:4px">'
        + "\n".join(written)
        + "</pre>"
    )
