"""What the API answers, as types: the keys are those that the command line prints with ``--json``.

Amounts are integers in gpu_ms; decimal strings in GPU-hours stand beside them. Ratios are decimal strings
between 0 and 1. Null means unknown, never zero.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

AsOf = Field(description="The instant up to which the answer has seen the book.")
GpuHours = Field(description="The row's amounts in GPU-hours, under their names without the unit.")


class Answer(BaseModel):
    """Anything answered; names may be added later."""

    model_config = ConfigDict(extra="allow")


class Problem(Answer):
    """An error (RFC 9457)."""

    type: str = Field(description="A path of this API that opens a page about the error.")
    title: str
    status: int
    detail: str
    hint: str = Field(description="What to do next.")
    instance: str
    errors: list[dict[str, str]] = Field(default=[], description="JSON pointers to what is wrong.")


class Balance(Answer):
    """What an account was granted, what it bought and what is left, on one cluster in one period."""

    account: str
    cluster: str
    period: str
    granted_gpu_ms: int
    transferred_gpu_ms: int
    charged_gpu_ms: int
    held_gpu_ms: int
    credited_gpu_ms: int
    expired_gpu_ms: int
    available_gpu_ms: int
    unallocated_gpu_ms: int
    binding_account: str = Field(description="The account whose room `available_gpu_ms` is.")
    own_available_gpu_ms: int = Field(description="What is left of the account's own GPU-time.")
    rolled_over_gpu_ms: int = Field(
        description="The part of what was granted that the period before left; below zero for a debt."
    )


class Balances(Answer):
    """Balances of accounts."""

    balances: list[Balance]
    as_of: str = AsOf


class OneBalance(Balance):
    """One account's balance."""

    as_of: str = AsOf


class WorkloadStory(Answer):
    """What happened to a workload, and while it waits, why."""

    workload: str
    cluster: str
    at: str
    account: str
    state: str = Field(description="not eligible, waits, runs or over")
    gpus_milli: int
    events: list[dict[str, Any]] = Field(description="What happened, in order, each with its sentence.")
    cost: dict[str, Any] = Field(description="What is booked for it, and what it used since.")
    decision: dict[str, Any] | None = Field(
        description="What the cycle in force decided; null where none did."
    )
    ahead: dict[str, Any] | None = Field(description="What would let it start; null unless asked for.")
    unpaid: str | None = Field(
        description="Why its hard account cannot pay for it now, so that it would run unallocated; else null."
    )
    lines: list[str] = Field(description="All of it in plain words, as `gpuledger why` and `gjob` print it.")
    as_of: str = AsOf


class Movement(Answer):
    """A posting that changed what an account has left."""

    seq: int = Field(description="The row of the book that caused it.")
    recorded_at: str
    type: str
    code: str = Field(description="The movement, such as `charge` or `expiry`.")
    account: str
    period: str
    effective_on: str
    workload: str | None = Field(description="Null for who may not read of work.")
    run: str | None = Field(description="Likewise.")
    gpu_ms: int = Field(description="What it adds to the account's balance; below zero it takes.")
    gpu_ms_weighted: int = Field(description="The same in gpu_ms x weight in per mille.")
    gpu_hours: str
    reverses_seq: int | None
    reason: str | None


class LimitMoved(Answer):
    """A row that changed what the accounts below an inner one may spend together."""

    seq: int = Field(description="The row of the book.")
    recorded_at: str
    type: str
    account: str = Field(description="The inner account whose limit it is.")
    period: str
    gpu_ms: int = Field(description="What it adds to the limit; below zero it takes.")
    gpu_hours: str


class Movements(Answer):
    """What moved an account's budget between two recorded times."""

    account: str
    cluster: str
    movements: list[Movement]
    limits: list[LimitMoved] = Field(
        description="Changes of limits of the account and of those above it, as far as the caller reaches."
    )
    total_gpu_ms: int = Field(description="Of all pages.")
    total_gpu_hours: str
    next: int | None = Field(description="`after` of the next page; null on the last.")
    as_of: str = AsOf


class PeriodRow(Answer):
    """Where a budget period of a cluster stands."""

    cluster: str
    period: str
    state: str = Field(description="open, closing, closed, or unopened: movements, and no installed GPUs.")
    version: int = Field(description="Closes that were begun.")
    opened_seq: int | None
    opened_at: str | None
    installed_gpu_ms: int | None
    granted_gpu_ms: int
    granted_gpu_hours: str


class Periods(Answer):
    """Budget periods."""

    periods: list[PeriodRow]
    as_of: str = AsOf


class StartOrder(Answer):
    """A workload that is to start."""

    workload: str
    hosts: dict[str, int] = Field(description="Host: milli-GPU; empty where the scheduler is to choose.")
    reason: str


class RunOrder(Answer):
    """A run, and what is said of it."""

    workload: str
    run: str
    reason: str


class LeaveOrder(RunOrder):
    """A run that has to leave."""

    leave_by: str = Field(description="When its GPUs are expected back; later cycles do not put it off.")
    ends: bool = Field(description="Whether it cannot go on later: then it ends, instead of waiting again.")


class StayOrder(RunOrder):
    """A run that stays all the same; `reason` says why."""


class Directives(Answer):
    """What the newest cycle orders; orders of earlier ones that it does not repeat are void."""

    cluster: str
    cursor: int | None = Field(description="Ask with it again: nothing comes until there is a newer cycle.")
    cycle: str | None = Field(description="Null when there is none, or none after the cursor.")
    decided_at: str | None = Field(description="The instant that the cycle decided for.")
    stale: bool | None = Field(
        description="Whether the cycle is too old to order anything; null without one."
    )
    starts: list[StartOrder] = Field(description="What to start, in this order; nothing that runs already.")
    preemptions: list[LeaveOrder] = Field(description="What has to leave; nothing that is protected by now.")
    protected: list[StayOrder] = Field(
        description="What the cycle told to leave and that may not be stopped at this moment."
    )
    as_of: str = AsOf


class UsageRow(Answer):
    """GPU-time of one key, both classes."""

    key: str
    gpu_ms: int
    gpu_hours: str
    used_gpu_ms: int | None = Field(description="The part that samples saw working; null without any.")
    coverage: str | None = Field(description="Sampled part of the assigned time.")


class Usage(Answer):
    """Physical GPU-time used."""

    rows: list[UsageRow]
    total_gpu_ms: int
    provisional_gpu_ms: int = Field(description="Open runs up to now, beside the total.")
    estimated_gpu_ms: int = Field(description="The part of runs whose end is estimated.")
    as_of: str = AsOf


class ImpactReadings(Answer):
    """Delivered against owed; ``window`` is the headline."""

    window: str | None
    hourly: str | None
    raw: str | None


class Utilisation(Answer):
    """How much of the sampled time was worked, on a named rung."""

    value: str | None
    rung: str
    coverage: str | None


class LayersRow(Answer):
    """The four layers of one key, and the sums they were made of."""

    key: str
    installed_gpu_ms: int | None
    availability: str | None
    occupancy: str | None
    occupancy_with_overhead: str | None
    impact: ImpactReadings
    utilisation: Utilisation
    residual_gpu_ms: int | None
    reason: str | None = Field(description="Why something is null.")
    reasons: dict[str, str] = Field(description="Layer -> why it has no value.")
    healthy_gpu_ms: int | None
    unhealthy_occupied_gpu_ms: int | None = Field(description="Unhealthy while a run held it.")
    usable_gpu_ms: int | None = Field(description="Healthy, and unhealthy while a run held it.")
    occupied_gpu_ms: int
    occupied_with_inventory_gpu_ms: int | None = Field(description="What occupancy counts.")
    allocated_gpu_ms: int
    unallocated_gpu_ms: int
    owed_gpu_ms: int | None
    delivered_gpu_ms: int | None
    window_met_gpu_ms: int | None
    sampled_gpu_ms: int
    used_gpu_ms: int
    gpu_hours: dict[str, str | None] = GpuHours


class Layers(Answer):
    """The four layers over a window."""

    rows: list[LayersRow]
    by: str
    cluster: str | None
    from_: str | None = Field(alias="from")
    to: str | None
    timezone: str = Field(description="The zone in which days are cut.")
    targets: dict[str, str | None] = Field(
        description="Layer -> what is hoped for of it, as policy data say by the answer's instant; null without one."
    )
    reading: str = Field(description="as_known: restated as facts arrive.")
    as_of: str = AsOf


class BudgetForecast(Answer):
    """What an account will have been delivered, net of credits, by the end of the period."""

    gpu_ms: int | None
    low_gpu_ms: int | None = Field(description="Where the band begins.")
    high_gpu_ms: int | None = Field(description="Where the band ends.")
    band_percent: int = Field(description="How many of a hundred futures the band holds.")
    overrun: Literal["none", "possible", "expected"] | None = Field(
        description="`expected`: more is delivered than is funded; `possible`: where the band ends; null: not known."
    )
    history_days: int
    as_of: str | None
    reason: str | None = Field(description="Why there is no forecast.")


class BudgetRow(Answer):
    """Budget against actual of one account, and the variance by cause."""

    account: str
    cluster: str
    period: str
    budget_gpu_ms: int
    transferred_gpu_ms: int
    charged_gpu_ms: int
    held_gpu_ms: int
    credited_gpu_ms: int
    expired_gpu_ms: int
    available_gpu_ms: int
    unallocated_gpu_ms: int
    entitlement_gpu_ms: int | None
    demand_gpu_ms: int | None
    owed_gpu_ms: int | None
    delivered_gpu_ms: int | None
    variance_transfer_gpu_ms: int | None
    variance_expiry_gpu_ms: int | None
    variance_capacity_gpu_ms: int | None
    variance_demand_gpu_ms: int | None
    variance_scheduler_gpu_ms: int | None
    variance_credit_gpu_ms: int | None
    reason: str | None = Field(description="Why something is null.")
    forecast: BudgetForecast
    gpu_hours: dict[str, str | None] = GpuHours


class BudgetVersusActual(Answer):
    """Budget against actual of a period."""

    rows: list[BudgetRow]
    cluster: str | None
    period: str | None = Field(description="The period asked for, else the newest there is.")
    periods: list[str] = Field(description="The periods there are, oldest first.")
    from_: str | None = Field(alias="from")
    to: str | None
    timezone: str
    reading: str
    as_of: str = AsOf


class ClusterStatus(Answer):
    """A cluster and what of it can be asked for."""

    cluster: str
    rows: int = Field(description="Journal rows of its book.")
    last_recorded_at: str
    rolled_up_from: str | None
    rolled_up_to: str | None
    periods: list[str]
    reason: str | None = Field(description="Why nothing is rolled up.")


class Clusters(Answer):
    """All clusters."""

    clusters: list[ClusterStatus]
    as_of: str = AsOf


class BookStatus(Answer):
    """Where a book's chain stands."""

    book: str
    rows: int
    head: str = Field(description="SHA-256 of the newest row, hexadecimal.")
    last_recorded_at: str


class Books(Answer):
    """All books, and what waits for a person."""

    books: list[BookStatus]
    dead_letters: int
    as_of: str = AsOf


class Health(Answer):
    """The process answers."""

    status: str
    version: str


class Readiness(Answer):
    """The database answers too."""

    status: str
    revision: str
