"""What does the site's own language model say of a log of which the rules say nothing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.words import domains, numbers
from app.words.plain import in_a_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.taxonomy import Taxonomy
    from analytics.failures.third_opinion.question import Question
    from analytics.failures.third_opinion.reply import Opinion
    from data.kept_opinions import Spent

NOT_COUNTED = "not counted in any rate"


@dataclass(frozen=True)
class Asked:
    """What a language model was asked, and what came of it."""

    model: str
    question: Question
    spent: Spent
    """Of the store in all."""
    opinion: Opinion | None = None
    """None where nothing was asked, or no answer came."""
    failed: str = ""
    """Why no answer came; empty where one did, or nothing was asked."""
    sent: bool = False
    """Whether anything left the site now: not where the answer was kept."""
    tokens: int | None = None
    """That the answer cost when it was given."""

    @property
    def was_asked(self) -> bool:
        """Now or before."""
        return self.opinion is not None or bool(self.failed)


def sentence(asked: Asked, places: Sequence[str], causes: Taxonomy) -> str:
    """The opinion in one sentence; `places` names each line of the log, e.g. by its number."""
    whose = f"Third opinion (site's own model {asked.model})"
    said = asked.opinion
    if said is None:
        why = f"no answer came: {asked.failed}" if asked.failed else "not asked"
        return f"{whose}: {why}."
    if said.void:
        return f"{whose}: void, {said.void}; {NOT_COUNTED}."
    if said.cause == "unknown":
        return f"{whose}: the log does not say what failed; {NOT_COUNTED}."
    title = f"{causes.causes[said.cause].title} ({domains.title(said.domain)})"
    several = "lines" if len(said.lines) > 1 else "line"
    cited = in_a_row([places[number - 1] for number in said.lines])
    return f"{whose}: {title}, cites {several} {cited}; {NOT_COUNTED}."


def cost(asked: Asked) -> str:
    """What was sent now, and what that cost, with all that the store asked before."""
    size = f"{asked.question.size:,} characters of masked text"
    now = f"sent {size}" if asked.sent else "sent nothing: the answer was kept"
    if asked.opinion is None and not asked.sent:
        now = f"sent nothing: {size} would be"
    took = "" if asked.tokens is None else f", {asked.tokens:,} tokens"
    return f"Language model: {now}{took if asked.sent else ''}. In all: {in_all(asked.spent)}."


def in_all(spent: Spent) -> str:
    """Calls and tokens of the store."""
    calls, tokens = numbers.counted(spent.calls, "call"), numbers.counted(spent.tokens, "token")
    of = f" without {spent.uncounted:,} answers of unknown cost" if spent.uncounted else ""
    return f"{calls}, {tokens}{of}"


def record(asked: Asked, places: Sequence[Any]) -> dict[str, Any]:
    """Keys of the JSON; where nothing was sent or kept, what would be sent too."""
    said = asked.opinion
    would = {"orders": asked.question.orders, "text": asked.question.text}
    return {
        "model": asked.model,
        "cause": said and said.cause,
        "domain": said and said.domain,
        "lines": [places[number - 1] for number in said.lines] if said else [],
        "void": said.void if said and said.void else None,
        "failed": asked.failed or None,
        "counted_in_rates": False,
        "sent": asked.sent,
        "characters": asked.question.size,
        "tokens": asked.tokens,
        "calls_in_all": asked.spent.calls,
        "tokens_in_all": asked.spent.tokens,
        "would_send": None if asked.was_asked else would,
    }
