"""Words that programs give as reasons, and what is left of a reason that somebody typed.

The journal is never changed, so that what it keeps must say nothing about anybody. Of a reason it keeps the words of
a closed set; the form of a word proves nothing (``ask-ada`` has that of ``node-fail``). All other words are put
aside, where they can be erased (docs/decisions/0013). Case, ``_`` and ``-`` do not matter: ``NODE_FAIL``, ``node-fail``
and ``NodeFail`` are one word.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from gpuledger.events.fields import KEPT, Kept

ASIDE = "(aside)"
"""Stands in the journal for words that were put aside."""

_GPULEDGER = """
    amount-too-large budget-file changed clean deleted drained fair-share finished inventory-file lost lost-end
    never-scheduled never-started not-configured offline over-budget policy reboot retired soft-landing spool-full
    trace-end unknown unreadable-row unseen-eviction vanished
"""
"""The ledger's own, and those of its sources where a record says nothing better."""

_SLURM_JOBS = """
    boot_fail cancelled canceled completed completing configuring deadline failed launch_failed node_fail out_of_memory
    pending preempted reconfig_fail requeued requeue_fed requeue_hold resizing resv_del_hold revoked running signaling
    special_exit stage_out stopped suspended timeout update_db
"""
"""States of jobs (slurm.schedmd.com/job_state_codes.html)."""

_SLURM_NODES = """
    allocated blocked cloud down drain drained draining dynamic_future dynamic_norm error external fail failing future
    idle invalid_reg maint maintenance mixed not_responding perfctrs planned power_down power_drain power_up
    powered_down powering_down powering_up reboot_canceled reboot_issued reboot_requested reserved resume undrain
    batch-job-complete-failure epilog-error kill-task-failed low-cpus low-memory low-realmemory low-tmpdisk
    node-unexpectedly-rebooted prolog-error reboot-asap reboot-timeout resumetimeout-reached
"""
"""States of nodes and their flags, and the reasons that slurmctld and slurmd set by themselves."""

_KUBERNETES = """
    BackoffLimitExceeded Completed ContainerCannotRun ContainerStatusUnknown CrashLoopBackOff DeadlineExceeded
    DeletionByDeviceTaintManager DeletionByPodGC DeletionByTaintManager ErrImagePull Error Evicted EvictionByEvictionAPI
    FailedIndexes ImagePullBackOff KubeletNotReady KubeletReady MaxFailedIndexesExceeded NodeAffinity NodeLost
    NodeNotReady NodeReady NodeShutdown NodeStatusNeverUpdated NodeStatusUnknown NotReady OOMKilled OutOfcpu OutOfmemory
    OutOfpods PodFailed PodFailurePolicy Preempting PreemptionByScheduler Shutdown StartError Succeeded SuccessPolicy
    Terminated TerminationByKubelet UnexpectedAdmissionError Unschedulable cordoned
    AdmissionCheck AdmissionCheckRejected ClusterQueueStopped Deactivated DeactivatedDueToAdmissionCheck
    DeactivatedDueToRequeuingLimitExceeded DeactivatedDueToMaximumExecutionTimeExceeded InactiveWorkload JobFinished
    LocalQueueStopped MaximumExecutionTimeExceeded NodeFailures OnHold OutOfSync OwnerNotFound PodsReadyTimeout
    RequeuingLimitExceeded WorkloadSliceReplaced InClusterQueue InCohortFairSharing InCohortReclamation
    InCohortReclaimWhileBorrowing
"""
"""Reasons of pods, containers, jobs and nodes (k8s.io/api), and of Kueue's Workloads."""

_TRACES = """
    done failure healthcheck_failed idle impossible_to_schedule interrupted killed manual no-budget node-drain
    node_unavailable pass scheduled sibling_task_failed sibling_task_preemption sibling_task_retry success
    system_preemption user_preemption waiting
"""
"""States and codes of traces, ClusterCockpit and Beaker."""

_KINDS = "train debug interactive inference"
"""Kinds of work (DESIGN section 6)."""

_HARDWARE = re.compile(r"xid[0-9]{1,4}(repeated)?|remap(failed|pending)|unhealthy|healthy")
_TOKEN = re.compile(r"[-_]*[^\W_][\w-]*")
_PLAIN = re.compile(r"[-_\s,;/+]*")
_EXIT = re.compile(r"-?[0-9]{1,10}([:.]-?[0-9]{1,10})?")


def words_of(reason: str) -> list[str]:
    """Return the words of a reason as they are compared: in lower case, without ``_`` and ``-``."""
    return [_bare(token) for token in _TOKEN.findall(reason)]


@lru_cache(4096)
def known_words(reason: str) -> str:
    """Return a reason as it is if it holds known words only; otherwise those, and ``(aside)`` in place of others."""
    tokens = _TOKEN.findall(reason)
    if reason == ASIDE or (
        all(map(_is_known, map(_bare, tokens))) and _PLAIN.fullmatch(_TOKEN.sub("", reason))
    ):
        return reason
    kept = [token if _is_known(_bare(token)) else ASIDE for token in tokens]
    return " ".join(word for n, word in enumerate(kept) if word != ASIDE or kept[n - 1 : n] != [ASIDE])


def code_of(reason: str) -> str:
    """Return what is known of a reason as a short code, in lower case; empty when nothing is."""
    return " ".join(known_words(reason).replace(ASIDE, "").lower().split())


def exit_code(said: str) -> str:
    """Return the code that a program ended with, such as ``1`` or ``0:15``; ``(aside)`` for anything else."""
    return said if _EXIT.fullmatch(said) else ASIDE


T = TypeVar("T", bound=msgspec.Struct)
_Keep = Callable[[Any], Any]


def apart(fact: T) -> tuple[T, dict[str, Any]]:
    """Return a fact without words that no program gives, and what stood there, by field."""
    keepers = _keepers(type(fact))
    if not keepers:  # as most, and every event is asked
        return fact, {}
    changed, said = {}, {}
    for name, keep in keepers.items():
        value = getattr(fact, name)
        if value is not None and (kept := keep(value)) != value:
            changed[name], said[name] = kept, value
    return (msgspec.structs.replace(fact, **changed), said) if changed else (fact, said)


def has_words(kind: type) -> bool:
    """Tell whether facts of a class may hold somebody's words."""
    return bool(_keepers(kind))


@cache
def _keepers(fact: type) -> dict[str, _Keep]:
    """Return what to do with each field of a class that may hold somebody's words."""
    told = inspect.type_info(fact)
    assert isinstance(told, inspect.StructType)  # noqa: S101 - facts are structs
    found = {field.name: _keeper(field.type) for field in told.fields}
    return {name: keep for name, keep in found.items() if keep is not None}


def _keeper(told: inspect.Type) -> _Keep | None:
    match told:
        case inspect.Metadata(extra=extra) if extra is not None:
            return _KEEPERS.get(extra.get(KEPT))
        case inspect.UnionType(types=types):
            return next((keep for one in types if (keep := _keeper(one)) is not None), None)
        case inspect.ListType(item_type=inspect.StructType(cls=item)) if _keepers(item):
            return lambda several: [apart(one)[0] for one in several]
    return None


def _bare(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _is_known(bare: str) -> bool:
    return bare in _WORDS or _HARDWARE.fullmatch(bare) is not None


_WORDS = frozenset(
    _bare(word)
    for words in (_GPULEDGER, _SLURM_JOBS, _SLURM_NODES, _KUBERNETES, _TRACES, _KINDS)
    for word in words.split()
)
_KEEPERS: Mapping[Any, _Keep] = {Kept.WORDS: known_words, Kept.EXIT: exit_code}
