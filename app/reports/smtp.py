"""The mail server of a site: where it is, how it is spoken to, and what it says."""

from __future__ import annotations

import os
import smtplib
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from data.errors import DataError, SiteError
from data.toml import Toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from data.site import Smtp

PASSWORD = "FAULTLINE_SMTP_PASSWORD"  # the name of the variable
"""Environment variable of the password: it is never in a file of the store."""
_SETTINGS = ("host", "port", "sender", "user", "security")


def stated(smtp: Smtp, environment: Mapping[str, str] = os.environ) -> Smtp:
    """The server of site.toml; FAULTLINE_SMTP_HOST and the like come first.

    Raises
    ------
    DataError
        Where no server is named, or the environment says what cannot be.
    """
    own = {
        name: value
        for name in _SETTINGS
        if (value := environment.get(f"FAULTLINE_SMTP_{name.upper()}"))
    }
    found = smtp.but(own, Toml("FAULTLINE_SMTP", SiteError))
    if not found.host:
        raise DataError(
            "no mail server is named: set host in [reports.smtp] of site.toml, or "
            "FAULTLINE_SMTP_HOST"
        )
    return found


def addresses(to: str) -> tuple[str, ...]:
    """Addresses of mail, between commas.

    Raises
    ------
    DataError
        Where one is none.
    """
    found = tuple(one.strip() for one in to.split(",") if one.strip())
    wrong = [one for one in found if "@" not in one.strip("@") or any(c.isspace() for c in one)]
    if wrong or not found:
        raise DataError(
            f"must be addresses, got {wrong[0] if wrong else to!r}: e.g. ops@example.org"
        )
    return found


@contextmanager
def connection(smtp: Smtp, password: str | None, timeout_s: float) -> Iterator[smtplib.SMTP]:
    """A connection, encrypted as configured, somebody logged in where a user is named."""
    host, port = smtp.host, smtp.port
    if smtp.security == "tls":
        context = ssl.create_default_context()
        opened: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=timeout_s, context=context)
    else:
        opened = smtplib.SMTP(host, port, timeout=timeout_s)
    with opened as server:
        if smtp.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if smtp.user:
            server.login(smtp.user, password or "")
        yield server


def said(error: Exception) -> str:
    """What a server or the network said, on one line."""
    if isinstance(error, smtplib.SMTPResponseException):
        raw = error.smtp_error
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        return f"{error.smtp_code} {text}"
    return str(error) or type(error).__name__
