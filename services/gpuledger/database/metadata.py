"""What every table shares: names of constraints and the column type of instants."""

import datetime as dt
from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)


class Instant(sa.types.TypeDecorator[dt.datetime]):
    """An aware UTC instant (``timestamptz``); naive values are refused on the way in and out."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Any) -> dt.datetime | None:  # noqa: ARG002, ANN401
        """Refuse a naive instant, turn any other zone into UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"instant {value} has no zone")
        return value.astimezone(dt.UTC)

    def process_result_value(self, value: dt.datetime | None, dialect: Any) -> dt.datetime | None:  # noqa: ARG002, ANN401
        """Return the stored instant in UTC."""
        return None if value is None else value.astimezone(dt.UTC)
