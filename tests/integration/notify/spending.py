"""Budgets as a roll-up leaves them, written by hand, and who tells of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from gpuledger.database.engine import make_engine
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.notify.recipients import Mail, Recipients, Target, Webhook
from gpuledger.notify.running import Notifier
from gpuledger.notify.sending import Message, Send, Undelivered

PERIOD = "2026-12"
AMOUNTS = (
    "budget", "transferred", "charged", "held", "credited", "expired", "available", "unallocated",
)  # fmt: skip

UPSERT = f"""
    INSERT INTO warehouse.budget_vs_actual (cluster, period, account, {", ".join(f"{n}_gpu_ms" for n in AMOUNTS)})
    VALUES (:cluster, :period, :account, {", ".join(f":{n}" for n in AMOUNTS)})
    ON CONFLICT (cluster, period, account) DO UPDATE
    SET {", ".join(f"{n}_gpu_ms = excluded.{n}_gpu_ms" for n in AMOUNTS)}
"""
FORECAST = """
    INSERT INTO warehouse.forecast
    VALUES (:cluster, :period, :account, 0, :forecast, :low, :high, 40, 10, '2026-12-03T00:00:00Z', NULL)
    ON CONFLICT (cluster, period, account) DO UPDATE
    SET forecast_gpu_ms = excluded.forecast_gpu_ms, low_gpu_ms = excluded.low_gpu_ms, high_gpu_ms = excluded.high_gpu_ms
"""


def roll_up(
    engine: sa.Engine,
    account: str,
    charged: int,
    *,
    budget: int = 100,
    period: str = PERIOD,
    cluster: str = "alpha",
    **amounts: int,
) -> None:
    """Put an account's row of budget versus actual in the place of the one before."""
    values = dict.fromkeys(AMOUNTS, 0) | {"budget": budget, "charged": charged} | amounts
    with engine.begin() as connection:
        connection.execute(
            sa.text(UPSERT), {"cluster": cluster, "period": period, "account": account, **values}
        )


def foresee(engine: sa.Engine, account: str, forecast: int, *, period: str = PERIOD) -> None:
    """Put an account's forecast in the place of the one before."""
    values = {"cluster": "alpha", "period": period, "account": account}
    with engine.begin() as connection:
        connection.execute(
            sa.text(FORECAST), {**values, "forecast": forecast, "low": forecast - 5, "high": forecast + 5}
        )


@dataclass
class Inbox:
    """A sender that keeps what it is given, or refuses it.

    Args:
        faults: What the sends to come are answered; those after them are taken.
        got: What was taken: target and notice.
        tried: What came, taken or not.
        before: Called with each message before it is taken.
    """

    faults: list[Undelivered | Exception] = field(default_factory=list)
    got: list[tuple[str, str]] = field(default_factory=list)
    tried: list[Message] = field(default_factory=list)
    before: Callable[[Message], None] = lambda message: None

    def __call__(self, target: Target, message: Message) -> None:
        self.tried.append(message)
        self.before(message)
        if self.faults:
            raise self.faults.pop(0)
        self.got.append((target.name, message.id))


def webhook(name: str, **told: object) -> Target:
    unused = {"url": "https://hooks.example.org/", "secret_file": Path("unused")}
    return Target(f"webhook/{name}", Webhook.model_validate({**unused, **told}))


def mail(name: str, **told: object) -> Target:
    address = "lead@example.org"
    return Target(f"mail/{name}/1", Mail.model_validate({"to": [address], **told}), address=address)


def notifier(
    url: str, clock: FixedClock, inbox: Send, *targets: Target, thresholds: Sequence[int] = (50, 80, 100)
) -> Notifier:
    """Return who tells the targets, ``webhook/all`` unless given."""
    senders: Mapping[str, Send] = {"webhook": inbox, "mail": inbox}
    recipients = Recipients(targets or (webhook("all"),), tuple(thresholds))
    return Notifier(make_engine(url), recipients, senders, clock, Calendar())
