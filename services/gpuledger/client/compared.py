"""What a comparison of two budgets printed, as a proposal carries it."""

from decimal import Decimal
from typing import Any

import msgspec

from gpuledger.kernel.amounts import from_gpu_hours
from gpuledger.kernel.errors import Refused

_MILLI = Decimal("0.001")


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A figure under the first budget and under the second."""

    a: Decimal | None
    b: Decimal | None


class _Account(msgspec.Struct, frozen=True, kw_only=True):
    account: str
    gpu_hours: _Pair
    wait_p90_s: _Pair


class _Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of the document that ``gpuledger simulate compare --json`` prints."""

    scenario: str
    seed: int
    days: int
    accounts: list[_Account]


def read(document: bytes) -> dict[str, Any]:
    """Return what a simulation says, under the keys of a proposal's ``simulation``.

    Raises:
        Refused: When it is no such document.
    """
    try:
        found = msgspec.json.decode(document, type=_Comparison)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(
            f"this is not what a comparison of two budgets prints: {error}",
            hint="gpuledger simulate compare SCENARIO A B --json > compared.json",
        ) from error
    return {
        "scenario": found.scenario.rpartition("/")[2].removesuffix(".yaml"),
        "seed": found.seed,
        "days": found.days,
        "accounts": [
            {
                "account": row.account,
                "before_gpu_ms": _gpu_ms(row.gpu_hours.a),
                "after_gpu_ms": _gpu_ms(row.gpu_hours.b),
                "before_wait_p90_s": _seconds(row.wait_p90_s.a),
                "after_wait_p90_s": _seconds(row.wait_p90_s.b),
            }
            for row in found.accounts
        ],
    }


def _gpu_ms(gpu_hours: Decimal | None) -> int:
    return from_gpu_hours((gpu_hours or Decimal(0)).quantize(_MILLI))


def _seconds(wait: Decimal | None) -> int | None:
    return None if wait is None else round(wait)
