"""One quantity has one value and one name: on every page, command and report of three stores."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
from collections import defaultdict
from contextlib import closing
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import app.answers
import app.cli
from analytics.errors import AnalysisError
from analytics.estimate import Estimate
from app.answers.content import Answer
from app.ask import of_store, once
from app.reports import kinds
from app.words.plain import MOST_TITLE_WORDS, titled
from data.errors import DataError
from data.filters import Selection
from data.queries import fleet
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FROM, TO = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
LAST = timedelta(days=28)
"""The period that pages open with."""
NAMED = re.compile("fail|lost|unexplained|unknown|hardware|held|ledger")
"""Keys of what the test is about: failures, whose fault they were, and what they cost."""
KEYS = {
    "Infrastructure failures": "failures",
    "definition=infrastructure failures": "failures",
    "Failures per 1,000 node-days": "rate_per_1000_node_days",
    "Incidents per 1,000 node-days": "incident_rate_per_1000_node_days",
    "Incidents that hit jobs per 1,000 node-days": "incidents_with_jobs_per_1000_node_days",
    "Cause unknown": "unknown_ratio",
    "Lost: failures, GPU-h": "lost_to_failures_gpu_hours",
    "Unexplained, GPU-h": "lost_if_unexplained_count_gpu_hours",
    "Held by failed jobs, GPU-h": "held_by_failed_jobs_gpu_hours",
}
"""What JSON calls the quantity of a label."""
SAID = {
    "Failures per 1,000 node-days": re.compile(r"([\d.,]+) failures per 1,000 node-days"),
    "Lost: failures, GPU-h": re.compile(
        r"((?:\S+ to )?[\d.,]+) were lost to f|failures lost ((?:\S+ to )?[\d.,]+) GPU-h"
    ),
    "Slowdown": re.compile(r"([\d.,]+) times its ideal"),
}
"""How a title tells a headline number: the first such number of its sentence."""
IN_PART = {"mean_repair_hours": "`mttf` knows it of failure logs alone"}
"""Keys that some places cannot know; those that do agree."""
ROWS = ("cause", "domain", "bucket", "definition", "state")
"""Columns that say what a row of a record is about."""
ESTIMATE = ("value", "lower", "upper", "n")
ATTEMPTS = (
    ("COMPLETED", 8, "n1", 40), ("FAILED", 8, "n1", 11), ("FAILED", 16, "n[2-3]", 5),
    ("NODE_FAIL", 8, "n2", 2), ("NODE_FAIL", 0, "n3", 2), ("REQUEUED", 8, "n3", 3),
    ("CANCELLED by 7", 8, "n1", 2), ("TIMEOUT", 8, "n2", 1), ("OUT_OF_MEMORY", 8, "n2", 1),
    ("RUNNING", 64, "n[4-11]", 1),
)  # fmt: skip
"""State, GPUs, nodes, and how many of them, one a day."""
HEAD = "JobID|Cluster|Partition|Account|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
MAPPING = 'time_format = ["iso"]\n[columns]\n' + "".join(
    f'{name} = "{name}"\n' for name in ("node", "start", "end", "cause")
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Accounting alone; with kernel lines of a part of the time; a failure log alone."""
    folder = tmp_path_factory.mktemp("counts")
    days = (FROM + timedelta(days=day) for day in count(1))
    jobs = [
        f"{job}|c|p|a|u|{state}|{at:%FT%T}|{at:%FT%T}|{end}|1|{gpus}|{nodes}\n"
        for job, (at, (state, n_gpus, nodes)) in enumerate(
            zip(days, (row[:3] for row in ATTEMPTS for _ in range(row[3])), strict=False)
        )
        for gpus in [f"gres/gpu={n_gpus}" if n_gpus else ""]
        for end in ["Unknown" if state == "RUNNING" else f"{at + timedelta(hours=5):%FT%T}"]
    ]
    (folder / "sacct.txt").write_text(HEAD + "".join(jobs))
    kernel = [
        f"{FROM + timedelta(days=day, hours=5):%FT%T}+00:00 n1 kernel: NVRM: Xid "
        "(PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.\n"
        for day in range(41, 47)
    ]
    (folder / "kernel.log").write_text("".join(kernel))
    causes = ["Hardware"] * 12 + ["network"] * 8 + ["gremlin"] * 10
    log = [f"m{day % 3},{FROM + timedelta(days=day):%FT%T},,{c}\n" for day, c in enumerate(causes)]
    (folder / "log.csv").write_text("node,start,end,cause\n" + "".join(log))
    (folder / "own.toml").write_text(MAPPING)
    read = {
        "accounting alone": [("sacct", "sacct.txt")],
        "sight of a part": [("sacct", "sacct.txt"), ("kernel-log", "kernel.log")],
        "failure log alone": [("failure-log", "log.csv", "--mapping", str(folder / "own.toml"))],
    }
    for name, turns in read.items():
        for source, file, *more in turns:
            asked = ["ingest", source, str(folder / file), "--cluster", "c", *more]
            assert app.cli.main([*asked, "--store", str(folder / name)]) == 0
        assert app.cli.main(["ledger", "--store", str(folder / name)]) == 0
    return {name: folder / name for name in read}


Values = dict[str, dict[str, Any]]
"""Label or key -> where it stands -> its value."""


def periods(store: Store) -> dict[str, Selection]:
    """All years, and the last weeks that have records."""
    end = fleet.extent(store)[1]
    return {
        "all": Selection(from_at=FROM, to_at=TO),
        "last weeks": Selection(from_at=end - LAST, to_at=end),
    }


def asked(selection: Selection) -> dict[str, str]:
    """The options of commands that choose the same."""
    assert selection.from_at is not None
    assert selection.to_at is not None
    from_at, to_at = (f"{at:%FT%T}Z" for at in (selection.from_at, selection.to_at))
    return {"--from": from_at, "--to": to_at, "--min-gpus": "0", "--format": "json"}


def answers(store: Store, selection: Selection) -> Iterator[tuple[str, Answer]]:
    """Every answer that needs no more than a selection, found in its module."""
    ask = once(of_store(store))
    for found in pkgutil.walk_packages(app.answers.__path__, "app.answers."):
        module = import_module(found.name)
        question = getattr(module, "answer", None)
        if question is None or list(inspect.signature(question).parameters)[:2] != [
            "ask",
            "selection",
        ]:
            continue
        further = list(inspect.signature(question).parameters.values())[2:]
        required = [
            each for each in further if each.default is each.empty and each.kind != each.VAR_KEYWORD
        ]
        chosen = [getattr(module, str(each.annotation), None) for each in required]
        if not all(isinstance(each, type) and _needs_nothing(each) for each in chosen):
            continue
        try:
            said = question(ask, selection, *(each() for each in chosen))
        except (DataError, AnalysisError):
            continue  # it says itself what it needs
        if isinstance(said, Answer):
            yield f"page {found.name.removeprefix('app.answers.')}", said


def _needs_nothing(kind: type) -> bool:
    """Whether a choice can be made without choosing."""
    return is_dataclass(kind) and all(
        each.default is not MISSING or each.default_factory is not MISSING for each in fields(kind)
    )


def commands(
    root: Path, selection: Selection, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[str, Any]]:
    """What every command that takes the filters of a store prints as JSON, its summary too."""
    for name, text in app.cli.commands().items():
        known = app.cli.parser_of(name, text)._option_string_actions
        if not {"--store", "--from", "--format"} <= set(known) or "--out" in known:
            continue
        options = [part for pair in asked(selection).items() if pair[0] in known for part in pair]
        for more in ([], ["--summary"]):
            if not set(more) <= set(known):
                continue
            capsys.readouterr()
            try:
                code = app.cli.main([name, "--store", str(root), *options, *more])
            except SystemExit:  # it is about one thing that is not named
                continue
            if code == 0:
                printed = json.loads(capsys.readouterr().out)
                yield " ".join([name, *more]), printed if isinstance(printed, dict) else {}


def reports(store: Store, selection: Selection) -> Iterator[tuple[str, Any]]:
    """Every report about the whole fleet."""
    for name, kind in kinds.kinds().items():
        if not kind.metavar:
            yield f"report {name}", kinds.report(store, name, selection)


def gathered(root: Path, period: str, capsys: pytest.CaptureFixture[str]) -> Values:
    """Labels of headline numbers and keys of JSON, each with its value wherever it stands."""
    found: Values = defaultdict(dict)
    with closing(Store.open(root)) as store:
        selection = periods(store)[period]
        for where, said in (*answers(store, selection), *reports(store, selection)):
            for number in said.numbers if isinstance(said, Answer) else said.headlines:
                label = number.term.label
                found[KEYS.get(label, label)][where] = _plain(number.exact, number.value)
                if label in SAID:
                    found[f"{label}, as printed"][where] = number.value
            for label, pattern in SAID.items():
                if told := pattern.search(
                    said.sentence if isinstance(said, Answer) else said.answer
                ):
                    value = next(group for group in told.groups() if group)
                    found[f"{label}, as printed"][f"{where}, title"] = value
    for where, record in commands(root, selection, capsys):
        for key, value in _leaves(record):
            at = f"faultline {where}: {key}" if key in KEYS else f"faultline {where}"
            found[KEYS.get(key, key)][at] = value
    return found


def _plain(exact: Estimate | float | None, printed: str) -> Any:
    """A value that can be compared: of an estimate its bounds and n too."""
    if isinstance(exact, Estimate):
        return (exact.value, exact.lower, exact.upper, exact.n)
    return printed if exact is None else exact


def _leaves(record: Any, about: str = "") -> Iterator[tuple[str, Any]]:
    """Keys and values of a record; those of a row of a list stand under what it is about."""
    if isinstance(record, list):
        for row in record:
            named = [f"{name}={row[name]} " for name in ROWS if name in row]
            if named:
                yield from _leaves(row, "".join(named))
        return
    for key, value in record.items():
        if isinstance(value, list) and all(isinstance(row, dict) for row in value):
            yield from _leaves(value)
        elif isinstance(value, dict) and set(value) >= set(ESTIMATE):
            coming = "to come: " if value.get("kind") == "prediction" else ""
            yield about + coming + key, tuple(value[name] for name in ESTIMATE)
        elif isinstance(value, int | float | None) and (about or NAMED.search(key)):
            yield about + key, value


def table_of(found: Values, name: str) -> str:
    """What stands in several places, for people to read (`pytest -s`)."""
    rows = [
        f"| {key} | {next(iter(where.values()))} | {len(where)} | {', '.join(where)} |"
        for key, where in sorted(found.items())
        if len(where) > 1
    ]
    return "\n".join(
        [f"\n{name}\n", "| quantity | value | places | where |", "|---|---|---|---|", *rows]
    )


STORES = ["sight of a part", "accounting alone", "failure log alone", "demo"]


@pytest.mark.slow
@pytest.mark.parametrize("period", ["all", "last weeks"])
@pytest.mark.parametrize("name", STORES)
def test_what_is_called_the_same_is_the_same_on_every_page_command_and_report(
    name: str,
    period: str,
    stores: dict[str, Path],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = stores[name] if name in stores else request.getfixturevalue("demo_store")
    found = gathered(root, period, capsys)
    print(table_of(found, f"{name}, {period}"))
    for key in IN_PART:
        known = {at: value for at, value in found[key].items() if value[0] is not None}
        found[key] = known or found[key]
    differ = {key: where for key, where in found.items() if len(set(map(repr, where.values()))) > 1}
    assert not differ
    assert all(len(found[key]) > 2 for key in ("failures", "lost_to_failures_gpu_hours"))


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_a_title_says_its_finding_in_few_words(
    name: str, stores: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    root = stores[name] if name in stores else request.getfixturevalue("demo_store")
    with closing(Store.open(root)) as store:
        titles = {
            (period, where): titled(said.sentence)
            for period, selection in periods(store).items()
            for where, said in answers(store, selection)
        }
    assert len(titles) > 20
    long = {at: title for at, title in titles.items() if len(title.split()) > MOST_TITLE_WORDS}
    assert not long
