"""Mail with the files, taken by a receiver on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.reports import mail
from app.reports.report import Section
from app.show import files
from data.errors import DataError
from tests.app.mail_server import receiving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.reports.report import Report
    from tests.app.mail_server import Received


@pytest.fixture
def receiver() -> Iterator[Received]:
    """A mail server that keeps what it gets."""
    with receiving() as received:
        yield received


def _site(root: Path, port: int, more: str = "") -> Path:
    root.mkdir(exist_ok=True)
    (root / "site.toml").write_text(
        f'[reports.smtp]\nhost = "127.0.0.1"\nport = {port}\nsecurity = "none"\n'
        f'sender = "faultline@example.org"\n{more}'
    )
    return root


@pytest.mark.slow
def test_the_files_arrive_with_the_answer(
    reports: dict[str, Report], receiver: Received, tmp_path: Path
) -> None:
    report = reports["fleet"]
    paths = files.write(report, ("html", "pdf", "xlsx"), tmp_path)
    root = _site(tmp_path / "store", receiver.port, 'user = "reporter"\n')
    secret = {"FAULTLINE_SMTP_PASSWORD": "open sesame"}
    mail.mail(root, "a@example.org, b@example.org", secret).send(report, paths)
    assert [line.lower() for line in receiver.receivers] == [
        "rcpt to:<a@example.org>", "rcpt to:<b@example.org>",
    ]  # fmt: skip
    assert receiver.login == "\0reporter\0open sesame"
    message = receiver.message
    assert message["From"] == "faultline@example.org"
    assert message["Subject"].strip().startswith("Fleet reliability, 1 Dec 2025")
    assert "synthetic" in message["Subject"]
    body = message.get_body(("plain",))
    assert body is not None
    assert report.answer in body.get_content()
    assert report.content_sha256 in body.get_content()
    attached = {part.get_filename(): part.get_content() for part in message.iter_attachments()}
    for path in paths:
        found = attached[path.name]
        content = found.encode() if isinstance(found, str) else found
        assert content.replace(b"\r\n", b"\n") == path.read_bytes().replace(b"\r\n", b"\n")
    assert b"open sesame" not in receiver.content


def test_a_mail_of_the_card_says_all_of_it(reports: dict[str, Report]) -> None:
    card = reports["monday"]
    sent = mail.message(card, (), sender="a@example.org", to=("b@example.org",))
    text = sent.get_content()
    assert "Do this now:\n- " in text
    assert all(row[0] in text for table in card.tables for row in table.printed)
    assert f"- {card.tables[0].note}\n" in text
    (now, before) = card.tables[1].printed[0][1:3]
    assert f"; Now: {now}; {card.tables[1].headers[2]}: {before}; " in text
    nothing = replace(card, sections=(Section("Do", (replace(card.tables[0], rows=()),)),))
    sent = mail.message(nothing, (), sender="a@example.org", to=("b@example.org",))
    assert f"- {card.tables[0].empty}\n" in sent.get_content()


def test_the_environment_comes_before_the_file(receiver: Received, tmp_path: Path) -> None:
    root = _site(tmp_path, 1)
    found = mail.mail(
        root,
        "a@example.org",
        {"FAULTLINE_SMTP_PORT": str(receiver.port), "FAULTLINE_SMTP_USER": "x"},
    )
    assert (found.smtp.port, found.smtp.user, found.smtp.host) == (receiver.port, "x", "127.0.0.1")


def test_who_refuses_is_named(
    reports: dict[str, Report], receiver: Received, tmp_path: Path
) -> None:
    receiver.refuses = True
    found = mail.mail(_site(tmp_path, receiver.port), "a@example.org", {})
    with pytest.raises(DataError, match="did not take the mail"):
        found.send(reports["fleet"], [])


def test_a_server_that_is_not_there_is_named(reports: dict[str, Report], tmp_path: Path) -> None:
    found = mail.mail(_site(tmp_path, 9), "a@example.org", {})
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9 did not take the mail"):
        found.send(reports["fleet"], [])


REFUSED = {
    "no address": ("nobody", {}, "must be addresses, got 'nobody'"),
    "a line end": ("a@b\nBcc: c@d", {}, "must be addresses"),
    "nothing": ("", {}, "must be addresses"),
    "no server": ("a@example.org", {}, "no mail server is named"),
    "a port": ("a@example.org", {"FAULTLINE_SMTP_PORT": "none"}, "port must be a port, got 'none'"),
    "a security": (
        "a@example.org",
        {"FAULTLINE_SMTP_SECURITY": "ssl"},
        "security must be one of starttls, tls, none",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_mailed_is_refused(
    tmp_path: Path, case: tuple[str, dict[str, str], str]
) -> None:
    to, environment, message = case
    with pytest.raises(DataError, match=message):
        mail.mail(tmp_path, to, environment)


SITE = {
    "a password": ('password = "x"', "put it into the environment as FAULTLINE_SMTP_PASSWORD"),
    "an unknown key": ('hots = "x"', "did you mean 'host'"),
    "a port": ("port = 0", "must be a port, got 0"),
    "a number": ("host = 3", "must be text on one line"),
}


@pytest.mark.parametrize("case", SITE.values(), ids=SITE)
def test_a_configuration_that_is_wrong_is_explained(tmp_path: Path, case: tuple[str, str]) -> None:
    line, message = case
    (tmp_path / "site.toml").write_text(f"[reports.smtp]\n{line}\n")
    with pytest.raises(DataError, match=message):
        mail.mail(tmp_path, "a@example.org", {})


def test_another_section_of_reports_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('[reports.mail]\nhost = "x"\n')
    with pytest.raises(DataError, match=r"reports\.mail is unknown"):
        mail.mail(tmp_path, "a@example.org", {})
