"""Slurm as it is, made for tests."""

from collections.abc import Mapping, Sequence

from gpuledger.enforce.names import Named
from gpuledger.enforce.slurm_seen import Association, Job, Node, Quality, Seen, Usage

NAMED = Named({"a": "org/a", "b": "org/b"}, ())


def account(
    name: str, share: str = "1", gpu_minutes: str = "", qos: Sequence[str] = ("normal",)
) -> Association:
    return Association(name, "", share, frozenset(qos), gpu_minutes)


def user(name: str, of: str, *qos: str) -> Association:
    return Association(of, name, "1", frozenset(qos), "")


def job(
    name: str, priority: int, *, state: str = "PENDING", of: str = "a", submitted_s: int | None = 1000
) -> Job:
    return Job(name, name.partition("_")[0], state, priority, of, submitted_s)


def seen(
    *associations: Association,
    qos: Sequence[Quality] = (),
    usage: Mapping[str, Usage] | None = None,
    jobs: Sequence[Job] = (),
    nodes: Sequence[Node] = (),
    safe: bool = True,
) -> Seen:
    return Seen("west", safe, associations, {one.name: one for one in qos}, usage or {}, jobs, nodes)
