"""From hosts, drains and incidents to their page: what is unwell, when it will be empty, what was given back. Pure."""

from collections.abc import Mapping, Sequence

from gpuledger.client.records import DrainRow, HostRow, Hosts, Incident
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import hours, instant

HEALTHY = "healthy"
SHOWN_MAX = 200
"""Hosts that the page shows, the worst of those that were asked for; the download has all of these."""

_ORDER = ("unhealthy", "maintenance", "draining", "reserved", HEALTHY)


def worst_first(found: Sequence[HostRow]) -> list[HostRow]:
    """Return hosts, those in the most trouble first, then by name."""
    places = {state: place for place, state in enumerate(_ORDER)}
    return sorted(found, key=lambda one: (places.get(one.state, 0), one.cluster, one.host))


def headline(found: Sequence[HostRow], drains: Sequence[DrainRow]) -> str:
    """Return the fleet in one sentence."""
    gpus, usable = sum(one.gpus for one in found), sum(one.usable_gpus for one in found)
    unwell = sum(one.state not in (HEALTHY, "reserved") for one in found)
    said = f"{usable:,} of {gpus:,} GPUs on {len(found):,} hosts may be used"
    if unwell:
        said += f"; {unwell:,} hosts are not well" if unwell > 1 else "; one host is not well"
    if drains:
        said += (
            f", {len(drains):,} of them being emptied" if unwell else f"; {len(drains):,} are being emptied"
        )
    return f"{said}."


def table(found: Sequence[HostRow]) -> list[dict[str, str]]:
    """Return hosts as rows of a table, the worst first."""
    return [
        {
            "Host": one.host,
            "Cluster": one.cluster,
            "State": one.state,
            "Usable GPUs": f"{one.usable_gpus} of {one.gpus}",
            "Model": one.gpu_model,
            "Since": instant(one.since),
            "Why": one.reason or "",
        }
        for one in worst_first(found)[:SHOWN_MAX]
    ]


def left_out(found: Hosts) -> str | None:
    """Return what the page does not show, in a sentence; None when it shows every host."""
    if found.next is not None:
        return (
            f"These are figures of the first {len(found.hosts):,} hosts by name; GET /v1/hosts has the others."
            f" The table shows the worst {min(SHOWN_MAX, len(found.hosts)):,}."
        )
    if len(found.hosts) > SHOWN_MAX:
        return f"The worst {SHOWN_MAX:,} of {len(found.hosts):,} hosts; the download has all of them."
    return None


def leaving(drains: Sequence[DrainRow]) -> list[dict[str, str]]:
    """Return hosts that are being emptied, with when each will be empty and who is still there."""
    return [
        {
            "Host": one.host,
            "Cluster": one.cluster,
            "Empty by": f"{instant(one.empty_by)} ({one.certainty})",
            "Who is there": "; ".join(
                f"{run.workload} of {run.account}, protected until {instant(run.protected_until)}"
                for run in one.runs
            )
            or "nobody",
        }
        for one in sorted(drains, key=lambda one: (one.empty_by, one.cluster, one.host))
    ]


def failures(incidents: Sequence[Incident]) -> list[dict[str, str]]:
    """Return failures of hardware, the newest first, with what was given back."""
    newest = sorted(incidents, key=lambda one: (one.noticed_at, one.incident), reverse=True)
    return [
        {
            "Noticed": instant(one.noticed_at),
            "Host": one.host,
            "Cluster": one.cluster,
            "Fault": one.fault,
            "Runs that it ended": str(len(one.runs)),
            "Given back, GPU-h": hours(one.credited_gpu_ms),
        }
        for one in newest
    ]


def csv_rows(found: Sequence[HostRow]) -> list[Mapping[str, object]]:
    """Return hosts as rows of a download."""
    return [
        {
            "cluster": one.cluster, "host": one.host, "state": one.state, "gpus": one.gpus,
            "usable_gpus": one.usable_gpus, "gpu_model": one.gpu_model, "since": one.since, "reason": one.reason,
            "partial_use": one.partial_use,
        }
        for one in worst_first(found)
    ]  # fmt: skip


def no_hosts(cluster: str) -> empty.Why:
    """Return why a cluster has no hosts."""
    return empty.Why(
        f"No host of {cluster} is in the inventory.",
        "Name its hosts in an inventory file, or let a collector tell of them.",
        "gpuledger inventory apply inventory.yaml",
    )
