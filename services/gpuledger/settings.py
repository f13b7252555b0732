"""Settings: from ``GPULEDGER_*`` variables, validated once, passed as a frozen value."""

from functools import lru_cache
from pathlib import Path

import platformdirs
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused


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
