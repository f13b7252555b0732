"""Settings: from ``GPULEDGER_*`` variables, validated once, passed as a frozen value."""

from functools import lru_cache
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused

_SCHEMES = frozenset(("postgres", "postgresql", "postgresql+psycopg"))


def _variable(*name: str) -> str:
    """Return the variable that sets a field."""
    return "_".join(("GPULEDGER", *name)).upper()


_PROTOCOL = _variable("kafka_security_protocol")


class Settings(BaseSettings):
    """Where things are. The defaults need no configuration at all."""

    model_config = SettingsConfigDict(env_prefix="GPULEDGER_", frozen=True, extra="ignore")

    home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("gpuledger")),
        description="The data folder; deleting it resets everything.",
    )
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL of your PostgreSQL; unset means the embedded one."
    )
    kafka_bootstrap: str | None = Field(
        default=None, description="host:port[,host:port] of your Kafka; unset means file streams."
    )
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="How your Kafka is spoken to: with TLS, with a login, or both."
    )
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="How the login is proven."
    )
    kafka_sasl_username: str | None = Field(default=None, description="Who logs in to your Kafka.")
    kafka_sasl_password_file: Path | None = Field(
        default=None, description="A file whose first line is the password of that login."
    )
    kafka_ca_file: Path | None = Field(
        default=None, description="PEM certificates that sign the brokers'; unset means those of the system."
    )
    kafka_cert_file: Path | None = Field(
        default=None, description="The PEM certificate of this client, where brokers ask for one."
    )
    kafka_key_file: Path | None = Field(default=None, description="The PEM key of that certificate.")
    kafka_key_password_file: Path | None = Field(
        default=None, description="A file whose first line is the password of that key, if it has one."
    )
    api_url: str = Field(
        default="http://127.0.0.1:8080", description="Where the dashboards find the ledger API."
    )
    api_access: Literal["open", "token"] = Field(
        default="open",
        description="Who may ask the ledger API: anyone on its machine, who may read and change nothing,"
        " or who shows a token.",
    )
    api_token_file: Path | None = Field(
        default=None,
        description="A file whose first line is the token that the dashboards show the API for everybody who"
        " opens them; unset, each signs in with their own where one is needed.",
    )
    demo_people: Path | None = Field(
        default=None,
        description="A file of people with their tokens, as whom anybody who opens the dashboards may look at them: the"
        " demo writes one, and a ledger of your own has none.",
    )
    api_rate: int = Field(
        default=1000,
        ge=0,
        le=1_000_000,
        description="How many requests a second the API answers each token, and each address that shows none; 0 for"
        " any number.",
    )
    api_burst: int = Field(
        default=2000, ge=1, le=1_000_000, description="How many it answers at once after a pause."
    )
    api_tls_cert_file: Path | None = Field(
        default=None, description="The PEM certificate, with its chain, by which the API speaks https."
    )
    api_tls_key_file: Path | None = Field(default=None, description="The PEM key of that certificate.")
    api_tls_key_password_file: Path | None = Field(
        default=None, description="A file whose first line is the password of that key, if it has one."
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="The OpenID Connect provider whose identity tokens open the API, as it writes its issuer.",
    )
    oidc_audience: str | None = Field(
        default=None, description="What its tokens must be meant for: the client id of this ledger."
    )
    oidc_groups: Path | None = Field(
        default=None, description="A YAML file: what its groups mean here, a role and a scope each."
    )
    approval: Literal["another", "anyone"] = Field(
        default="another",
        description="Who may approve a proposal, of those who may change its accounts: another person than proposed"
        " it, or anyone of them.",
    )
    timezone: str = Field(default="UTC", description="The organisation's IANA time zone.")
    closes: Path | None = Field(
        default=None, description="The folder of sealed closes; unset means closes in the data folder."
    )
    close_grace_hours: int = Field(
        default=24,
        ge=0,
        le=24 * 31,
        description="How long after a period's end a close waits for sources that have not told all of it.",
    )
    data_docs: Path | None = Field(
        default=None,
        description="The folder of what gates found, results and pages; unset means data-docs in the data folder.",
    )
    data_docs_kept: int = Field(
        default=30, ge=1, le=10_000, description="How many results of each table and cluster are kept there."
    )
    data_docs_url: str | None = Field(
        default=None, description="Where a web server shows the folder of the pages, if one does."
    )

    notifications: Path | None = Field(
        default=None, description="A YAML file: who is told what; unset, nobody is told anything."
    )
    smtp_host: str | None = Field(default=None, description="The server that mail is handed to.")
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Its port.")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="How it is spoken to; none is for a relay on this machine."
    )
    smtp_from: str | None = Field(default=None, description="The address that mail is from.")
    smtp_username: str | None = Field(default=None, description="Who logs in to it.")
    smtp_password_file: Path | None = Field(
        default=None, description="A file whose first line is the password of that login."
    )
    smtp_ca_file: Path | None = Field(
        default=None, description="PEM certificates that sign the server's; unset means those of the system."
    )
    archive: Path | None = Field(
        default=None,
        description="The folder of the archive of usage and telemetry; unset means archive in the data folder.",
    )
    spark_master: str = Field(
        default="local[*]",
        description="Where gpuledger archive rollup --engine spark computes: this machine, or spark://HOST:PORT.",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _present(cls, value: object) -> object:
        """Refuse an empty variable: a substitution that failed must not fall back to a default, or to this folder."""
        if value == "":
            raise ValueError("is empty; unset it for the default")
        return value

    @field_validator("database_url")
    @classmethod
    def _postgresql(cls, url: str | None) -> str | None:
        """Take the forms in which people write a PostgreSQL address; refuse any other database."""
        if url is None:
            return None
        scheme, separator, rest = url.partition("://")
        if not separator or scheme not in _SCHEMES:
            raise ValueError(f"must begin with postgresql+psycopg://, not {scheme!r}")
        try:
            urlsplit(url).port  # noqa: B018 - reading it is the check
        except ValueError as error:
            raise ValueError(f"is no address: {error}") from error
        return f"postgresql+psycopg://{rest}"

    @model_validator(mode="after")
    def _secured(self) -> Self:
        """Refuse half a login or certificate, and one that the protocol would never show: both hide a mistake."""
        login = {
            "kafka_sasl_mechanism": self.kafka_sasl_mechanism,
            "kafka_sasl_username": self.kafka_sasl_username,
            "kafka_sasl_password_file": self.kafka_sasl_password_file,
        }
        chain = {"kafka_cert_file": self.kafka_cert_file, "kafka_key_file": self.kafka_key_file}
        tls = chain | {
            "kafka_ca_file": self.kafka_ca_file,
            "kafka_key_password_file": self.kafka_key_password_file,
        }
        protocol = self.kafka_security_protocol
        idle = {} if protocol.startswith("SASL_") else login
        idle |= {} if protocol.endswith("SSL") else tls
        for name, value in idle.items():
            if value is not None:
                raise ValueError(
                    f"{_variable(name)} has no effect with {protocol}: set {_PROTOCOL} or unset it"
                )
        for name, value in (login if protocol.startswith("SASL_") else {}).items():
            if value is None:
                raise ValueError(f"{_variable(name)} is needed with {protocol}")
        if len({value is None for value in chain.values()}) > 1:
            raise ValueError(f"{' and '.join(map(_variable, chain))} come together")
        if protocol != "PLAINTEXT" and self.kafka_bootstrap is None:
            raise ValueError(f"{_PROTOCOL} has no effect without {_variable('kafka_bootstrap')}")
        return self

    @property
    def closes_folder(self) -> Path:
        """Where the files of closes lie."""
        return self.home / "closes" if self.closes is None else self.closes

    @property
    def data_docs_folder(self) -> Path:
        """Where results of gates and their pages lie."""
        return self.home / "data-docs" if self.data_docs is None else self.data_docs

    @property
    def archive_folder(self) -> Path:
        """Where the archive of usage and telemetry lies."""
        return self.home / "archive" if self.archive is None else self.archive

    @property
    def sacct_folder(self) -> Path:
        """Where answers of ``sacct`` are kept while they are compared with the ledger."""
        return self.home / "reconcile" / "slurm"

    @model_validator(mode="after")
    def _certified(self) -> Self:
        """Refuse half a certificate: the API would speak to everybody in the clear."""
        whole = {"api_tls_cert_file": self.api_tls_cert_file, "api_tls_key_file": self.api_tls_key_file}
        if len({value is None for value in whole.values()}) > 1:
            raise ValueError(f"{' and '.join(map(_variable, whole))} come together")
        if self.api_tls_key_password_file is not None and self.api_tls_key_file is None:
            key = _variable("api_tls_key_file")
            raise ValueError(f"{_variable('api_tls_key_password_file')} has no effect without {key}")
        return self

    @model_validator(mode="after")
    def _provided(self) -> Self:
        """Refuse half an identity provider, and one over an address that anybody could answer at."""
        whole = {
            "oidc_issuer": self.oidc_issuer,
            "oidc_audience": self.oidc_audience,
            "oidc_groups": self.oidc_groups,
        }
        if len({value is None for value in whole.values()}) > 1:
            raise ValueError(f"{', '.join(map(_variable, whole))} come together")
        address = urlsplit(self.oidc_issuer or "https://nobody")
        if address.scheme != "https" and address.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError(f"{_variable('oidc_issuer')} must begin with https://")
        return self

    @model_validator(mode="after")
    def _mailed(self) -> Self:
        """Refuse mail without a sender, half a login, and a password that anybody on the way could read."""
        given = {
            name: getattr(self, name)
            for name in ("smtp_from", "smtp_username", "smtp_password_file", "smtp_ca_file")
        }
        if self.smtp_host is None:
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"{_variable(name)} has no effect without {_variable('smtp_host')}")
        elif self.smtp_from is None:
            raise ValueError(f"{_variable('smtp_from')} is needed with {_variable('smtp_host')}")
        if (self.smtp_username is None) != (self.smtp_password_file is None):
            raise ValueError(
                f"{_variable('smtp_username')} and {_variable('smtp_password_file')} come together"
            )
        if self.smtp_security == "none" and (self.smtp_username or self.smtp_ca_file):
            raise ValueError(f"{_variable('smtp_security')} is none: a login and certificates need TLS")
        return self

    @property
    def calendar(self) -> Calendar:
        """The organisation's days and periods."""
        return Calendar(self.timezone)


@lru_cache(maxsize=1)
def load() -> Settings:
    """Read the settings from the environment.

    Raises:
        Refused: When a variable does not have the form it must have.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"{_variable(*map(str, e['loc']))}: {e['msg']}" if e["loc"] else e["msg"] for e in error.errors()
        )
        raise Refused(f"settings are not valid: {faults}", hint="mend or unset the variable") from error
    settings.calendar  # noqa: B018 - an unknown zone must fail at start, not at the first report
    return settings
