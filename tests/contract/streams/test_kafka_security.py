"""A client gets in with the right login or certificate, on brokers it can check, and not otherwise."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.kafka.broker import find_kind
from infra.kafka.programs import INSTALL
from tests.brokers.reading import numbered, publish, read
from tests.brokers.secured import KEY_PASSWORD, PASSWORD, USER, Authority, SecuredKafka

from gpuledger.kernel.errors import GpuledgerError, Refused, Unavailable
from gpuledger.settings import Settings
from gpuledger.streams.kafka import KafkaBroker, Security
from gpuledger.streams.limits import Timeouts
from gpuledger.streams.opening import open_broker
from gpuledger.streams.topics import Topic

IMPATIENT = Timeouts(connect_s=4, request_s=4, delivery_s=6)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    if find_kind() != "apache":
        pytest.fail(f"this test configures the broker and needs Apache Kafka: {INSTALL}")
    node = SecuredKafka(tmp_path_factory.mktemp("secured") / "node")
    node.start()
    yield node
    node.remove()


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    return written(tmp_path / "password", PASSWORD + "\n")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def works(address: str, security: Security, topic: Topic) -> None:
    """Create a topic, publish and read."""
    broker = KafkaBroker(address, timeouts=IMPATIENT, security=security)
    assert list(broker.ensure_topics([topic])) == [topic]
    publish(broker, topic, numbered(10))
    assert [int(record.value) for record in read(broker, topic, 10)] == list(range(10))


def refusal(address: str, security: Security, kind: type[GpuledgerError]) -> GpuledgerError:
    with pytest.raises(kind) as raised:
        KafkaBroker(address, timeouts=IMPATIENT, security=security).ensure_topics(["gpu.telemetry"])
    told = f"{raised.value.message} {raised.value.hint}"
    assert PASSWORD not in told
    return raised.value


@pytest.mark.durable_broker
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login(secured: SecuredKafka, topic: Topic, password_file: Path, mechanism: str) -> None:
    works(secured.at("LOGIN"), Security("SASL_PLAINTEXT", mechanism, USER, password_file), topic)


@pytest.mark.durable_broker
def test_a_login_over_tls(secured: SecuredKafka, topic: Topic, password_file: Path) -> None:
    security = Security("SASL_SSL", "SCRAM-SHA-512", USER, password_file, ca_file=secured.authority.path)
    works(secured.at("LOGINTLS"), security, topic)


@pytest.mark.durable_broker
@pytest.mark.parametrize("key_password", [None, KEY_PASSWORD])
def test_certificates_on_both_sides(
    secured: SecuredKafka, topic: Topic, tmp_path: Path, key_password: str | None
) -> None:
    cert_file, key_file = secured.authority.issue("client", tmp_path, key_password)
    held = None if key_password is None else written(tmp_path / "key password", key_password)
    security = Security(
        "SSL", ca_file=secured.authority.path, cert_file=cert_file, key_file=key_file, key_password_file=held
    )
    works(secured.at("MUTUAL"), security, topic)


@pytest.mark.durable_broker
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_does_not_get_in_and_says_what_to_check(
    secured: SecuredKafka, tmp_path: Path, mechanism: str
) -> None:
    security = Security("SASL_PLAINTEXT", mechanism, USER, written(tmp_path / "password", "guessed"))
    error = refusal(secured.at("LOGIN"), security, GpuledgerError)
    assert "GPULEDGER_KAFKA_SASL_USERNAME" in error.hint
    assert "guessed" not in f"{error.message} {error.hint}"


@pytest.mark.durable_broker
def test_a_broker_that_another_authority_signed_is_not_talked_to(
    secured: SecuredKafka, tmp_path: Path, password_file: Path
) -> None:
    other = Authority.create(tmp_path / "other.pem")
    security = Security("SASL_SSL", "PLAIN", USER, password_file, ca_file=other.path)
    error = refusal(secured.at("LOGINTLS"), security, Unavailable)
    assert "certificate verify failed" in error.message
    assert "GPULEDGER_KAFKA_CA_FILE" in error.hint


@pytest.mark.durable_broker
def test_a_client_without_a_certificate_does_not_get_in(secured: SecuredKafka) -> None:
    security = Security("SSL", ca_file=secured.authority.path)
    refusal(secured.at("MUTUAL"), security, Unavailable)


@pytest.mark.durable_broker
def test_a_client_that_speaks_plainly_to_tls_hears_which_setting_to_check(secured: SecuredKafka) -> None:
    error = refusal(secured.at("LOGINTLS"), Security(), Unavailable)
    assert "GPULEDGER_KAFKA_SECURITY_PROTOCOL" in error.hint


@pytest.mark.durable_broker
def test_settings_reach_the_client(
    secured: SecuredKafka, topic: Topic, tmp_path: Path, password_file: Path
) -> None:
    settings = Settings(
        home=tmp_path,
        kafka_bootstrap=secured.at("LOGINTLS"),
        kafka_security_protocol="SASL_SSL",
        kafka_sasl_mechanism="SCRAM-SHA-256",
        kafka_sasl_username=USER,
        kafka_sasl_password_file=password_file,
        kafka_ca_file=secured.authority.path,
    )
    broker = open_broker(settings)
    broker.ensure_topics([topic])
    assert list(broker.partitions(topic)) == [0]
    assert PASSWORD not in repr(settings)


def test_without_any_setting_the_client_speaks_plainly() -> None:
    assert Security().arguments() == {"security_protocol": "PLAINTEXT"}


def test_a_login_is_passed_on_as_the_client_wants_it(password_file: Path) -> None:
    assert Security("SASL_PLAINTEXT", "SCRAM-SHA-256", USER, password_file).arguments() == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }


def test_tls_checks_the_certificate_and_the_name() -> None:
    context = Security("SSL").arguments()["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "SASL_PASSWORD_FILE: .* cannot be used"),
        ("", "holds no password"),
        ("\nx", "holds no password"),
    ],
)
def test_a_password_that_is_not_there(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "password"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=said):
        Security("SASL_PLAINTEXT", "PLAIN", USER, path).arguments()


def test_a_key_whose_password_is_wrong_or_missing_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "authority.pem")
    cert_file, key_file = authority.issue("client", tmp_path, KEY_PASSWORD)
    wrong = written(tmp_path / "wrong", "guessed")
    for held in (None, wrong):
        with pytest.raises(Refused, match="GPULEDGER_KAFKA_CERT_FILE"):
            Security("SSL", cert_file=cert_file, key_file=key_file, key_password_file=held).arguments()


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_an_authority_that_is_none(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "authority.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match="GPULEDGER_KAFKA_CA_FILE"):
        Security("SSL", ca_file=path).arguments()
