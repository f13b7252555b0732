"""Mail: one message for each person, handed to the organisation's own server, which signs and forwards it."""

import hashlib
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path

from pydantic import SecretStr

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.retries import retry_context
from gpuledger.notify.recipients import Target, mail_address
from gpuledger.notify.rendering import render
from gpuledger.notify.sending import Message, Undelivered
from gpuledger.settings import Settings

_TIMEOUT_S = 15
_TRIES = 3
_NOBODY = frozenset((550, 551, 553))
"""Answers to a recipient that is nobody; all others may be mended."""
_LINE_MOST = 1024


@dataclass(frozen=True, slots=True)
class Server:
    """The server that mail is handed to.

    Args:
        host: Its name.
        port: Its port.
        security: ``starttls``, ``tls`` or ``none``.
        sender: The address that mail is from.
        username: Who logs in; None for nobody.
        password: The password of that login.
        ca_file: PEM certificates that sign the server's; those of the system unless given.
    """

    host: str
    port: int
    security: str
    sender: str
    username: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = None


def server_of(settings: Settings) -> Server | None:
    """Return the server that the settings name; None where they name none.

    Raises:
        Refused: When the address that mail is from is none, or the password cannot be read.
    """
    if settings.smtp_host is None or settings.smtp_from is None:
        return None
    try:
        sender = mail_address(settings.smtp_from)
    except ValueError as error:
        raise Refused(f"GPULEDGER_SMTP_FROM: {error}", hint="such as gpuledger@example.org") from error
    password = None
    if settings.smtp_password_file is not None:
        try:
            with settings.smtp_password_file.open(encoding="utf-8") as file:
                password = SecretStr(file.readline(_LINE_MOST).rstrip("\r\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(
                f"GPULEDGER_SMTP_PASSWORD_FILE: cannot be read: {type(error).__name__}",
                hint="its first line is the password",
            ) from error
    return Server(
        settings.smtp_host,
        settings.smtp_port,
        settings.smtp_security,
        sender,
        settings.smtp_username,
        password,
        settings.smtp_ca_file,
    )


class MailSender:
    """Sends notices to people.

    Args:
        server: What their mail is handed to.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def __call__(self, target: Target, message: Message) -> None:
        """Hand a message for one person to the server.

        Raises:
            Undelivered: When it was not taken; final where the server refuses it for good.
        """
        mail = composed(self._server.sender, target, message)
        try:
            for attempt in retry_context(
                on=_is_brief,
                attempts=_TRIES, timeout=30.0, wait_initial=0.2, wait_max=2.0, wait_jitter=0.2,
            ):  # fmt: skip
                with attempt:
                    self._hand_over(mail)
        except smtplib.SMTPResponseException as error:
            raise Undelivered(f"the mail server answers {error.smtp_code}") from error
        except smtplib.SMTPRecipientsRefused as error:
            code = min(code for code, _ in error.recipients.values())
            raise Undelivered(
                f"the mail server answers {code} to the recipient", is_final=code in _NOBODY
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            # The text of an SSL error names the server alone; others may hold what was sent.
            said = str(error) if isinstance(error, ssl.SSLError) else type(error).__name__
            raise Undelivered(f"the mail server cannot be used: {said}") from error

    def _hand_over(self, mail: EmailMessage) -> None:
        server = self._server
        context = ssl.create_default_context(cafile=server.ca_file)
        if server.security == "tls":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, timeout=_TIMEOUT_S, context=context
            )
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT_S)
        with connection:
            if server.security == "starttls":
                connection.starttls(context=context)  # raises where the server has none
            if server.username is not None and server.password is not None:
                connection.login(server.username, server.password.get_secret_value())
            connection.send_message(mail)


def composed(sender: str, target: Target, message: Message) -> EmailMessage:
    """Return the mail of a message to one person: text, the same as HTML, and an id that is the same at each attempt.

    Args:
        sender: The address that it is from.
        target: Who it is to.
        message: What it tells.
    """
    assert target.address is not None  # noqa: S101 - the name of the target says so
    rendered = render(message.body)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = target.address
    mail["Subject"] = rendered.subject
    mail["Date"] = format_datetime(message.at)
    whose = hashlib.sha256(target.name.encode()).hexdigest()[:12]
    mail["Message-ID"] = f"<{message.id}.{whose}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # so that no holiday notice answers it
    mail["X-Gpuledger-Notice"] = message.id
    mail.set_content(rendered.text)
    mail.add_alternative(rendered.html, subtype="html")
    return mail


def _is_brief(error: Exception) -> bool:
    """Say whether another try soon may do: nobody answered, or the line was cut; refusals are OSErrors too."""
    if isinstance(error, smtplib.SMTPException):
        return isinstance(error, smtplib.SMTPServerDisconnected)
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)
