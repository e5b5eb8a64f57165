"""Asks the site's own language model about a log: masked, once, taken down before it is sent."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.failures.third_opinion.question import Question, question
from analytics.failures.third_opinion.reply import opinion
from app.answers.failures.third_opinion import Asked
from app.reports import redaction
from data import language_model
from data.audit import login
from data.errors import DataError, SourceError
from data.ingest.masking import masked, masked_log
from data.kept_opinions import Opinions, Spent
from data.queries import targets as stored
from data.site import load_site
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from data.site import Site


def model_of(root: Path) -> str:
    """Name of the site's language model; empty where it has none."""
    return load_site(root).language_model.model


def spent(root: Path) -> Spent:
    """What the store asked in all."""
    return Opinions(root).spent()


def ask(root: Path, lines: Sequence[str], *, person: str | None = None, send: bool = True) -> Asked:
    """What the site's language model says of a log; an answer that is kept is not asked for again.

    Parameters
    ----------
    lines
        The log in order.
    person
        Who asks; the login of this process where that is None.
    send
        Else nothing is asked: the question is what would be sent.

    Raises
    ------
    DataError
        Where site.toml names no model or no key, there is no store whose names could be masked, or
        as many were asked today as it allows.
    """
    site = load_site(root)
    model = site.language_model
    if not model.address:
        raise DataError(
            f"{root / 'site.toml'}: names no language model, nothing was sent: state address and "
            "model in [language_model]"
        )
    asked = _question(root, site, lines)
    kept, sha256 = Opinions(root), asked.sha256(model.model)
    reply, sent = kept.of(sha256), False
    if reply is None and send and asked.text:
        detail = {"characters": asked.size, "lines": len(asked.shown), "sha256": sha256[:12]}
        key = language_model.key_of(model)
        kept.begin(model, detail, author=person or login())
        try:
            reply, sent = language_model.ask(model, key, asked.orders, asked.text), True
        except SourceError as error:
            return Asked(model.model, asked, kept.spent(), failed=str(error), sent=True)
        kept.keep(sha256, reply)
    if reply is None:
        return Asked(model.model, asked, kept.spent())
    return Asked(
        model.model,
        asked,
        kept.spent(),
        opinion(reply.text, asked, site.causes),
        sent=sent,
        tokens=reply.tokens,
    )


def _question(root: Path, site: Site, lines: Sequence[str]) -> Question:
    """The question about a log, without secrets and names that the store knows."""
    with closing(Store.open(root)) as store:
        hide = _hiding(store)
    most = site.language_model.max_characters
    return question(masked_log(lines), site.causes, most, hide)


def _hiding(store: Store) -> Callable[[str], str]:
    """Hides secrets, and names of people, jobs, nodes and clusters in any case, in a line."""
    known = redaction.hidden(store)
    people = stored.People(
        _in_any_case(known.people.users),
        _in_any_case(known.people.accounts),
        _in_any_case(known.people.jobs | stored.places(store)),
    )
    names = redaction.Pseudonyms(replace(known, people=people))
    return lambda line: names.text(masked(line))


def _in_any_case(names: Iterable[str]) -> frozenset[str]:
    """Names, and how a log may spell them."""
    return frozenset(
        spelled
        for name in names
        for spelled in (name, name.lower(), name.upper(), name.capitalize())
    )
