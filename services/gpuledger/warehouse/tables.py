"""The warehouse's tables, column by column. All amounts are physical gpu_ms unless said otherwise.

Filled by the pipelines, read by the API; every row can be recomputed from the ledger. A column's comment says what
it is; its unit is the end of its name: ``gpu_ms`` (milli-GPU x seconds), ``_s`` (seconds), ``_count``, ``_at`` (UTC).
"""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger


def _cluster() -> sa.Column[str]:
    return Column("cluster", Text, primary_key=True, comment="the cluster, which is also the book")


def _account() -> sa.Column[str]:
    return Column("account", Text, primary_key=True, comment="path of the account that it counts under")


def _class() -> sa.Column[str]:
    return Column("class", Text, primary_key=True, key="klass", comment="allocated or unallocated")


def _bucket_at() -> "sa.Column[object]":
    return Column("bucket_at", Instant, primary_key=True, comment="start of 15 minutes, UTC")


def _hour_at() -> "sa.Column[object]":
    return Column("hour_at", Instant, primary_key=True, comment="start of the hour, UTC")


def _day() -> "sa.Column[object]":
    return Column("day", sa.Date, primary_key=True, comment="day of the organisation's zone")


def _amounts(meanings: dict[str, str], *, nullable: bool = False) -> list[sa.Column[int]]:
    """Return a column of gpu_ms for each name; its comment says what it is, and the unit."""
    return [
        Column(f"{name}_gpu_ms", BigInteger, nullable=nullable, comment=f"gpu_ms: {meaning}")
        for name, meaning in meanings.items()
    ]


def _usage(name: str, at: "sa.Column[object]", comment: str) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        _cluster(),
        at,
        _account(),
        _class(),
        Column("gpu_ms", BigInteger, nullable=False, comment="gpu_ms: what runs held"),
        *_amounts(
            {
                "sampled": "what of it has a sample of utilisation",
                "used": "sampled time x gpu_util",
            }
        ),
        schema="warehouse",
        comment=comment,
    )


usage_bucket = _usage(
    "usage_bucket",
    _bucket_at(),
    "occupied GPU-time by account and class; sampled and used by the gpu_util rung",
)
usage_hour = _usage("usage_hour", _hour_at(), "sums of four buckets")

owed_hour = sa.Table(
    "owed_hour",
    METADATA,
    _cluster(),
    _hour_at(),
    _account(),
    *_amounts(
        {"entitlement": "E = share in force x healthy capacity; null without inventory"}, nullable=True
    ),
    *_amounts({"demand": "D, funded work that ran or was eligible to run"}),
    *_amounts({"owed": "W = min(E, D); null without inventory"}, nullable=True),
    *_amounts({"delivered": "L, allocated time before credits"}),
    schema="warehouse",
    comment="entitlement E, demand D, owed W = min(E, D), delivered L; E and W are null without inventory",
)

watermark = sa.Table(
    "watermark",
    METADATA,
    _cluster(),
    Column("ledger_seq", BigInteger, nullable=False, comment="newest journal row when usage was last read"),
    Column("as_of_at", Instant, nullable=False, comment="open runs were counted up to here"),
    schema="warehouse",
    comment="how far the newest roll-up of each cluster has seen",
)


def _states() -> list[sa.Column[int]]:
    """Return the partition of installed GPU-time (law 9); what needs an inventory is null without it."""
    return [
        *_amounts({"installed": "I, the GPUs of the inventory"}, nullable=True),
        *_amounts(
            {
                "unhealthy": "unhealthy and empty",
                "maintenance": "in maintenance or draining, and empty",
                # Beside the partition: counted in allocated and unallocated there, and not available all the same.
                "unhealthy_occupied": "unhealthy while a run held it; in no sum of states",
            },
            nullable=True,
        ),
        *_amounts(
            {"allocated": "A, held by charged runs", "unallocated": "N, held by runs that are free of charge"}
        ),
        *_amounts(
            {
                "overhead": "O, in prolog, epilog or completing",
                "reserved": "kept empty by a reservation",
                "free": "installed, and in no other state",
                "lost": "seen, then silent, with no run on it",
                "unknown": "without evidence of a state",
                "residual": "installed less all states: 0",
            },
            nullable=True,
        ),
    ]


def _reason() -> sa.Column[str]:
    return Column("reason", Text, comment="why columns are null")


def _gpus(name: str, at: "sa.Column[object]", comment: str) -> sa.Table:
    return sa.Table(
        name, METADATA, _cluster(), at, *_states(), _reason(), schema="warehouse", comment=comment
    )


gpu_bucket = _gpus(
    "gpu_bucket", _bucket_at(), "what state every installed GPU was in; the states sum to installed"
)
gpu_hour = _gpus("gpu_hour", _hour_at(), "sums of four buckets; unknown where the inventory begins inside")


def _layers(name: str, at: "sa.Column[object]", comment: str) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        _cluster(),
        at,
        *_states(),
        *_amounts({"owed": "W, summed over accounts and hours"}, nullable=True),
        *_amounts({"delivered": "L, summed over accounts and hours"}),
        *_amounts({"hourly_met": "min(L, W) by account and hour, summed"}, nullable=True),
        *_amounts(
            {"sampled": "what runs held that has a sample of utilisation", "used": "sampled time x gpu_util"}
        ),
        _reason(),
        schema="warehouse",
        comment=comment,
    )


layer_metrics_hour = _layers("layer_metrics_hour", _hour_at(), "the sums that the four layers are ratios of")
layer_metrics_day = _layers(
    "layer_metrics_day",
    _day(),
    "the same by day; owed, delivered and met are those of the hours that begin in it",
)

budget_vs_actual = sa.Table(
    "budget_vs_actual",
    METADATA,
    _cluster(),
    Column("period", Text, primary_key=True, comment="the organisation's period, such as 2017-10"),
    _account(),
    # Weighted units, all of them: what a rate card makes of physical time, equal to it where there is none.
    *_amounts(
        {
            "budget": "granted and rolled over into the period, weighted",
            "transferred": "received less given away, weighted",
            "charged": "charges that the ledger has posted, weighted",
            "held": "set aside by admissions, weighted",
            "credited": "given back for hardware failures, weighted",
            "expired": "gone at the end of lots, weighted",
            "available": "budget + transferred + credited - expired - charged - held",
            "unallocated": "time free of charge, weighted",
        }
    ),
    *_amounts(
        {
            "entitlement": "sum of E over the period's hours, weighted; null without inventory",
            "demand": "sum of D, weighted",
            "owed": "sum of W, weighted; null without inventory",
            "delivered": "L, allocated time of the period's buckets net of credits, weighted",
        },
        nullable=True,
    ),
    # Budget less delivered is their sum. Null without inventory.
    *_amounts(
        {
            "variance_transfer": "transfers out less in",
            "variance_expiry": "what expired",
            "variance_capacity": "budget after both, less E",
            "variance_demand": "E less W",
            "variance_scheduler": "W less L before credits",
            "variance_credit": "L before credits less L",
        },
        nullable=True,
    ),
    schema="warehouse",
    comment="budget, what the account was owed and got, and why they differ; the causes sum to budget - delivered",
)


def _number(name: str, meaning: str, *, nullable: bool = False) -> sa.Column[int]:
    """Return a column of seconds or counts; the name ends in which."""
    return Column(name, BigInteger, nullable=nullable, comment=meaning)


queue_wait_day = sa.Table(
    "queue_wait_day",
    METADATA,
    _cluster(),
    Column(
        "day",
        sa.Date,
        primary_key=True,
        comment="day of the organisation's zone on which the request could first run",
    ),
    _account(),
    Column(
        "class",
        Text,
        primary_key=True,
        key="klass",
        comment="allocated or unallocated: of the run, or without one as it was asked for",
    ),
    Column("size", Text, primary_key=True, comment="GPUs asked for: <1, 1, 2, 3-4, 5-8 and so on"),
    Column(
        "turn",
        Text,
        primary_key=True,
        comment="first, or again: after a run of the workload had been stopped",
    ),
    _number("request_count", "requests that began to wait"),
    _number("started_count", "those that got their GPUs"),
    _number("at_once_count", "those of them that got them in the second in which they could first run"),
    _number("waiting_count", "those that waited still at as_of_at"),
    _number("withdrawn_count", "those that ended without GPUs"),
    _number("p50_s", "seconds within which half have started; null: not known yet", nullable=True),
    _number("p90_s", "seconds within which nine in ten have started; null: not known yet", nullable=True),
    _number("p99_s", "seconds within which 99 in 100 have started; null: not known yet", nullable=True),
    _number("longest_s", "seconds of the longest wait so far, over or not"),
    Column(
        "started_after_s",
        sa.ARRAY(BigInteger),
        nullable=False,
        comment="seconds, ascending: each wait that ended in a start; those of several rows are put together",
    ),
    Column(
        "unstarted_for_s",
        sa.ARRAY(BigInteger),
        nullable=False,
        comment="seconds, ascending: how long each other request was seen to wait",
    ),
    Column("as_of_at", Instant, nullable=False, comment="who waits still was counted up to here"),
    schema="warehouse",
    comment="how long requests waited; quantiles are estimates that count who has not started (Kaplan and Meier)",
)

waste_day = sa.Table(
    "waste_day",
    METADATA,
    _cluster(),
    _day(),
    _account(),
    Column("user_token", Text, primary_key=True, comment="the person, as the journal knows them"),
    *_amounts(
        {
            "allocated": "held by charged runs",
            "sampled": "what of it has a sample of utilisation; the rest is unknown",
            "used": "sampled time x gpu_util",
            "idle": "sampled time in which the run was used below 5 %",
            "squatted": "idle time of runs that were idle for more than 30 minutes at a stretch",
            "low": "sampled time in which the run was used from 5 % to below 15 %",
        }
    ),
    _number("squatting_run_count", "runs that squatted"),
    schema="warehouse",
    comment="charged time and what became of it, by account and person",
)

host_health_day = sa.Table(
    "host_health_day",
    METADATA,
    _cluster(),
    _day(),
    Column("host", Text, primary_key=True, comment="the machine, as the inventory names it"),
    Column("state", Text, nullable=False, comment="how it stood at last that day: the worst of its parts"),
    *_amounts(
        {
            "installed": "its GPUs; the conditions sum to it",
            "healthy": "in order, held by runs or not",
            "reserved": "in order and reserved, held by runs or not",
            "maintenance": "in maintenance or draining, held by runs or not",
            "unhealthy": "unhealthy, held by runs or not",
            "occupied": "what runs that name the host held; in no sum of conditions",
        }
    ),
    _number("failure_count", "times that more of its GPUs were unhealthy than before"),
    schema="warehouse",
    comment="in which condition the GPUs of each host were",
)

__all__ = [
    "budget_vs_actual",
    "gpu_bucket",
    "gpu_hour",
    "host_health_day",
    "layer_metrics_day",
    "layer_metrics_hour",
    "owed_hour",
    "queue_wait_day",
    "usage_bucket",
    "usage_hour",
    "waste_day",
    "watermark",
]
