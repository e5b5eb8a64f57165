"""The section [reports.smtp]: the server that mails reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.errors import SiteError
from data.site.document import known_keys, table

if TYPE_CHECKING:
    from pathlib import Path

SECURITY = ("starttls", "tls", "none")
"""How the connection to a mail server is encrypted."""


@dataclass(frozen=True)
class Smtp:
    """The server that mails reports."""

    host: str = ""
    port: int = 587
    sender: str = ""
    """Address that mails come from; the first receiver's where it is empty."""
    user: str = ""
    """Who logs in; nobody does where it is empty. The password is never in a file."""
    security: str = "starttls"
    """starttls, tls or none."""

    @staticmethod
    def checked(name: str, value: object) -> str | int:
        """The value of a setting.

        Raises
        ------
        SiteError
            Naming the setting, the rule and the value found.
        """
        place = f"reports.smtp.{name}"
        if name == "port":
            text = str(value)
            if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 65536:
                raise SiteError(f"{place} must be a port, got {value!r}: e.g. 587")
            return int(text)
        if not isinstance(value, str) or any(char in value for char in "\r\n"):
            raise SiteError(f"{place} must be text on one line, got {value!r}: mend it")
        if name == "security" and value not in SECURITY:
            raise SiteError(f"{place} must be {', '.join(SECURITY)}, got {value!r}: choose one")
        return value


def read(path: Path, values: object) -> Smtp:
    """The section [reports.smtp]."""
    reports = table(path, "reports", values)
    if unknown := set(reports) - {"smtp"}:
        raise SiteError(f"{path}: reports.{min(unknown)} is unknown: there is [reports.smtp]")
    stated = table(path, "reports.smtp", reports.get("smtp", {}))
    if "password" in stated:
        raise SiteError(
            f"{path}: reports.smtp.password must not stand in a file: put it into the environment "
            "as FAULTLINE_SMTP_PASSWORD"
        )
    known_keys(path, "reports.smtp", stated, Smtp)
    try:
        settings: dict[str, Any] = {n: Smtp.checked(n, value) for n, value in stated.items()}
        return Smtp(**settings)
    except SiteError as error:
        raise SiteError(f"{path}: {error}") from None
