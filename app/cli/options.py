"""Options that commands share, and what they mean."""

from __future__ import annotations

import argparse
import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.frames import DEFINITION, FAILURE_DEFINITIONS
from data.errors import DataError
from data.filters import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.answers.content import Answer
    from app.ask import Ask
    from data.store import Store

NAMES_TOLD = 10
"""Names that a refusal lists at most."""
LARGEST = 2**31 - 1
"""Largest whole number that an option takes."""
NAMED = ("cluster", "partition", "account")
"""Filters that name something in the store."""


OPTIONS: dict[str, dict[str, Any]] = {
    "partial": {
        "action": "store_true",
        "help": "of a cut-off or damaged archive read what came before the break",
    },
    "redact": {
        "action": "store_true",
        "help": "pseudonyms in place of users, accounts and names of jobs",
    },
    "conf_level": {
        "type": float,
        "default": CONF_LEVEL,
        "metavar": "P",
        "help": f"of intervals (default {CONF_LEVEL:.2f})",
    },
    "definition": {
        "choices": FAILURE_DEFINITIONS,
        "default": DEFINITION,
        "help": f"what counts as a failure of the rate (default {DEFINITION})",
    },
    "format": {
        "choices": ("table", "json", "csv"),
        "help": "of the output (default table on a terminal, else json)",
    },
}
"""Options that mean the same everywhere, by name."""


def add(parser: argparse.ArgumentParser, *names: str) -> None:
    """Options by their names, in this order; `store` and `selection` are among them."""
    for name in names:
        if name == "store":
            add_store(parser)
        elif name == "selection":
            _add_selection(parser)
        else:
            parser.add_argument(f"--{name.replace('_', '-')}", **OPTIONS[name])


def asking(arguments: argparse.Namespace, *, ledger: bool = False) -> tuple[Store, Ask]:
    """The store, open, and what asks it; names are replaced where --redact says so.

    With `ledger` it is built first, where it is not.
    """
    from app.ask import of_store
    from app.show import terminal
    from data.site_changes import changes
    from data.store import Store

    store = with_ledger(arguments.store) if ledger else Store.open(arguments.store)
    for text in changes(arguments.store):
        terminal.notice(text)
    if not getattr(arguments, "redact", False):
        return store, of_store(store)
    from app.reports import redaction

    return store, redaction.redacting(of_store(store), redaction.names(store, redact=True))


def answered(arguments: argparse.Namespace, question: Callable[..., Answer], **asked: Any) -> int:
    """Prints what a question of a store and a selection is answered."""
    from app.show import terminal

    store, ask = asking(arguments)
    with contextlib.closing(store):
        also = terminal.synthetic(store)
        answer = question(ask, selection(arguments, store), **asked)
        named = isinstance(answer.record, dict)
        terminal.write(answer, arguments.format, **(also if named else {}))
    return 0


def chance(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_estimate`."""
    return {"conf_level": arguments.conf_level, "seed": arguments.seed}


def with_ledger(root: Path) -> Store:
    """The store, open, at a snapshot that holds the ledger; others may publish meanwhile."""
    from app.actions import READER_WAIT_S, build_ledger
    from app.show import terminal
    from data.queries.efficiency import has_ledger
    from data.store import Store

    while True:
        build_ledger(root, terminal.progress, wait_s=READER_WAIT_S)
        terminal.progress_done()
        store = Store.open(root)
        if has_ledger(store):
            return store
        store.close()


def add_store(parser: argparse.ArgumentParser, default: str = "./store") -> None:
    """--store."""
    parser.add_argument(
        "--store",
        type=folder,
        metavar="DIR",
        default=os.environ.get("FAULTLINE_STORE") or default,
        help=f"folder of the store (default $FAULTLINE_STORE, else {default})",
    )


def add_wait(parser: argparse.ArgumentParser) -> None:
    """--wait."""
    parser.add_argument(
        "--wait",
        type=whole,
        default=0,
        metavar="SECONDS",
        help="wait so long where another process writes to the store (default 0)",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """Filters: --cluster, --from, --to, --partition, --account, --min-gpus."""
    parser.add_argument("--cluster", metavar="NAME", help="only this cluster")
    parser.add_argument(
        "--from", dest="from_at", type=moment, metavar="TIME", help="period from, ISO (UTC)"
    )
    parser.add_argument(
        "--to", dest="to_at", type=moment, metavar="TIME", help="period up to, exclusive"
    )
    parser.add_argument("--partition", metavar="NAME", help="only this partition")
    parser.add_argument("--account", metavar="NAME", help="only this account")
    parser.add_argument(
        "--min-gpus",
        type=whole,
        metavar="N",
        help="only jobs of N GPUs and more (default 0)",
    )


def add_estimate(parser: argparse.ArgumentParser, *, seeded: str = "bootstrap") -> None:
    """--conf-level and --seed."""
    add(parser, "conf_level")
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help=f"of the {seeded} (default 0)"
    )


def selection(arguments: argparse.Namespace, store: Store) -> Selection:
    """The filters as given.

    Raises
    ------
    DataError
        Where the period ends before it begins, or the store knows no such name.
    """
    from data.queries import fleet

    filters = as_given(arguments)
    for column in NAMED:
        if (name := getattr(filters, column)) is not None:
            known(column, name, fleet.distinct(store, column))
    return filters


def as_given(arguments: argparse.Namespace) -> Selection:
    """The filters as given, whether the store knows their names or not.

    Raises
    ------
    DataError
        Where the period ends before it begins.
    """
    from_at, to_at = arguments.from_at, arguments.to_at
    if from_at is not None and to_at is not None and from_at >= to_at:
        raise DataError(
            f"--from must be before --to, got {from_at:%Y-%m-%dT%H:%M} and {to_at:%Y-%m-%dT%H:%M}: "
            "the period is half-open, give --to the day after its last one"
        )
    return Selection(
        cluster=arguments.cluster,
        from_at=from_at,
        to_at=to_at,
        partition=arguments.partition,
        account=arguments.account,
        min_gpus=arguments.min_gpus or 0,
        by_size_min_gpus=arguments.min_gpus or 0,
        definition=getattr(arguments, "definition", DEFINITION),
    )


def known(column: str, name: str | None, names: Sequence[str]) -> None:
    """Refuses a name that the store does not hold: a slip would count as no failures."""
    if name is None or name in names:
        return
    from difflib import get_close_matches  # here: a command that is right does without it

    near = get_close_matches(name, names, n=1)
    there = ", ".join(names[:NAMES_TOLD]) + (", ..." if len(names) > NAMES_TOLD else "")
    remedy = f"did you mean {near[0]!r}?" if near else f"there is {there or 'none'}"
    raise DataError(f"--{column} must be one of the store's, got {name!r}: {remedy}")


def folder(text: str) -> Path:
    """A folder that is there or can be made."""
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a file: name a folder")
    return path


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdecimal() or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {LARGEST:,}")
    return int(text)


def above_zero(text: str, most: float) -> float | None:
    """A number above 0 and up to `most`; None where the text is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 < found <= most else None


def lasting(text: str, most: float, unit: str = "days") -> float:
    """A number of days, or of another unit, above 0 and up to `most`."""
    found = above_zero(text, most)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be above 0 and at most {most:,.0f} {unit}, got {text!r}"
        )
    return found


def moment(text: str) -> datetime:
    """An ISO time; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no ISO time, write e.g. 2024-01-31 or 2024-01-31T06:00"
        ) from None
