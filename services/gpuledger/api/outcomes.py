"""What the API answers to what was sent: who sent it, and what became of it."""

from pydantic import ConfigDict, Field

from gpuledger.api.answers import Answer


class WhoAmI(Answer):
    """Who the API takes the caller for."""

    name: str
    role: str
    rights: list[str]
    subtree: str | None = Field(description="An account and all below it; null for every account.")
    clusters: list[str] = Field(description="Empty for every cluster.")
    token: str | None = Field(description="The token's id; null where the API is open and none was sent.")


class TakenEvents(Answer):
    """What became of events."""

    events: int
    accepted: int = Field(description="How many were new.")
    repeated: int = Field(description="How many were known already.")


class Admitted(Answer):
    """The answer to "may this attempt start protected?"."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    cluster: str
    workload: str
    attempt: int
    klass: str = Field(alias="class")
    account: str
    gpus_milli: int
    hold_gpu_ms: int = Field(description="What is set aside.")
    protected_s: int
    expires_at: str | None = Field(description="A start after it finds no hold any more.")
    reason: str
    seq: int
    repeated: bool


class Ordered(Answer):
    """What became of an order."""

    applied: bool
    repeated: bool = Field(description="Whether it had been booked before under the same key.")
    seq: int | None = Field(description="Its row in the cluster's book; null for a dry run.")
    key: str
