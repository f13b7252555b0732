"""What changes something through the API, each described once.

It may be repeated without harm, so that it is sent again when its answer was lost: events are known by their identity,
an admission stands until it is used, an order has a key.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gpuledger.client import outcomes
from gpuledger.client.asking import Ask, post


class Order(NamedTuple):
    """An order about GPU-time: whose, how much, where, when, and why.

    Args:
        gpu_ms: Milli-GPU x seconds, above zero.
        period: Budget period, such as ``2026-12``.
    """

    account: str
    gpu_ms: int
    cluster: str
    period: str
    reason: str


def post_events(events: Iterable[bytes]) -> Ask[outcomes.TakenEvents]:
    """Send CloudEvents in structured JSON, each as its bytes without line ends; at most 10,000.

    Raises:
        Refused: When one cannot be read; then none was taken.
        Forbidden: When one speaks of what the token does not reach.
    """
    lines = {"Content-Type": "application/x-ndjson"}
    return Ask(outcomes.TakenEvents, "POST", "/v1/events", content=b"\n".join(events), headers=lines)


def admit(cluster: str, workload: str) -> Ask[outcomes.Admitted]:
    """Ask in which class the next attempt of a workload may start; sets aside what protects it.

    Raises:
        NotFound: When the workload was not submitted.
        Refused: When it runs already or is over.
    """
    return post(outcomes.Admitted, "/v1/admissions", {"cluster": cluster, "workload": workload})


def grant(order: Order, *, key: str | None = None, dry_run: bool = False) -> Ask[outcomes.Ordered]:
    """Give GPU-time to an account.

    Args:
        order: How much to whom, and why.
        key: What a repetition is known by; random unless given.
        dry_run: Only check it.

    Raises:
        Forbidden: When the account does not lie below the token's own.
        Refused: When the book as it stands cannot take it.
    """
    return post(outcomes.Ordered, "/v1/budget/grants", order._asdict(), key=key, dry_run=dry_run)


def transfer(
    order: Order, to: str, *, key: str | None = None, dry_run: bool = False
) -> Ask[outcomes.Ordered]:
    """Move GPU-time from the order's account to another; see ``grant``."""
    body = {**order._asdict(), "to": to}
    return post(outcomes.Ordered, "/v1/budget/transfers", body, key=key, dry_run=dry_run)
