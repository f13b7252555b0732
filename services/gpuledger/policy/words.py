"""Amounts and times as the answers write them: exact, and with their unit."""

from functools import lru_cache

from gpuledger.kernel.amounts import GPU_MILLI, gpu_hours
from gpuledger.kernel.clock import instant, iso
from gpuledger.policy.placement import Placement

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def moment(at_s: int) -> str:
    """Return an instant as ISO 8601 in UTC."""
    return iso(instant(at_s))


def gpus_text(gpus_milli: int) -> str:
    """Return GPUs for people: whole ones without decimals, others with three."""
    sign, amount = ("-", -gpus_milli) if gpus_milli < 0 else ("", gpus_milli)
    whole, milli = divmod(amount, GPU_MILLI)
    return f"{sign}{whole}.{milli:03d}" if milli else f"{sign}{whole}"


@lru_cache(maxsize=1024)
def gpus(gpus_milli: int) -> str:
    """Return GPUs with their unit: whole ones without decimals, others with three."""
    return f"{gpus_text(gpus_milli)} GPU" + ("" if gpus_milli == GPU_MILLI else "s")


def hosts_text(placement: Placement) -> str:
    """Return the host of a placement, or how many there are and which are the first and the last."""
    first, *others = sorted(placement)
    return f"{len(placement)} hosts ({first} to {others[-1]})" if others else f"host {first}"


def hours(gpu_ms: int) -> str:
    """Return an amount as GPU-hours, three decimals, thousands separated."""
    return f"{gpu_hours(gpu_ms):,} GPU-hours"


def duration(seconds: int) -> str:
    """Return a length of time with its two largest units, such as ``2 d 3 h``; rounded down."""
    sign, rest = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for length, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min"), (1, "s")):
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}")
    return sign + " ".join(parts[:2] or ["0 s"])
