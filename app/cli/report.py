"""faultline report: writes a failure report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError, StoreError

if TYPE_CHECKING:
    import argparse

    from app.reports.kinds import Kind
    from app.reports.mail import Mail
    from data.filters import Selection
    from data.store import Store

HELP = "write a failure report of the fleet, an incident or a node; mail it"
EXAMPLE = "faultline report --store ./demo-store --last week --as html,pdf --out ./report"
FORMS = ("html", "pdf", "xlsx", "md", "json")
KINDS = ("fleet", "incident", "node")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kind, period, form and place of the report."""
    options.add_store(parser)
    options.add_selection(parser)
    parser.add_argument(
        "--last",
        choices=("week", "month"),
        help="in place of --from and --to: the last one that the records cover to its end (UTC)",
    )
    options.add_estimate(parser)
    parser.add_argument("--kind", choices=KINDS, help="default fleet")
    parser.add_argument(
        "--incident", metavar="ID", help="of this incident; `faultline incidents` shows the ids"
    )
    parser.add_argument("--node", metavar="NAME", help="of this node")
    options.add_redact(parser)
    parser.add_argument(
        "--as",
        dest="forms",
        default="html",
        metavar="FORM[,FORM]",
        help=f"{', '.join(FORMS)} (default html)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="DIR", help="folder (default ./report)"
    )
    parser.add_argument(
        "--mail-to",
        metavar="ADDRESS[,ADDRESS]",
        help="mail the files too; [reports.smtp] of site.toml says how",
    )
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes it and prints the files and the hash of the content."""
    from app.reports import kinds
    from app.show import files
    from data.store import Store

    kind, forms = _kind(arguments), _forms(arguments)
    if kind == "fleet":
        _build_ledger(arguments.store)
    store = Store.open(arguments.store)
    mail = _mail(store, arguments)
    report = kinds.report(
        store,
        kind,
        _selection(store, arguments),
        about=arguments.incident or arguments.node or "",
        redact=arguments.redact,
        conf_level=arguments.conf_level,
        seed=arguments.seed,
    )
    try:
        paths = [files.write(report, form, arguments.out) for form in forms]
    except OSError as error:
        raise DataError(f"--out {arguments.out}: {error.strerror}: name another folder") from None
    said = {"files": [str(path) for path in paths], "content_sha256": report.content_sha256}
    if mail is not None:
        mail.send(report, paths)
        said["mailed_to"] = list(mail.to)
    terminal.print_record(said, terminal.chosen(arguments.format))
    return 0


def _build_ledger(root: Path) -> None:
    """Builds the ledger that the report of the fleet holds; where that fails, it says so."""
    from app.actions import build_ledger
    from data.store import require_current

    require_current(root)
    try:
        build_ledger(root, terminal.progress)
    except StoreError as error:
        terminal.notice(f"{error}; the report goes without the ledger")
    terminal.progress_done()


def _kind(arguments: argparse.Namespace) -> Kind:
    """The kind asked for: --incident and --node name theirs."""
    kinds: tuple[Kind, ...] = ("incident", "node")
    named = [kind for kind in kinds if getattr(arguments, kind) is not None]
    if len(named) > 1:
        raise DataError("--incident and --node are two reports: ask for one at a time")
    kind: Kind = arguments.kind or (named[0] if named else "fleet")
    if kind != "fleet" and kind not in named:
        raise DataError(f"--kind {kind} needs --{kind}: {_where(kind)}")
    if named and kind != named[0]:
        raise DataError(f"--{named[0]} does not go with --kind {kind}: leave one of them out")
    return kind


def _where(kind: str) -> str:
    """Where what the report is about is found."""
    return "`faultline incidents` shows the ids" if kind == "incident" else "name the node"


def _forms(arguments: argparse.Namespace) -> list[str]:
    """The forms asked for, each once."""
    forms = list(dict.fromkeys(form.strip() for form in arguments.forms.split(",")))
    for form in forms:
        if form not in FORMS:
            raise DataError(f"--as must be one of {', '.join(FORMS)}, got {form!r}: choose one")
    return forms


def _mail(store: Store, arguments: argparse.Namespace) -> Mail | None:
    """Where to mail it; refused before anything is written."""
    if arguments.mail_to is None:
        return None
    from app.reports.mail import mail

    return mail(store.root, arguments.mail_to)


def _selection(store: Store, arguments: argparse.Namespace) -> Selection:
    """The filters; --last stands for the period that it names."""
    selection = options.selection(arguments, store)
    if arguments.last is None:
        return selection
    if arguments.from_at is not None or arguments.to_at is not None:
        raise DataError("--last stands in place of --from and --to: leave one of them out")
    from app.answers.fleet.choices import last_whole

    from_at, to_at = last_whole(store, arguments.last)
    return replace(selection, from_at=from_at, to_at=to_at)
