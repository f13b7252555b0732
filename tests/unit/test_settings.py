"""Settings come from GPULEDGER_ variables, are checked once, and default to needing none."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from gpuledger import settings
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings

WHO = "me:secret"  # apart from the address, so that no tracked file holds a password in one

Load = Callable[..., Settings]

PASSWORD = "hunter2"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Reads the settings from an environment that holds the given variables only."""

    def once(**variables: str) -> Settings:
        for name in Settings.model_fields:
            monkeypatch.delenv(f"GPULEDGER_{name.upper()}", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(f"GPULEDGER_{name}", value)
        settings.load.cache_clear()
        return settings.load()

    yield once
    settings.load.cache_clear()


def test_without_any_variable_everything_is_embedded(load: Load) -> None:
    found = load()
    assert found.database_url is None
    assert found.kafka_bootstrap is None
    assert found.calendar.timezone == "UTC"
    assert found.home.name == "gpuledger"
    assert found.home.is_absolute()


def test_variables_are_read(load: Load) -> None:
    found = load(HOME="/data/ledger", KAFKA_BOOTSTRAP="a:1,b:2", TIMEZONE="Europe/Berlin", NOT_A_SETTING="x")
    assert found.home == Path("/data/ledger")
    assert found.kafka_bootstrap == "a:1,b:2"
    assert found.calendar.timezone == "Europe/Berlin"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_database_address_is_taken_as_people_write_it(load: Load, scheme: str) -> None:
    found = load(DATABASE_URL=f"{scheme}://{WHO}@host:5432/db?sslmode=require")
    assert found.database_url == f"postgresql+psycopg://{WHO}@host:5432/db?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/db",
        "mysql://host/db",
        "sqlite:///file",
        "postgresql+psycopg2://host/db",
        "postgres://h:x/db",
    ],
)
def test_any_other_database_is_refused_without_its_secrets(load: Load, url: str) -> None:
    with pytest.raises(Refused, match="GPULEDGER_DATABASE_URL: ") as refused:
        load(DATABASE_URL=url)
    assert refused.value.hint


def test_a_password_is_not_repeated(load: Load) -> None:
    with pytest.raises(Refused) as refused:
        load(DATABASE_URL=f"mysql://me:{PASSWORD}@host/db")
    assert PASSWORD not in refused.value.message


def test_an_unknown_zone_fails_at_start(load: Load) -> None:
    with pytest.raises(Refused, match="'Mars/Olympus' is not known"):
        load(TIMEZONE="Mars/Olympus")


def test_they_are_read_once_and_frozen(load: Load) -> None:
    found = load(TIMEZONE="Europe/Berlin")
    assert settings.load() is found
    with pytest.raises(ValidationError, match="frozen"):
        found.timezone = "UTC"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["HOME", "DATABASE_URL", "KAFKA_BOOTSTRAP", "API_URL", "TIMEZONE"])
def test_an_empty_variable_is_refused_rather_than_taken_for_a_default(load: Load, name: str) -> None:
    with pytest.raises(Refused, match=f"GPULEDGER_{name}: .*is empty"):
        load(**{name: ""})


LOGIN = {
    "KAFKA_BOOTSTRAP": "kafka:9092",
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
    "KAFKA_SASL_USERNAME": "ada",
    "KAFKA_SASL_PASSWORD_FILE": "/run/secrets/kafka",
}


def test_a_login_to_kafka_is_read_whole(load: Load) -> None:
    found = load(**LOGIN, KAFKA_CA_FILE="/etc/ssl/kafka.pem")
    assert (found.kafka_security_protocol, found.kafka_sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert found.kafka_sasl_password_file == Path("/run/secrets/kafka")
    assert found.kafka_ca_file == Path("/etc/ssl/kafka.pem")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "TLS"}, "GPULEDGER_KAFKA_SECURITY_PROTOCOL: "),
        ({"KAFKA_SASL_MECHANISM": "GSSAPI"}, "GPULEDGER_KAFKA_SASL_MECHANISM: "),
        ({"KAFKA_SASL_USERNAME": None}, "GPULEDGER_KAFKA_SASL_USERNAME is needed with SASL_SSL"),
        ({"KAFKA_SASL_PASSWORD_FILE": None}, "GPULEDGER_KAFKA_SASL_PASSWORD_FILE is needed with SASL_SSL"),
        ({"KAFKA_SECURITY_PROTOCOL": None}, "GPULEDGER_KAFKA_SASL_MECHANISM has no effect with PLAINTEXT"),
        (
            {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_CA_FILE": "x"},
            "KAFKA_CA_FILE has no effect with SASL_",
        ),
        ({"KAFKA_CERT_FILE": "x"}, "GPULEDGER_KAFKA_CERT_FILE and GPULEDGER_KAFKA_KEY_FILE come together"),
        ({"KAFKA_BOOTSTRAP": None}, "has no effect without GPULEDGER_KAFKA_BOOTSTRAP"),
    ],
)
def test_half_a_login_is_refused_and_names_its_variable(
    load: Load, change: dict[str, str | None], said: str
) -> None:
    """It would otherwise be found out by a broker that closes the connection without a word."""
    variables = {name: value for name, value in {**LOGIN, **change}.items() if value is not None}
    with pytest.raises(Refused, match=said):
        load(**variables)


PROVIDER = {"OIDC_ISSUER": "https://id.example", "OIDC_AUDIENCE": "gpuledger", "OIDC_GROUPS": "groups.yaml"}


def test_an_identity_provider_is_named_whole(load: Load) -> None:
    assert load(**PROVIDER).oidc_issuer == "https://id.example"
    assert load(**{**PROVIDER, "OIDC_ISSUER": "http://127.0.0.1:8000/realm"}).oidc_audience == "gpuledger"
    for missing in PROVIDER:
        with pytest.raises(Refused, match=r"GPULEDGER_OIDC_ISSUER, .* come together"):
            load(**{name: value for name, value in PROVIDER.items() if name != missing})
    for issuer in ("http://id.example", "id.example", "ftp://127.0.0.2"):
        with pytest.raises(Refused, match="OIDC_ISSUER must begin with https"):
            load(**{**PROVIDER, "OIDC_ISSUER": issuer})


MAIL = {"SMTP_HOST": "mail", "SMTP_FROM": "a@example.org"}


def test_mail_is_handed_over_with_tls_unless_told_otherwise(load: Load) -> None:
    found = load(**MAIL)
    assert (found.smtp_port, found.smtp_security, found.notifications) == (587, "starttls", None)
    assert load(**MAIL, SMTP_SECURITY="none", SMTP_PORT="25").smtp_port == 25


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"SMTP_HOST": "mail"}, "GPULEDGER_SMTP_FROM is needed with GPULEDGER_SMTP_HOST"),
        ({"SMTP_FROM": "a@example.org"}, "GPULEDGER_SMTP_FROM has no effect without GPULEDGER_SMTP_HOST"),
        ({**MAIL, "SMTP_USERNAME": "ada"}, "GPULEDGER_SMTP_PASSWORD_FILE come together"),
        ({**MAIL, "SMTP_PASSWORD_FILE": "x"}, "GPULEDGER_SMTP_USERNAME and"),
        (
            {**MAIL, "SMTP_USERNAME": "ada", "SMTP_PASSWORD_FILE": "x", "SMTP_SECURITY": "none"},
            "GPULEDGER_SMTP_SECURITY is none: a login and certificates need TLS",
        ),
        ({**MAIL, "SMTP_CA_FILE": "x", "SMTP_SECURITY": "none"}, "need TLS"),
        ({**MAIL, "SMTP_PORT": "0"}, "GPULEDGER_SMTP_PORT"),
    ],
)
def test_half_a_mail_server_is_refused_and_names_its_variable(
    load: Load, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        load(**variables)
