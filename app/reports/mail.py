"""Mails the files of a report by SMTP."""

from __future__ import annotations

import os
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import make_msgid
from typing import TYPE_CHECKING

from app.answers.content import Table
from app.show.files import MIME
from data.errors import DataError, SiteError
from data.site import load_site
from data.toml import Toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from app.reports.report import Report, Section
    from data.site import Smtp

WAIT_S = 30.0
PASSWORD = "FAULTLINE_SMTP_PASSWORD"  # the name of the variable
"""Environment variable of the password: it is never in a file of the store."""
_SETTINGS = ("host", "port", "sender", "user", "security")


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
            with self._server() as server:
                if self.smtp.user:
                    server.login(self.smtp.user, self.password or "")
                server.send_message(message(report, paths, sender=self._sender, to=self.to))
        except (OSError, smtplib.SMTPException) as error:
            raise DataError(
                f"--mail-to: {self.smtp.host}:{self.smtp.port} did not take the mail "
                f"({_said(error)}); the files are written: mend [reports.smtp] in site.toml"
            ) from None

    @property
    def _sender(self) -> str:
        return self.smtp.sender or self.to[0]

    def _server(self) -> smtplib.SMTP:
        """The connection, encrypted as configured."""
        host, port = self.smtp.host, self.smtp.port
        if self.smtp.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=WAIT_S, context=context)
        server = smtplib.SMTP(host, port, timeout=WAIT_S)
        if self.smtp.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        return server


def mail(root: Path, to: str, environment: Mapping[str, str] = os.environ) -> Mail:
    """Mail to these addresses, as site.toml says; FAULTLINE_SMTP_HOST and the like come first.

    Raises
    ------
    DataError
        Where an address is none, or no server is named.
    """
    addresses = tuple(one.strip() for one in to.split(",") if one.strip())
    wrong = [one for one in addresses if "@" not in one.strip("@") or any(c.isspace() for c in one)]
    if wrong or not addresses:
        named = wrong[0] if wrong else to
        raise DataError(f"--mail-to must be addresses, got {named!r}: e.g. ops@example.org")
    stated = {
        name: value
        for name in _SETTINGS
        if (value := environment.get(f"FAULTLINE_SMTP_{name.upper()}"))
    }
    smtp = load_site(root).smtp.but(stated, Toml("FAULTLINE_SMTP", SiteError))
    if not smtp.host:
        raise DataError(
            "--mail-to: no mail server is named: set host in [reports.smtp] of site.toml, or "
            "FAULTLINE_SMTP_HOST"
        )
    return Mail(addresses, smtp, environment.get(PASSWORD))


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


def _said(error: Exception) -> str:
    """What a server or the network said, on one line."""
    if isinstance(error, smtplib.SMTPResponseException):
        raw = error.smtp_error
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        return f"{error.smtp_code} {text}"
    return str(error) or type(error).__name__
