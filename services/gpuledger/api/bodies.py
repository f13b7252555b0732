"""Bodies of requests, as types: what is not known in one is a mistake, and is refused."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gpuledger.api.parameters import PRINTABLE

Name = Annotated[str, Field(min_length=1, max_length=1000, pattern=PRINTABLE)]


class Body(BaseModel):
    """What is sent; nothing is guessed from a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)
