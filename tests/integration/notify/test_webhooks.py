"""Webhooks at a real server on this machine: signed, tried again, bounded, and led nowhere."""

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError
from tests.brokers.secured import Authority
from tests.integration.notify.receiving import SECRET, Receiver, receiver

from gpuledger.kernel.clock import SystemClock
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.payloads import Trial
from gpuledger.notify.recipients import Target, Webhook
from gpuledger.notify.sending import Message, Undelivered
from gpuledger.notify.webhooks import WebhookSender, signed

OTHER = "whsec_" + SECRET[10:] + SECRET[6:10]
NOTICE = Notice(Kind.TEST, ("x",), Trial(by="ada"))


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def target(url: str, *secrets: str, **more: object) -> Target:
    webhook = Webhook.model_validate({"url": url, "secret_file": Path("unused"), **more})
    return Target("webhook/chat", webhook, tuple(map(SecretStr, secrets or (SECRET,))))


def message() -> Message:
    """Return an attempt of now: receivers hold its time against their own clock."""
    now = SystemClock().now()
    return Message(NOTICE.id, NOTICE.body(now), now)


def sent(url: str, **more: object) -> None:
    WebhookSender()(target(url, **more), message())


def stands_for(*addresses: str) -> WebhookSender:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return WebhookSender(resolve=resolve)


def test_it_arrives_as_the_rules_say(there: Receiver) -> None:
    sent(there.url)
    (got,) = there.received
    assert (got.path, got.headers["Content-Type"]) == ("/hooks?who=test", "application/json")
    assert got.id == NOTICE.id
    assert Verifier(SECRET).verify(got.body, dict(got.headers)) == {
        "type": "test", "timestamp": got.json["timestamp"], "data": {"by": "ada"},
    }  # fmt: skip


def test_who_does_not_have_the_secret_cannot_have_sent_it(there: Receiver) -> None:
    sent(there.url)
    (got,) = there.received
    for secret, body, headers in (
        (OTHER, got.body, got.headers),
        (SECRET, got.body.replace(b"ada", b"eve"), got.headers),
        (SECRET, got.body, {**got.headers, "webhook-id": "ntc_other"}),
        (
            SECRET,
            got.body,
            {**got.headers, "webhook-timestamp": str(int(got.headers["webhook-timestamp"]) - 1)},
        ),
    ):
        with pytest.raises(WebhookVerificationError):
            Verifier(secret).verify(body, dict(headers))


def test_while_secrets_change_either_verifies() -> None:
    told = message()
    headers = signed(told, (SecretStr(SECRET), SecretStr(OTHER)))
    for secret in (SECRET, OTHER):
        assert Verifier(secret).verify(told.body, headers)


def test_an_attempt_of_tomorrow_is_signed_for_tomorrow() -> None:
    told = message()
    later = replace(told, at=told.at + dt.timedelta(days=1))
    with pytest.raises(WebhookVerificationError, match="too new"):
        Verifier(SECRET).verify(later.body, signed(later, (SecretStr(SECRET),)))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_receiver_that_stumbles_is_tried_again_at_once_with_the_same_id(
    there: Receiver, status: int
) -> None:
    there.answers = [status, status]
    sent(there.url)
    assert there.ids == [NOTICE.id] * 3
    assert len({got.body for got in there.received}) == 1


@pytest.mark.parametrize(("status", "tries"), [(500, 3), (404, 1), (401, 1)])
def test_one_that_does_not_recover_has_not_taken_it(there: Receiver, status: int, tries: int) -> None:
    there.answers = [status] * tries
    with pytest.raises(Undelivered, match=f"answers {status}") as failed:
        sent(there.url)
    assert (len(there.received), failed.value.is_final) == (tries, False)


def test_one_that_is_gone_is_not_tried_again(there: Receiver) -> None:
    there.answers = [410]
    with pytest.raises(Undelivered) as failed:
        sent(there.url)
    assert failed.value.is_final


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_nobody_is_led_elsewhere(there: Receiver, status: int) -> None:
    there.answers, there.headers = [status], {"Location": there.url + "&elsewhere"}
    with pytest.raises(Undelivered, match="led elsewhere"):
        sent(there.url)
    assert len(there.received) == 1


def test_a_receiver_that_does_not_answer_holds_nobody_up_for_long(there: Receiver) -> None:
    there.gate.clear()
    began = time.monotonic()
    with pytest.raises(Undelivered, match=r"no answer within 0\.5 s"):
        WebhookSender(total_s=0.5)(target(there.url), message())
    assert time.monotonic() - began < 5


def test_one_that_drips_its_answer_is_cut_off() -> None:
    """No single read times out, the whole does."""
    over = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(0.05):
                try:
                    connection.sendall(b"X-Drop: 1\r\n")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,), daemon=True)
        thread.start()
        with pytest.raises(Undelivered, match="no answer within 1 s"):
            WebhookSender(total_s=1)(target(f"http://127.0.0.1:{listening.getsockname()[1]}/"), message())
        over.set()
        thread.join(10)


def test_nobody_there_is_told_without_the_url() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Undelivered, match="cannot be reached: ConnectError") as failed:
        sent(f"http://127.0.0.1:{port}/very-secret")
    assert "very-secret" not in failed.value.message


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        (("169.254.169.254",), "no address of a receiver"),
        (("127.0.0.1",), "private"),
        (("93.184.215.14", "10.0.0.1"), "private"),
        (("::ffff:127.0.0.1",), "private"),
        ((), "no address"),
    ],
)
def test_a_name_that_leads_inside_is_not_followed(addresses: tuple[str, ...], told: str) -> None:
    with pytest.raises(Undelivered, match=told):
        stands_for(*addresses)(target("https://hooks.example.org/"), message())


def test_a_name_is_looked_up_once_and_connected_to_is_what_was_judged(there: Receiver) -> None:
    """Whoever answers for the name cannot say one thing to the judge and another to the connection."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = there.url.replace("127.0.0.1", "localhost")
    WebhookSender(resolve=resolve)(target(url), message())
    assert asked == ["localhost"]
    assert there.received[0].headers["Host"].startswith("localhost:")


def test_of_several_addresses_one_that_answers_does(there: Receiver) -> None:
    url = there.url.replace("127.0.0.1", "localhost")
    stands_for("::1", "127.0.0.1")(target(url), message())  # the receiver listens on the second alone
    assert there.ids == [NOTICE.id]


def test_a_name_that_nobody_knows_is_told() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(Undelivered, match="its name is not known: Name or service"):
        WebhookSender(resolve=resolve)(target("https://hooks.example.org/"), message())


def test_a_certificate_counts_where_its_signer_is_trusted(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "authority.pem")
    chain = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chain.load_cert_chain(*authority.issue("receiver", tmp_path))
    with receiver(chain) as there:
        with pytest.raises(Undelivered, match="cannot be reached"):
            sent(there.url)
        assert there.received == []
        sent(there.url, ca_file=authority.path)
        with pytest.raises(Undelivered, match="cannot be reached"):  # it is issued for 127.0.0.1
            sent(there.url.replace("127.0.0.1", "localhost"), ca_file=authority.path)
        assert there.ids == [NOTICE.id]


def test_the_proxy_of_the_environment_is_not_asked(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    sent(there.url)
    assert there.ids == [NOTICE.id]


def test_it_is_run_from_a_thread_that_has_no_loop(there: Receiver) -> None:
    """The pipelines call it from threads of their own."""
    thread = threading.Thread(target=sent, args=(there.url,))
    thread.start()
    thread.join(30)
    assert there.ids == [NOTICE.id]
