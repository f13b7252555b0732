"""How long requests waited, and what of charged time was not used, as frozen values; null is unknown."""

from decimal import Decimal

import msgspec

from gpuledger.client.answers import Answer


class WaitsRow(Answer, frozen=True, kw_only=True):
    """Requests of one key, and how long they waited; a quantile is null where it is not known yet."""

    key: str
    request_count: int
    started_count: int
    at_once_count: int
    waiting_count: int
    withdrawn_count: int
    p50_s: int | None
    p90_s: int | None
    p99_s: int | None
    longest_s: int


class Waits(Answer, frozen=True, kw_only=True):
    """Waits of the days that a window touches."""

    rows: tuple[WaitsRow, ...]
    by: str
    cluster: str | None
    account: str | None
    class_: str | None = msgspec.field(name="class")
    from_: str | None = msgspec.field(name="from")
    to: str | None
    timezone: str
    as_of: str


class WasteRow(Answer, frozen=True, kw_only=True):
    """Charged time of one key, and what became of it; ``key`` is a person's token where rows are of people."""

    key: str
    cluster: str | None
    account: str | None
    allocated_gpu_ms: int
    sampled_gpu_ms: int
    used_gpu_ms: int
    idle_gpu_ms: int
    squatted_gpu_ms: int
    low_gpu_ms: int
    squatting_run_count: int
    budget_gpu_ms: int | None
    coverage: Decimal | None
    idle_of_sampled: Decimal | None
    squatted_of_budget: Decimal | None


class Waste(Answer, frozen=True, kw_only=True):
    """Waste of a period."""

    rows: tuple[WasteRow, ...]
    by: str
    cluster: str | None
    account: str | None
    period: str | None
    periods: tuple[str, ...]
    from_: str | None = msgspec.field(name="from")
    to: str | None
    timezone: str
    as_of: str
