"""What notices tell: the ``data`` of their payloads, one class for each kind. Pure."""

import msgspec


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload tells besides its type and time. Keys may be added to it, and keep their meaning."""


class BudgetThreshold(Data, frozen=True, kw_only=True):
    """An account has spent a part of what it was given for a period.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        account: The account; an inner one stands for all below it.
        threshold_percent: The part that was reached.
        spent_gpu_ms: Charged less credited, weighted.
        given_gpu_ms: Granted, rolled over and transferred into the period, weighted; what expired counts too.
    """

    cluster: str
    period: str
    account: str
    threshold_percent: int
    spent_gpu_ms: int
    given_gpu_ms: int


class BudgetOverrun(Data, frozen=True, kw_only=True):
    """A leaf account will, as the forecast has it, be delivered more by the end of a period than its budget funds.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        account: The leaf account.
        funds_gpu_ms: What may be spent by the end of the period, weighted.
        forecast_gpu_ms: Delivered by the end of the period, in the middle one of all futures.
        low_gpu_ms: Where the band begins.
        high_gpu_ms: Where the band ends.
        band_percent: How many of a hundred futures the band holds.
        as_of: Nothing that happened later was looked at.
    """

    cluster: str
    period: str
    account: str
    funds_gpu_ms: int
    forecast_gpu_ms: int
    low_gpu_ms: int
    high_gpu_ms: int
    band_percent: int
    as_of: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation that does not hold.

    Args:
        expectation: What was expected, in words.
        rows_count: How many rows fail; null where it is not about rows.
        rows: Some of them: column -> value.
    """

    expectation: str
    rows_count: int | None
    rows: list[dict[str, str]]


class CheckFailed(Data, frozen=True, kw_only=True):
    """Rows of a table of the warehouse are not as they must be; what is computed from them was not computed.

    Args:
        cluster: The cluster.
        table: The table, in schema ``warehouse``.
        from_day: The first day (UTC) that was restated.
        to_day: The day after the last one.
        findings: What does not hold, with rows.
        page: Where people read all that was tried; null where no web server shows it.
    """

    cluster: str
    table: str
    from_day: str
    to_day: str
    findings: list[Finding]
    page: str | None = None


class CloseSealed(Data, frozen=True, kw_only=True):
    """A budget period of a cluster was closed.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        version: 1 for the first close, one more after each reopening.
        digest: SHA-256 of the sealed file, hexadecimal.
        sealed_at: When its digest was recorded.
    """

    cluster: str
    period: str
    version: int
    digest: str
    sealed_at: str


class CloseReopened(Data, frozen=True, kw_only=True):
    """A closed period takes bookings again; the close that was sealed no longer holds.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        version: The version that no longer holds.
        reopened_at: When that was recorded.
    """

    cluster: str
    period: str
    version: int
    reopened_at: str


class CloseFailed(Data, frozen=True, kw_only=True):
    """The close of a period stopped, and sealed nothing.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-12.
        step: The step at which it stopped.
        message: Why.
        findings: What was found, a line each.
    """

    cluster: str
    period: str
    step: str
    message: str
    findings: list[str]


class AskedShare(msgspec.Struct, frozen=True, kw_only=True):
    """An account's weight among its siblings, as it would be.

    Args:
        account: The account.
        share: Its weight.
    """

    account: str
    share: int


class AskedTime(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-time that an account would get.

    Args:
        account: Who would get it.
        giver: Who would give it away; null where it would be granted anew.
        period: The budget period.
        gpu_ms: How much, weighted.
    """

    account: str
    giver: str | None
    period: str
    gpu_ms: int


class ProposalMade(Data, frozen=True, kw_only=True):
    """Somebody asks for other shares or for GPU-time, and an answer is wanted. Who and why stands in the proposal.

    Args:
        proposal: Its name, as ``gpuledger proposal show`` takes it.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        shares: The shares that it asks for.
        times: The GPU-time that it asks for.
        effective_at: From when on new shares would hold; null: from the approval on.
        decide_by: When an answer is due; null where nobody said.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    shares: list[AskedShare]
    times: list[AskedTime]
    effective_at: str | None
    decide_by: str | None


class ProposalDue(Data, frozen=True, kw_only=True):
    """An answer to a proposal is due within two days, and nobody has given one.

    Args:
        proposal: Its name.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        decide_by: When an answer is due.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    decide_by: str


class ProposalDecided(Data, frozen=True, kw_only=True):
    """A proposal was approved, rejected or withdrawn.

    Args:
        proposal: Its name.
        cluster: The cluster whose GPU-time it asks for; null of shares.
        accounts: Every account that it names.
        state: ``approved``, ``rejected`` or ``withdrawn``.
        decided_at: When.
    """

    proposal: str
    cluster: str | None
    accounts: list[str]
    state: str
    decided_at: str


class DigestWaits(msgspec.Struct, frozen=True, kw_only=True):
    """How long requests of a week waited; a quantile is null where it is not known yet.

    Args:
        request_count: Requests of the week.
        started_count: Those of them that started.
        p50_s: Half of them had started after so long, in seconds.
        p90_s: Nine in ten of them.
    """

    request_count: int
    started_count: int
    p50_s: int | None
    p90_s: int | None


class DigestRow(msgspec.Struct, frozen=True, kw_only=True):
    """The week of an account, all below it counted.

    Args:
        account: The account.
        given_gpu_ms: Granted, rolled over and transferred into the period so far, weighted.
        spent_gpu_ms: Of it charged less credited, weighted.
        owed_gpu_ms: What it was owed in the week; null where the inventory of an hour is not known.
        delivered_gpu_ms: What it was delivered in the week.
        idle_gpu_ms: Charged time of the week that was measured idle.
        squatted_gpu_ms: The part of it that was idle for long at a stretch.
    """

    account: str
    given_gpu_ms: int
    spent_gpu_ms: int
    owed_gpu_ms: int | None
    delivered_gpu_ms: int
    idle_gpu_ms: int
    squatted_gpu_ms: int


class WeeklyDigest(Data, frozen=True, kw_only=True):
    """What a week was like for an account and those right below it, or for the highest ones.

    Args:
        cluster: The cluster.
        account: The account; null for the whole organisation.
        week: The week as ISO 8601 numbers it, such as 2026-W49.
        from_day: Its Monday.
        to_day: The Monday after it.
        period: The budget period that its last day lies in.
        rows: The account itself first, where there is one.
        waits: How long requests waited; null where nobody asked for anything.
    """

    cluster: str
    account: str | None
    week: str
    from_day: str
    to_day: str
    period: str
    rows: list[DigestRow]
    waits: DigestWaits | None


class Trial(Data, frozen=True, kw_only=True):
    """Somebody tries whether notices arrive.

    Args:
        by: Who.
    """

    by: str
