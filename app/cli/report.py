"""faultline report: write a report of the fleet, a week, an incident or a node; mail it."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from app.reports import kinds
from app.show import files, terminal
from data.disk_full import disk_full
from data.errors import DataError, StoreError

if TYPE_CHECKING:
    import argparse

    from app.reports.kinds import Kind
    from app.reports.mail import Mail
    from app.reports.report import Report
    from data.filters import Selection
    from data.store import Store

EXAMPLE = "faultline report --store ./demo-store --last week --as html,pdf --out ./report"
FORMS = tuple(files.MODULES)
PRINTED = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kind, period, form and place of the report."""
    options.add(parser, "store", "selection")
    parser.add_argument(
        "--last",
        choices=("week", "month"),
        help="in place of --from and --to: the last whole one (without `collect`, of the records)",
    )
    options.add_estimate(parser)
    options.add(parser, "definition")
    parser.add_argument("--kind", choices=tuple(kinds.kinds()), help="default fleet")
    for kind in kinds.kinds().values():
        if kind.metavar:
            parser.add_argument(f"--{kind.name}", metavar=kind.metavar, help=kind.help)
    options.add(parser, "redact")
    parser.add_argument(
        "--as",
        dest="forms",
        default="html",
        metavar="FORM[,FORM]",
        help=f"{', '.join(FORMS)} (default html)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="folder (default ./report); - prints one form, for a pipe",
    )
    parser.add_argument(
        "--mail-to",
        metavar="ADDRESS[,ADDRESS]",
        help="mail the files too; [reports.smtp] of site.toml says how",
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Writes it and prints the files and the hash of the content."""
    from data.audit import noted
    from data.site_changes import changes
    from data.store import Store

    kind, forms = _kind(arguments), _forms(arguments)
    printed = _printed(arguments, forms)
    without = _build_ledger(arguments.store) if kind.needs_ledger else ""
    store = Store.open(arguments.store)
    mail = _mail(store, arguments)
    report = kinds.report(
        store,
        kind.name,
        _selection(store, arguments),
        about=getattr(arguments, kind.name, ""),
        redact=arguments.redact,
        conf_level=arguments.conf_level,
        seed=arguments.seed,
    )
    for text in (*([without] if without else []), *changes(arguments.store)):
        terminal.notice(text)
    if printed:
        return _print(store, report, printed)
    try:
        paths = files.write(report, forms, arguments.out)
    except OSError as error:
        raise disk_full(error, arguments.out) or DataError(
            f"--out {arguments.out}: {error.strerror}: name another folder"
        ) from None
    files_made = [path.name for path in paths]
    untold = noted(store.root, "report", {"name": report.stem, "files": files_made})
    said = {"files": [str(path) for path in paths], "content_sha256": report.content_sha256}
    if mail is not None:
        mail.send(report, paths)
        untold = noted(store.root, "mail", {"name": report.stem, "to": list(mail.to)})
        said["mailed_to"] = list(mail.to)
    terminal.print_record(said, arguments.format)
    if untold is not None:
        terminal.notice(untold)
    return 0


def _print(store: Store, report: Report, form: str) -> int:
    """Writes one form to standard output, as it would stand in a file."""
    from data.audit import noted

    content = files.render(report, form)
    untold = noted(store.root, "report", {"name": report.stem, "files": [str(PRINTED)]})
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    if untold is not None:
        terminal.notice(untold)
    return 0


def _build_ledger(root: Path) -> str:
    """Builds the ledger that the report of the fleet holds; what to say where that fails."""
    from app.actions import READER_WAIT_S, build_ledger
    from data.published import require_current

    require_current(root)
    try:
        build_ledger(root, terminal.progress, wait_s=READER_WAIT_S)
    except StoreError as error:
        return f"{error}; the report goes without the ledger"
    finally:
        terminal.progress_done()
    return ""


def _kind(arguments: argparse.Namespace) -> Kind:
    """The kind asked for: the option that names what a report is about tells its kind."""
    every = kinds.kinds()
    named = [
        name
        for name, kind in every.items()
        if kind.metavar and getattr(arguments, name) is not None
    ]
    if len(named) > 1:
        first, second = named[:2]
        raise DataError(f"--{first} and --{second} are two reports: ask for one at a time")
    name = arguments.kind or (named[0] if named else "fleet")
    if every[name].metavar and name not in named:
        raise DataError(f"--kind {name} needs --{name}: {every[name].where}")
    if named and name != named[0]:
        raise DataError(f"--{named[0]} does not go with --kind {name}: leave one of them out")
    return every[name]


def _forms(arguments: argparse.Namespace) -> list[str]:
    """The forms asked for, each once."""
    forms = list(dict.fromkeys(form.strip() for form in arguments.forms.split(",")))
    for form in forms:
        if form not in FORMS:
            raise DataError(f"--as must be one of {', '.join(FORMS)}, got {form!r}: choose one")
    return forms


def _printed(arguments: argparse.Namespace, forms: list[str]) -> str:
    """The one form that is printed in place of a file; empty where files are asked for."""
    if arguments.out != PRINTED:
        return ""
    if len(forms) > 1:
        raise DataError(f"--out - prints one form, got --as {','.join(forms)}: choose one")
    if arguments.mail_to is not None:
        raise DataError("--mail-to mails files, and --out - writes none: leave one of them out")
    return forms[0]


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

    from_at, to_at = last_whole(store, arguments.last, selection.cluster, datetime.now(UTC))
    return replace(selection, from_at=from_at, to_at=to_at)
