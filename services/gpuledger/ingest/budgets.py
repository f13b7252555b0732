"""``gpuledger budget apply``: the difference between a budget file and the ledger, as commands.

Applying a file twice changes nothing; shares and inventory take effect at a given moment and their
earlier versions are kept for ever.
"""

from collections.abc import Iterable, Iterator

from gpuledger.database.engine import Reader
from gpuledger.events import budget, host
from gpuledger.events.registry import Fact
from gpuledger.ingest import inventory
from gpuledger.ingest.budget_file import BudgetFile, Cluster
from gpuledger.ingest.changes import Change
from gpuledger.kernel.accounts import lineage, parent
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import periods, queries
from gpuledger.ledger.lots import expiry_day
from gpuledger.ledger.org_orders import ZONE_HINT

SOURCE = "gpuledger/budget-file"


def plan(reader: Reader, file: BudgetFile, at_s: int, by: str, default: Calendar) -> list[Change]:
    """Return the commands that turn the ledger into what the file says, shown first.

    Args:
        reader: A snapshot.
        file: What is wanted.
        at_s: When shares and inventory take effect.
        by: Who applies it.
        default: The calendar before the organisation has set one.

    Raises:
        Refused: When the file takes back a grant, lets one expire within a day of the organisation, or moves
            the organisation's zone after facts were booked.
    """
    organisation = list(_organisation(reader, file, by, default))
    zone = file.organisation.timezone if file.organisation else queries.calendar(reader, default).timezone
    _check_expiries(file, Calendar(zone))
    return [
        *organisation,
        *_accounts(reader, file, at_s, by),
        *(
            change
            for name, cluster in file.clusters.items()
            for change in _hosts(reader, name, cluster, at_s)
        ),
        *_grants(reader, file, by),
    ]


def divided_before(
    reader: Reader, file: BudgetFile, changes: Iterable[Change], at_s: int, default: Calendar
) -> list[str]:
    """Return a sentence for each cluster whose month will be divided by other shares than a plan sets within it.

    Args:
        reader: A snapshot.
        file: What is wanted.
        changes: The plan.
        at_s: When its shares take effect.
        default: The calendar before the organisation has set one.
    """
    calendar = (
        Calendar(file.organisation.timezone) if file.organisation else queries.calendar(reader, default)
    )
    period = calendar.period_of(calendar.day_of(at_s))
    start_s, _ = calendar.period_bounds_s(period)
    facts = [fact for change in changes for fact in change.facts]
    if start_s == at_s or not any(isinstance(fact, budget.ShareSet) for fact in facts):
        return []
    clusters = {*queries.clusters(reader), *file.clusters}
    return [
        f"{cluster}: {period} is not open yet, and what opens is divided by the shares of {iso(instant(start_s))},"
        f" not by those set here from {iso(instant(at_s))} on; --from {calendar.day_of(start_s)} divides it by these"
        for cluster in sorted(clusters)
        if not periods.is_opened(reader, cluster, period)
    ]


def _organisation(reader: Reader, file: BudgetFile, by: str, default: Calendar) -> Iterator[Change]:
    if file.organisation is None:
        return
    present = queries.calendar(reader, default).timezone
    wanted = file.organisation.timezone
    if wanted == present:
        return
    if queries.clusters(reader):
        raise Refused(
            f"organisation.timezone: {wanted} differs from {present}, and facts are booked already",
            hint=ZONE_HINT,
        )
    fact = budget.PolicyChanged(policy="organisation", timezone=wanted, period="month", by=by)
    yield Change(f"~ organisation.timezone  {present} -> {wanted}", (fact,))


def _accounts(reader: Reader, file: BudgetFile, at_s: int, by: str) -> Iterator[Change]:
    known, shares = set(queries.account_paths(reader)), queries.shares_at(reader, instant(at_s))
    hard = queries.hard_accounts(reader, instant(at_s))
    for path in sorted({node for name in file.accounts for node in lineage(name)} - known):
        created = budget.AccountCreated(account=path, by=by, reason=budget.Word.BUDGET_FILE)
        yield Change(f"+ account  {path}", (created,))
    for path, account in sorted(file.accounts.items()):
        before = shares.get(path)
        if before != account.share:
            shown = f"~ share    {path}  {'1 (default)' if before is None else before} -> {account.share}"
            share_set = budget.ShareSet(
                account=path, share=account.share, reason=budget.Word.BUDGET_FILE, by=by
            )
            yield Change(shown, (share_set,))
        overdraft = "hard" if path in hard else "soft"
        if account.overdraft is not None and overdraft != account.overdraft:
            set_ = budget.OverdraftSet(account=path, overdraft=account.overdraft, reason="budget-file", by=by)
            yield Change(f"~ overdraft {path}  {overdraft} -> {account.overdraft}", (set_,))


def _hosts(reader: Reader, name: str, cluster: Cluster, at_s: int) -> Iterator[Change]:
    wanted = inventory.even_hosts(name, cluster.gpus, cluster.model, cluster.gpus_per_host)
    present = inventory.present(reader, name, at_s)
    facts: list[Fact] = [
        host.Registered(cluster=name, host=host_name, gpus=installed.gpus, gpu_model=installed.model)
        for host_name, installed in sorted(wanted.items())
        if host_name not in present
        or present[host_name][:2] != installed[:2]  # of partial use it says nothing
    ]
    facts += [
        host.Retired(cluster=name, host=host_name, gpus=gone.gpus, gpu_model=gone.model, reason="budget-file")
        for host_name, gone in sorted(present.items())
        if host_name not in wanted
    ]
    if facts:
        before = sum(installed.gpus for installed in present.values())
        shown = (
            f"~ cluster  {name}  {before} -> {cluster.gpus} GPUs of {cluster.model} on {len(wanted)} hosts"
        )
        yield Change(shown, tuple(facts))


def _check_expiries(file: BudgetFile, calendar: Calendar) -> None:
    for path, account in file.accounts.items():
        for n, grant in enumerate(account.grants):
            try:
                if grant.expires is not None:
                    expiry_day(grant.expires, calendar)
            except Refused as error:
                raise Refused(f"accounts.{path}.grants[{n}].{error.message}", hint=error.hint) from error


def _grants(reader: Reader, file: BudgetFile, by: str) -> Iterator[Change]:
    granted, taken_back = queries.granted(reader), queries.taken_back(reader)
    known = {*queries.account_paths(reader), *(node for name in file.accounts for node in lineage(name))}
    inner = {parent(node) for node in known}
    for path, account in sorted(file.accounts.items()):
        for grant in account.grants:
            key = path, grant.cluster, grant.period, path in inner
            before = granted.get(key, 0)
            more = grant.gpu_ms - before
            if more + max(0, taken_back.get(key, 0)) < 0:
                raise Refused(
                    f"accounts.{path}: the grant on {grant.cluster} for {grant.period} would shrink to"
                    f" {grant.gpu_hours} GPU-hours",
                    hint="leave the number as it is: gpuledger budget adjust --code grant takes some of it back",
                )
            if more > 0:
                fact = budget.Granted(
                    account=path, cluster=grant.cluster, period=grant.period, gpu_ms=more,
                    reason=budget.Word.BUDGET_FILE, by=by, priority=grant.priority, expires_at=grant.expires,
                    rollover=grant.rollover, limit=path in inner,
                )  # fmt: skip
                what = "limit" if path in inner else "grant"
                shown = f"+ {what}    {path}  {grant.cluster} {grant.period}  {grant.gpu_hours} GPU-hours"
                if before:
                    shown += f" in all, {gpu_hours(more)} more"
                yield Change(shown, (fact,))


__all__ = ["Change", "plan"]
