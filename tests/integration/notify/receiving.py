"""Receivers of notices: a real HTTP server and a real mail server on this machine, and files that name them."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from infra.kafka.processes import free_port

SECRET = "whsec_" + base64.b64encode(b"only for this test, and no other").decode()


@dataclass
class Received:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON document
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """A program that takes webhooks.

    Args:
        url: Where.
        answers: Status codes for the requests to come; 204 when there are none left.
        headers: What the answers carry.
        received: The requests.
        gate: Requests are answered while it is set.
    """

    url: str = ""
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.received]


@contextmanager
def receiver(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Take webhooks until the block ends."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.received.append(Received(self.path, dict(self.headers.items()), body))
            found.gate.wait(60)
            self.send_response(found.answers.pop(0) if found.answers else 204)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - where a redirect would lead

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    found.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/hooks?who=test"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class Mailbox:
    """What a mail server takes.

    Args:
        port: Where it listens on this machine.
        refused: Address -> what it is answered.
        mails: What it took: to whom, and the message.
    """

    port: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    mails: list[tuple[Sequence[str], EmailMessage]] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - as the library calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.mails.append((tuple(envelope.rcpt_tos), message))
        return "250 OK"


@contextmanager
def mailbox(tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None) -> Iterator[Mailbox]:
    """Take mail until the block ends; with TLS and a login where they are given."""
    found = Mailbox(free_port())  # the library tries the port that it was told

    def authenticate(*args: object) -> AuthResult:
        shown = args[-1]
        assert isinstance(shown, LoginPassword)
        is_known = (shown.login.decode(), shown.password.decode()) == login
        return AuthResult(success=is_known, handled=is_known)

    controller = Controller(
        found,
        hostname="127.0.0.1",
        port=found.port,
        tls_context=tls,
        require_starttls=tls is not None,
        auth_required=login is not None,
        authenticator=authenticate if login is not None else None,
    )
    controller.start()
    try:
        yield found
    finally:
        controller.stop()


def write_recipients(folder: Path, url: str, more: str = "") -> Path:
    """Write a file of recipients with one webhook, ``chat``, that is told all; return its path."""
    (folder / "chat.secret").write_text(SECRET)
    path = folder / "recipients.yaml"
    path.write_text(f'webhooks:\n  chat: {{url: "{url}", secret_file: chat.secret}}\n{more}')
    return path
