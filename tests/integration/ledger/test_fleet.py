"""The hosts of a cluster as its book has them."""

from tests.integration.ledger.books import Ledger, at, registered, told

from gpuledger.database.engine import reading
from gpuledger.events.host import Retired, StateChanged
from gpuledger.ledger.fleet import InstalledHost, installed_hosts

EIGHT, NINE, TEN = (at(f"2026-03-01T{hour}:00:00Z") for hour in ("08", "09", "10"))


def found(ledger: Ledger, at_s: int) -> dict[str, InstalledHost]:
    with reading(ledger.engine) as reader:
        return {one.host: one for one in installed_hosts(reader, "alpha", at_s)}


def test_a_host_is_as_well_as_its_worst_part(ledger: Ledger) -> None:
    named = {"cluster": "alpha", "gpus": 8, "gpu_model": "H100"}
    ledger.append(
        told(EIGHT, registered("whole", 8)),
        told(EIGHT, registered("parted", 8, partial_use=True)),
        told(NINE, StateChanged(host="whole", state="maintenance", reason="drained", **named)),  # type: ignore[arg-type]
        told(NINE, StateChanged(host="parted", state="unhealthy", gpu_uuids=["g1", "g2"], **named)),  # type: ignore[arg-type]
        told(TEN, Retired(host="whole", **named)),  # type: ignore[arg-type]
    )
    before = found(ledger, NINE - 1)
    assert {(one.state, one.usable_gpus) for one in before.values()} == {("healthy", 8)}
    then = found(ledger, NINE)
    assert (then["whole"].state, then["whole"].usable_gpus, then["whole"].reason) == (
        "maintenance",
        0,
        "drained",
    )
    parted = then["parted"]
    assert (parted.state, parted.gpus, parted.usable_gpus, parted.partial_use) == ("unhealthy", 8, 6, True)
    assert found(ledger, TEN).keys() == {"parted"}
