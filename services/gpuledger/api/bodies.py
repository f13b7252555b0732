"""Bodies of requests, as types: what is not known in one is a mistake, and is refused."""

import datetime as dt
from typing import Annotated

from fastapi import Header, Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from gpuledger.api.parameters import PRINTABLE
from gpuledger.kernel.amounts import GPU_MS_MAX
from gpuledger.ledger.commands import KEY_LENGTH_MAX


def _in_utc(at: dt.datetime) -> dt.datetime:
    """Return an instant in UTC; at the ends of the calendar another zone's day has none."""
    try:
        return at.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError(f"{at.isoformat()} lies outside the years that can be counted") from error


Name = Annotated[str, Field(min_length=1, max_length=1000, pattern=PRINTABLE)]
GpuMs = Annotated[
    int, Field(gt=0, le=GPU_MS_MAX, description="Milli-GPU x seconds; 3600000 is one GPU-hour.")
]
Reason = Annotated[str, Field(min_length=1, max_length=1000, description="Why; kept with the order.")]
UtcInstant = Annotated[AwareDatetime, AfterValidator(_in_utc)]

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        description="An order repeated under its key is booked once; with another body it is refused.",
        min_length=1,
        max_length=KEY_LENGTH_MAX,
    ),
]
DryRun = Annotated[
    bool, Query(description="Check the order against the book as it stands, and book nothing.")
]


class Body(BaseModel):
    """What is sent; nothing is guessed from a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)
