"""Settings: from ``GPULEDGER_*`` variables, validated once, passed as a frozen value."""

from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused

_SCHEMES = frozenset(("postgres", "postgresql", "postgresql+psycopg"))


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
    api_url: str = Field(
        default="http://127.0.0.1:8080", description="Where the dashboards find the ledger API."
    )
    timezone: str = Field(default="UTC", description="The organisation's IANA time zone.")

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
            f"GPULEDGER_{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()
        )
        raise Refused(f"settings are not valid: {faults}", hint="mend or unset the variable") from error
    settings.calendar  # noqa: B018 - an unknown zone must fail at start, not at the first report
    return settings
