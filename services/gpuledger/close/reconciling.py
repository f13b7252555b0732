"""What came of comparing a book with the scheduler's own record, as a close keeps it. Pure."""

import hashlib
from collections import Counter

import msgspec

from gpuledger.events.closing import Reconciled
from gpuledger.reconcile.comparison import Difference
from gpuledger.reconcile.reconciling import Reconciliation


def summary(found: Reconciliation, cluster: str) -> Reconciled:
    """Return what a comparison says of one cluster, with a digest of all that was compared."""
    amounts = {key: each for key, each in found.amounts.items() if key.cluster == cluster}
    differences = of_cluster(found, cluster)
    compared = [
        [*key, *each, difference.klass if (difference := found.differences.get(key)) else ""]
        for key, each in sorted(amounts.items())
    ]
    return Reconciled(
        digest=hashlib.sha256(msgspec.json.encode(compared)).hexdigest(),
        runs=len(amounts),
        ledger_gpu_ms=sum(each.ledger_gpu_ms for each in amounts.values()),
        record_gpu_ms=sum(each.record_gpu_ms for each in amounts.values()),
        differences=dict(sorted(Counter(str(each.klass) for each in differences).items())),
        unexplained=sum(not each.klass.is_explained for each in differences),
    )


def of_cluster(found: Reconciliation, cluster: str) -> list[Difference]:
    """Return the differences of one cluster, and what could not be read of its record; the unexplained ones first."""
    return [each for each in found.found if each.key.cluster in (cluster, "")]
