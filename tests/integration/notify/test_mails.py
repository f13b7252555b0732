"""Mail at a real server on this machine: over TLS, one for each person, and no header but ours."""

import smtplib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.brokers.secured import Authority
from tests.integration.notify.receiving import Mailbox, mailbox

from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Refused
from gpuledger.notify.mails import MailSender, Server, composed, server_of
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.payloads import CheckFailed, CloseFailed, Finding
from gpuledger.notify.recipients import Mail, Target
from gpuledger.notify.sending import Message, Undelivered
from gpuledger.settings import Settings

NOW = SystemClock().now()
FINDING = Finding(expectation="residual is 0", rows_count=1, rows=[{"account": "org/ä<b>", "residual": "1"}])
NOTICE = Notice(
    Kind.CHECK_FAILED,
    ("x",),
    CheckFailed(
        cluster="alpha", table="gpu_hour", from_day="2026-12-01", to_day="2026-12-02", findings=[FINDING]
    ),
)
MESSAGE = Message(NOTICE.id, NOTICE.body(NOW), NOW)
LEAD = Target("mail/leads/1", Mail(to=("lead@example.org",)), address="lead@example.org")
LOGIN = ("ada", "only-for-this-test")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "authority.pem")


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("mail", tmp_path))
    return context


@pytest.fixture
def there() -> Iterator[Mailbox]:
    with mailbox() as found:
        yield found


def server(box: Mailbox, **changes: object) -> Server:
    return replace(Server("127.0.0.1", box.port, "none", "gpuledger@example.org"), **changes)  # type: ignore[arg-type]


def test_each_person_has_a_message_of_their_own(there: Mailbox) -> None:
    send = MailSender(server(there))
    send(LEAD, MESSAGE)
    send(replace(LEAD, name="mail/leads/2", address="deputy@example.org"), MESSAGE)
    assert [to for to, _ in there.mails] == [("lead@example.org",), ("deputy@example.org",)]
    assert [mail["To"] for _, mail in there.mails] == ["lead@example.org", "deputy@example.org"]


def test_it_is_text_and_html_and_says_who_made_it(there: Mailbox) -> None:
    MailSender(server(there))(LEAD, MESSAGE)
    ((_, mail),) = there.mails
    assert mail["Subject"] == "alpha: a check of warehouse.gpu_hour failed"
    assert (mail["From"], mail["Auto-Submitted"]) == ("gpuledger@example.org", "auto-generated")
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert "account=org/ä<b>, residual=1" in text.get_content()
    assert "org/ä&lt;b&gt;" in html.get_content()
    assert "<b>" not in html.get_content()


def test_another_attempt_has_the_same_message_id_and_another_person_another() -> None:
    one, again = composed("a@example.org", LEAD, MESSAGE), composed("a@example.org", LEAD, MESSAGE)
    other = composed("a@example.org", replace(LEAD, name="mail/leads/2"), MESSAGE)
    assert one["Message-ID"] == again["Message-ID"] != other["Message-ID"]
    assert one["Message-ID"].startswith(f"<{NOTICE.id}.")


@pytest.mark.parametrize(
    "evil", ["x\r\nBcc: eve@example.org", "x\nBcc: eve@example.org", "x\r\n\r\n<html>", "x\0y"]
)
def test_what_a_notice_holds_becomes_no_header(there: Mailbox, evil: str) -> None:
    data = CloseFailed(cluster=evil, period="2026-12", step=evil, message=evil, findings=[evil])
    notice = Notice(Kind.CLOSE_FAILED, ("x",), data)
    MailSender(server(there))(LEAD, Message(notice.id, notice.body(NOW), NOW))
    ((to, mail),) = there.mails
    assert to == ("lead@example.org",)
    assert mail["Bcc"] is None
    assert set(mail.keys()) - {"X-Peer", "X-MailFrom", "X-RcptTo"} == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Gpuledger-Notice", "MIME-Version",
        "Content-Type",
    }  # fmt: skip
    assert mail.is_multipart()


def test_with_starttls_and_a_login(tls: ssl.SSLContext, authority: Authority) -> None:
    with mailbox(tls, LOGIN) as there:
        secured = server(
            there,
            security="starttls",
            username=LOGIN[0],
            password=SecretStr(LOGIN[1]),
            ca_file=authority.path,
        )
        MailSender(secured)(LEAD, MESSAGE)
        assert len(there.mails) == 1
        with pytest.raises(Undelivered, match="answers 535") as failed:
            MailSender(replace(secured, password=SecretStr("hunter2")))(LEAD, MESSAGE)
        assert not failed.value.is_final
        assert "hunter2" not in str(failed.value)
        with pytest.raises(Undelivered, match="CERTIFICATE_VERIFY_FAILED"):
            MailSender(replace(secured, ca_file=None))(LEAD, MESSAGE)
        assert len(there.mails) == 1


def test_a_server_without_tls_is_sent_nothing_where_tls_is_asked_for(there: Mailbox) -> None:
    with pytest.raises(Undelivered, match="SMTPNotSupportedError"):
        MailSender(server(there, security="starttls"))(LEAD, MESSAGE)
    assert there.mails == []


@pytest.mark.parametrize(
    ("answer", "is_final"),
    [("550 nobody", True), ("451 later", False), ("554 not through me", False)],
)
def test_a_recipient_that_is_nobody_is_given_up(there: Mailbox, answer: str, *, is_final: bool) -> None:
    there.refused["lead@example.org"] = answer
    with pytest.raises(Undelivered, match=f"answers {answer[:3]} to the recipient") as failed:
        MailSender(server(there))(LEAD, MESSAGE)
    assert failed.value.is_final is is_final
    assert "lead@" not in failed.value.message


def test_a_server_that_is_away_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Undelivered, match="ConnectionRefusedError"):
        MailSender(Server("127.0.0.1", port, "none", "a@example.org"))(LEAD, MESSAGE)


def test_a_line_that_was_cut_is_tried_again(there: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    real, cut = smtplib.SMTP.send_message, [True, True]

    def send_message(self: smtplib.SMTP, *args: object) -> object:
        if cut:
            cut.pop()
            raise smtplib.SMTPServerDisconnected("cut")
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(smtplib.SMTP, "send_message", send_message)
    MailSender(server(there))(LEAD, MESSAGE)
    assert len(there.mails) == 1


def test_the_server_is_as_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\nsecond line\n")
    config = Settings(
        smtp_host="mail",
        smtp_from="a@example.org",
        smtp_username="ada",
        smtp_password_file=tmp_path / "password",
    )
    found = server_of(config)
    assert found is not None
    assert (found.port, found.security, found.password) == (587, "starttls", SecretStr("hunter2"))
    assert "hunter2" not in repr(found)
    assert server_of(Settings()) is None


def test_what_cannot_be_a_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="GPULEDGER_SMTP_FROM"):
        server_of(Settings(smtp_host="mail", smtp_from="a@example.org\nBcc: x@example.org"))
    with pytest.raises(Refused, match="GPULEDGER_SMTP_PASSWORD_FILE: cannot be read: FileNotFoundError"):
        server_of(
            Settings(
                smtp_host="mail",
                smtp_from="a@example.org",
                smtp_username="ada",
                smtp_password_file=tmp_path / "no",
            )
        )
