"""Slurm's settings: fair-share, limits and the QOS of unallocated work, out of a cycle. Pure.

Why each is set as it is, and what Slurm makes of it, stands in docs/enforcing.md.
"""

from collections.abc import Iterator

from gpuledger.enforce.config import Slurm, Unallocated
from gpuledger.enforce.facts import Facts
from gpuledger.enforce.names import Named
from gpuledger.enforce.plan import Applied, Command, Draft, Target, drafted
from gpuledger.enforce.slurm_jobs import departures, host_states, ordered
from gpuledger.enforce.slurm_seen import GPU_TRES, Quality, Seen, Usage
from gpuledger.kernel.amounts import GPU_MILLI

GPU_MINUTE_MS = 60 * GPU_MILLI
NO_LIMIT = "-1"
YES, NO = "yes", "no"
UNSAFE = "no limit is set: without `safe` in AccountingStorageEnforce Slurm would end running jobs at it"


def draft(facts: Facts, seen: Seen, named: Named, config: Slurm, applied: Applied) -> Draft:
    """Return everything that is wanted of a Slurm cluster.

    Args:
        facts: The cycle, and the ledger now.
        seen: The cluster now.
        named: Which Slurm account is which of ours.
        config: What may be changed.
        applied: Key -> what was set last; a limit that was set is taken back once its account is no longer hard.
    """
    parts = [Draft(notes=tuple(named.notes))]
    if config.unallocated is not None:
        parts.append(_quality(config.unallocated, seen, named))
    if config.shares:
        parts.append(Draft(tuple(_shares(facts, seen, named))))
    if config.budgets is not None:
        parts.append(_budgets(facts, seen, named, config.budgets.slack_gpu_minutes, applied))
    if config.hosts:
        parts.append(Draft(tuple(host_states(facts, seen))))
    if config.order is not None:
        parts.append(ordered(facts, seen, named, config.order))
    if config.preempt:
        parts.append(departures(facts, seen, named))
    return drafted(parts)


def _shares(facts: Facts, seen: Seen, named: Named) -> Iterator[Target]:
    issued = facts.issued()
    for account, path in named.paths.items():
        own = seen.account(account)
        if own is not None:
            weight = str(issued[path].weight)
            yield Target(
                object=f"account {account}",
                field="fairshare",
                now=own.share,
                wanted=weight,
                why=issued[path].why,
                action=_modify(seen, "account", f"name={account}", f"fairshare={weight}"),
            )


def _budgets(facts: Facts, seen: Seen, named: Named, slack_gpu_minutes: int, applied: Applied) -> Draft:
    hard = {account: path for account, path in named.paths.items() if path in facts.left_gpu_ms}
    if hard and not seen.limits_are_safe:
        return Draft(notes=(f"{', '.join(hard)}: {UNSAFE}",))
    targets = []
    for account, path in named.paths.items():
        own = seen.account(account)
        if own is None:
            continue
        target = Target(
            object=f"account {account}",
            field="GPU-minutes",
            now=own.gpu_minutes,
            wanted="",
            why=f"{path} is not hard any more",
            action=_modify(seen, "account", f"name={account}", f"GrpTRESMins={GPU_TRES}={NO_LIMIT}"),
        )
        if path in hard.values():
            targets.append(_limited(target, facts.left_gpu_ms[path], seen, account, slack_gpu_minutes))
        elif target.key in applied:
            targets.append(target)
    return Draft(tuple(targets))


def _limited(target: Target, left_gpu_ms: int, seen: Seen, account: str, slack_gpu_minutes: int) -> Target:
    """Return the limit that leaves what is left, beyond what Slurm counts as used and what running jobs may use."""
    usage = seen.usage.get(account, Usage(0, 0))
    left = max(left_gpu_ms, 0) // GPU_MINUTE_MS
    limit = usage.used_gpu_minutes + usage.running_gpu_minutes + left
    if target.now and 0 <= limit - int(target.now) <= slack_gpu_minutes:
        limit = int(target.now)
    return Target(
        object=target.object,
        field=target.field,
        now=target.now,
        wanted=str(limit),
        why=f"{left} GPU-minutes are left beyond what was used and what its running jobs may use",
        action=_modify(seen, "account", f"name={account}", f"GrpTRESMins={GPU_TRES}={limit}"),
    )


def _quality(wanted: Unallocated, seen: Seen, named: Named) -> Draft:
    own = seen.qos.get(wanted.qos)
    targets = [
        _free(wanted.qos, own),
        Target(
            object=f"qos {wanted.qos}",
            field="preempt mode",
            now=None if own is None else own.preempt_mode.lower(),
            wanted="requeue",
            why="work that nobody is charged for gives way and waits again",
            action=_modify_qos(wanted.qos, "PreemptMode=requeue"),
        ),
    ]
    notes = []
    for name in wanted.preempted_by:
        other = seen.qos.get(name)
        if other is None:
            notes.append(f"qos {name}: there is none, so nothing is preempted for it")
            continue
        targets.append(
            Target(
                object=f"qos {name}",
                field=f"may preempt {wanted.qos}",
                now=YES if wanted.qos in other.preempts else NO,
                wanted=YES,
                why="charged work may take GPUs from work that is free",
                action=_modify_qos(name, f"preempt+={wanted.qos}"),
            )
        )
    targets += _access(wanted.qos, seen, named)
    return Draft(tuple(targets), tuple(notes))


def _free(name: str, own: Quality | None) -> Target:
    """Return the target that makes the QOS free of charge; where it does not exist, it comes into being so."""
    return Target(
        object=f"qos {name}",
        field="usage factor",
        now=None if own is None else _plain(own.usage_factor),
        wanted="0",
        why="unallocated work is charged to nobody, in Slurm's book as in ours",
        action=Command(("sacctmgr", "-i", "add", "qos", name, "set", "UsageFactor=0", "PreemptMode=requeue"))
        if own is None
        else _modify_qos(name, "UsageFactor=0"),
    )


def _access(qos: str, seen: Seen, named: Named) -> Iterator[Target]:
    for one in seen.associations:
        if one.account not in named.paths:
            continue
        where = (f"name={one.user}", f"account={one.account}") if one.user else (f"name={one.account}",)
        yield Target(
            object=f"{'user ' + one.user + ' of ' if one.user else ''}account {one.account}",
            field=f"may use {qos}",
            now=YES if qos in one.qos else NO,
            wanted=YES,
            why="anybody may run unallocated",
            action=_modify(seen, "user" if one.user else "account", *where, f"qos+={qos}"),
        )


def _modify(seen: Seen, entity: str, *rest: str) -> Command:
    *where, what = rest
    return Command(
        ("sacctmgr", "-i", "modify", entity, "where", *where, f"cluster={seen.cluster}", "set", what)
    )


def _modify_qos(name: str, what: str) -> Command:
    return Command(("sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set", what))


def _plain(factor: str) -> str:
    """Return ``0.000000`` as ``0``: numbers are compared as Slurm would print them shortest."""
    return factor.rstrip("0").rstrip(".") if "." in factor else factor
