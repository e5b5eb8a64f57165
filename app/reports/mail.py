"""Mails the files of a report by SMTP."""

from __future__ import annotations

import os
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import make_msgid
from typing import TYPE_CHECKING

from app.answers.content import Table
from app.reports import smtp
from app.show.files import MIME
from data.errors import DataError, SiteError
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from app.reports.report import Report, Section
    from data.site import Smtp

WAIT_S = 30.0


@dataclass(frozen=True)
class Mail:
    """Where to, and by which server."""

    to: tuple[str, ...]
    smtp: Smtp
    password: str | None

    def send(self, report: Report, paths: Sequence[Path]) -> None:
        """Sends one message with the files.

        Raises
        ------
        DataError
            Where the server is not reached, or refuses.
        """
        try:
            with smtp.connection(self.smtp, self.password, WAIT_S) as server:
                server.send_message(message(report, paths, sender=self._sender, to=self.to))
        except (OSError, smtplib.SMTPException) as error:
            raise DataError(
                f"--mail-to: {self.smtp.host}:{self.smtp.port} did not take the mail "
                f"({smtp.said(error)}); the files are written: mend [reports.smtp] in site.toml"
            ) from None

    @property
    def _sender(self) -> str:
        return self.smtp.sender or self.to[0]


def mail(root: Path, to: str, environment: Mapping[str, str] = os.environ) -> Mail:
    """Mail to these addresses, as site.toml says; FAULTLINE_SMTP_HOST and the like come first.

    Raises
    ------
    DataError
        Where an address is none, or no server is named.
    """
    try:
        addresses = smtp.addresses(to)
    except DataError as error:
        raise DataError(f"--mail-to {error}") from None
    try:
        server = smtp.stated(load_site(root).smtp, environment)
    except SiteError:
        raise
    except DataError as error:
        raise DataError(f"--mail-to: {error}") from None
    return Mail(addresses, server, environment.get(smtp.PASSWORD))


def message(
    report: Report, paths: Sequence[Path], *, sender: str, to: Sequence[str]
) -> EmailMessage:
    """The answer as text, the files attached."""
    mailed = EmailMessage()
    mailed["Subject"] = f"{report.title}, {report.period}" + (
        " (synthetic)" if report.synthetic else ""
    )
    mailed["From"], mailed["To"] = sender, ", ".join(to)
    mailed["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    card = [line for part in report.sections if report.card for line in _in_words(part)]
    lines = [report.answer, "", *(f"- {one}" for one in report.summary), *card, "",
             f"{report.period}; {report.filters}", f"content {report.content_sha256}"]  # fmt: skip
    mailed.set_content("\n".join(lines) + "\n")
    for path in paths:
        main, _, sub = MIME[path.suffix.removeprefix(".")].partition("/")
        mailed.add_attachment(
            path.read_bytes(),
            maintype=main,
            subtype=sub,
            filename=path.name,
            params={"charset": "utf-8"} if main == "text" else None,
        )
    return mailed


def _in_words(section: Section) -> Iterator[str]:
    """A section of a card as lines of text."""
    lines = list(section.sentences)
    for block in section.blocks:
        if isinstance(block, Table):
            lines += [block.note, *_rows(block)]
    yield from ("", f"{section.title}:", *(f"- {line}" for line in lines if line))


def _rows(table: Table) -> Iterator[str]:
    """The first cell stands for its row; the others follow it by their titles."""
    if not len(table):
        yield table.empty
    for first, *others in table.printed:
        titled = zip(table.headers[1:], others, strict=True)
        yield "; ".join((first, *(f"{title}: {cell}" for title, cell in titled if cell)))
