"""What became of what was sent, and who sent it."""

import msgspec

from gpuledger.client.answers import Answer


class WhoAmI(Answer, frozen=True, kw_only=True):
    """Who the API takes the caller for; no clusters and no subtree mean all."""

    name: str
    role: str
    rights: tuple[str, ...]
    subtree: str | None
    clusters: tuple[str, ...]
    token: str | None


class TokenRow(Answer, frozen=True, kw_only=True):
    """Who may ask the API, and how far they reach; no clusters and no subtree mean all."""

    id: str
    name: str
    role: str
    subtree: str | None
    clusters: tuple[str, ...]
    created_at: str
    created_by: str
    expires_at: str
    replaces: str | None
    revoked_at: str | None
    revoked_by: str | None
    last_used_at: str | None
    good: bool


class Tokens(Answer, frozen=True, kw_only=True):
    """Tokens that there are or were, the oldest first."""

    tokens: tuple[TokenRow, ...]
    as_of: str


class TakenEvents(Answer, frozen=True, kw_only=True):
    """What became of events."""

    events: int
    accepted: int
    repeated: int


class Admitted(Answer, frozen=True, kw_only=True):
    """In which class an attempt may start, and what protects it."""

    cluster: str
    workload: str
    attempt: int
    klass: str = msgspec.field(name="class")
    account: str
    gpus_milli: int
    hold_gpu_ms: int
    protected_s: int
    expires_at: str | None
    reason: str
    seq: int
    repeated: bool


class Ordered(Answer, frozen=True, kw_only=True):
    """What became of an order about GPU-time."""

    applied: bool
    repeated: bool
    seq: int | None
    key: str
