"""What the organisation hopes for of each layer: policy data like any other, with a moment and a version (law 12)."""

from decimal import Decimal

from gpuledger.database.engine import Reader
from gpuledger.kernel.knobs import PER_MILLE
from gpuledger.ledger import knobs

LAYERS = ("availability", "occupancy", "impact", "utilisation")
_PLACES = Decimal("0.0001")


def targets(
    reader: Reader, cluster: str | None, at_s: int, *, org_seq: int | None = None
) -> dict[str, str | None]:
    """Return layer -> its target as a ratio with four decimals, or None where none is set.

    Args:
        reader: A snapshot.
        cluster: The cluster, whose own settings come first; those of every cluster alone unless given.
        at_s: The moment, in seconds since the epoch.
        org_seq: The row of ``~org`` to read up to; all of them unless given.
    """
    settings = knobs.in_force(knobs.versions(reader, org_seq=org_seq), cluster, at_s)
    wanted = {layer: settings.get(f"{layer}_target_permille") for layer in LAYERS}
    return {
        layer: str((Decimal(value) / PER_MILLE).quantize(_PLACES)) if value else None
        for layer, value in wanted.items()
    }
