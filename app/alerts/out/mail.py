"""Mail, by the server of [reports.smtp]: all that follows about an alert replies to its first."""

from __future__ import annotations

import os
import smtplib
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from app.alerts.out.answered import Answered, one_line
from app.alerts.out.words import facts, heading
from app.reports import smtp
from data.errors import DataError
from data.posting import within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.alerts import Delivery
    from data.site import Site, Smtp
    from data.site_alerts import Receiver

_FOR_GOOD = 500
"""From which reply code on trying again is of no use (RFC 5321, 4.2.1)."""
_Failed = smtplib.SMTPResponseException | smtplib.SMTPRecipientsRefused


def send(receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float) -> Answered:
    """What the server answers."""
    try:
        server = smtp.stated(site.smtp)
        to = smtp.addresses(delivery.message.get("to") or receiver.to)
    except DataError as error:
        return Answered(None, f"not sent: {error}", is_down=True)
    written = mailed(delivery, to, server)
    try:
        return within(timeout_s, lambda: _sent(written, server, timeout_s))
    except TimeoutError:
        return Answered(None, f"was not there within {timeout_s:g} s", is_known=False, is_down=True)
    except smtplib.SMTPAuthenticationError as error:  # a password is mended, mail that is lost not
        return Answered(None, one_line(smtp.said(error)), is_down=True)
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        return _refused(error)
    except ConnectionRefusedError as error:
        return Answered(None, one_line(smtp.said(error)), is_down=True)
    except (OSError, smtplib.SMTPException) as error:
        return Answered(None, one_line(smtp.said(error)), is_known=False, is_down=True)


def mailed(delivery: Delivery, to: tuple[str, ...], server: Smtp) -> EmailMessage:
    """A delivery as mail; sent again it is the same, down to its Message-ID."""
    sender = server.sender or to[0]
    domain = sender.rpartition("@")[2]
    told = delivery.message
    mail = EmailMessage()
    mail["Subject"] = one_line(heading(told))
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromisoformat(delivery.made_at))
    mail["Message-ID"] = f"<{delivery.delivery_id}@{domain}>"
    if told["first"]:
        mail["In-Reply-To"] = mail["References"] = f"<{told['first']}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Faultline-Delivery"] = delivery.delivery_id
    mail.set_content(_text(told))
    return mail


def _text(told: Mapping[str, Any]) -> str:
    lines = [f"{told['sentence']}.", "", *(f"{name}: {value}" for name, value in facts(told))]
    return "\n".join([*lines, *(("", told["link"]) if told["link"] else ())]) + "\n"


def _sent(mail: EmailMessage, server: Smtp, timeout_s: float) -> Answered:
    password = os.environ.get(smtp.PASSWORD)
    taken: list[Answered] = []
    try:
        with smtp.connection(server, password, timeout_s) as connection:
            refused = connection.send_message(mail)
            but = f", but not for {', '.join(sorted(refused))}" if refused else ""
            taken.append(Answered("delivered", f"taken{but}"))
    except (OSError, smtplib.SMTPException):
        if not taken:  # a server that says no good-bye has taken it all the same
            raise
    return taken[0]


def _refused(error: _Failed) -> Answered:
    """For good, where every code of the server says so."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        said = "; ".join(
            f"{code} {text.decode('utf-8', 'replace')}" for code, text in error.recipients.values()
        )
    else:
        codes, said = [error.smtp_code], smtp.said(error)
    for_good = bool(codes) and all(code >= _FOR_GOOD for code in codes)
    return Answered("refused" if for_good else None, one_line(said))
