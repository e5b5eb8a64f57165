"""Every answer and report there is, asked of one store, with all that it says."""

from __future__ import annotations

import inspect
import pkgutil
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any

import app.answers
from analytics.errors import AnalysisError
from analytics.frames import RATE_GROUPS
from app.answers.content import Answer, Missing, Table
from app.answers.failures import incidents, job
from app.ask import of_store, once
from app.reports import kinds
from data.errors import DataError
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from app.answers.content import Block, Number
    from app.ask import Ask
    from data.filters import Selection

NOW = datetime(2026, 3, 20, tzinfo=UTC)
ONE = {
    "my_runs.name": 'SELECT min("user") FROM jobs HAVING count(*) > 0',
    "node.name": "SELECT max(node) FROM nodes HAVING count(*) > 0",
    "incident_id": "SELECT min(incident_id) FROM incidents HAVING count(*) > 0",
    "run_id": "SELECT min(run_id) FROM job_runs HAVING count(*) > 0",
    "cluster": "SELECT min(cluster) FROM jobs HAVING count(*) > 0",
    "one": "SELECT min(job_id) FROM jobs HAVING count(*) > 0",
}
"""Name of an argument, of its module's where another has one like it -> what a store has of it."""
GIVEN: dict[str, Sequence[Any]] = {
    "now": [NOW],
    "kind": [incidents.Kind()],
    "first": ["latest"],
    "limit": [5],
    "text": ["n6"],
    "fact": ["gpu_model"],
    "ledger_parts.by": ["partition"],
    "rate_by_group.by": RATE_GROUPS,
    "forecast.gpus": [16],
    "days": [2.0],
    "found": [],
    "part": [],
}
"""Arguments that are the same whatever the store; a trace's own answers are about its file."""


@dataclass(frozen=True)
class Said:
    """What one surface says of a store and a period."""

    surface: str
    sentence: str
    numbers: tuple[Number, ...]
    texts: tuple[str, ...]
    """Notes, what stands in place of tables, and cells."""
    record: Any
    refused: bool = False
    """It is an error, with what to do."""

    @property
    def everything(self) -> str:
        """All of it."""
        shown = (f"{each.term.label} {each.value} {each.basis}" for each in self.numbers)
        return "\n".join((self.sentence, *shown, *self.texts))


def questions() -> Iterator[tuple[str, Callable[..., Answer]]]:
    """Every public function of `app.answers` that asks a store and returns an `Answer`."""
    for found in pkgutil.walk_packages(app.answers.__path__, "app.answers."):
        module = import_module(found.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            signature = inspect.signature(function)
            asks = next(iter(signature.parameters), "") == "ask"
            own = function.__module__ == found.name and not name.startswith("_")
            if own and asks and signature.return_annotation == "Answer":
                yield f"{found.name.removeprefix('app.answers.')}.{name}", function


def walked(root: Path, selection: Selection) -> list[Said]:
    """What every answer and report says of a store and a selection."""
    with closing(Store.open(root)) as store:
        ask = once(of_store(store))
        said = [
            _said(f"{name}{_of(values.values())}", lambda: function(ask, **values))  # noqa: B023
            for name, function in questions()
            for values in _asked(store, ask, name, function, selection)
        ]
        about = {"node": _one(store, "node.name"), "incident": _one(store, "incident_id")}
        reports = [
            (kind, value) for kind in kinds.kinds() for value in (about.get(kind) or [""])
            if value or kind not in about
        ]  # fmt: skip
        return [*said, *(_report(store, kind, selection, value) for kind, value in reports)]


def _asked(
    store: Store, ask: Ask, name: str, function: Callable[..., Any], selection: Selection
) -> Iterator[dict[str, Any]]:
    """What a question is asked with, by the names of its arguments; none where a store has none."""
    module, values = name.split(".")[-2], dict[str, Any]()
    for key, parameter in list(inspect.signature(function).parameters.items())[1:]:
        own = f"{module}.{key}"
        if parameter.kind is parameter.VAR_KEYWORD or parameter.default is not parameter.empty:
            continue
        if key == "selection":
            values[key] = [selection]
        elif own in ONE or key in ONE:
            values[key] = _one(store, own if own in ONE else key)
        else:
            assert own in GIVEN or key in GIVEN, f"{name}: say what {key} is asked with"
            values[key] = GIVEN[own] if own in GIVEN else GIVEN[key]
    if "one" in values:
        values["one"] = [ask(job.job, job_id) for job_id in values["one"]]
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _one(store: Store, key: str) -> list[Any]:
    return [value for (value,) in store.rows(ONE[key])]


def _of(values: Iterable[Any]) -> str:
    """What tells apart two that are asked of one question."""
    words = [each for each in values if isinstance(each, str) and each in RATE_GROUPS]
    return f" {words[0]}" if words else ""


def _said(surface: str, answered: Callable[[], Answer]) -> Said:
    """What an answer says; a refusal is its sentence."""
    try:
        answer = answered()
    except (AnalysisError, DataError) as error:
        return Said(surface, str(error), (), (), None, refused=True)
    return Said(
        surface, answer.sentence, answer.numbers,
        (*answer.notes, *_texts(answer.blocks)), answer.record,
    )  # fmt: skip


def _report(store: Store, kind: str, selection: Selection, about: str) -> Said:
    """What a report says."""
    made = kinds.report(store, kind, selection, about=about, now=NOW)
    texts = [*made.summary, *made.notes]
    for section in made.sections:
        texts += [*section.sentences, *_texts(section.blocks)]
    return Said(f"report {kind}", made.answer, made.headlines, tuple(texts), None)


def _texts(blocks: Sequence[Block]) -> Iterator[str]:
    """What blocks say in words: of a table its cells, or what stands in their place."""
    for block in blocks:
        if isinstance(block, Missing):
            yield " ".join((block.finding, block.remedy, *block.commands))
        elif isinstance(block, Table):
            yield block.note
            yield from (block.empty,) * (not len(block))
            yield from (f"{block.title}: {' | '.join(row)}" for row in block.printed)
