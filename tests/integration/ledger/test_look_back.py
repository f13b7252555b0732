"""The past as the policy weighs it, against sums over single seconds."""

from collections import Counter

from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    ended,
    registered,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading
from gpuledger.events import budget, host
from gpuledger.events.incident import CreditGranted
from gpuledger.events.workload import Resized
from gpuledger.ledger import look_back
from gpuledger.ledger.look_back import Edge

START, END, BUCKET = 500, 4000, 900


def use(edges: list[Edge], weigh: Counter[int]) -> Counter[tuple[str, str]]:
    """Sum edges with a weight by bucket."""
    found: Counter[tuple[str, str]] = Counter()
    for edge in edges:
        before = sum(weigh[bucket] for bucket in range(edge.bucket)) * BUCKET
        found[edge.account, edge.klass] += before * edge.number + weigh[edge.bucket] * edge.seconds
    return found


def test_edges_say_what_was_used_in_each_bucket(ledger: Ledger) -> None:
    ledger.append(
        *run_of(0, 10 * HOUR),
        *run_of(700, 2500, "w2", klass="unallocated", gpus_milli=1000),
        *run_of(0, START, "w3", account="org/old"),
        *run_of(END, END + 5, "w4", account="org/new"),
        told(2000, submitted("w5", account="org/open")), told(2000, started("w5", gpus_milli=2000)),
    )  # fmt: skip
    weigh = Counter({0: 7, 1: 1, 2: 10, 3: 100})
    seconds: Counter[tuple[str, str]] = Counter()
    for at_s in range(START, END):
        weight = weigh[(at_s - START) // BUCKET]
        seconds["org/vision", "allocated"] += 8000 * weight
        seconds["org/vision", "unallocated"] += 1000 * weight * (700 <= at_s < 2500)
        seconds["org/open", "allocated"] += 2000 * weight * (at_s >= 2000)
    with reading(ledger.engine) as reader:
        edges = look_back.use_edges(reader, CLUSTER, [(START, END)], bucket_s=BUCKET, by_model=False)
        assert use(edges, weigh) == seconds
        pieces = [(START, 1900), (1900, END)]
        cut = look_back.use_edges(reader, CLUSTER, pieces, bucket_s=BUCKET, by_model=False)
        assert use(cut, weigh) == seconds
        early = use([edge for edge in cut if edge.piece == 0], weigh)
        assert early["org/vision", "allocated"] == 8000 * (900 * 7 + 500)
        assert ("org/open", "allocated") not in early


def test_models_and_sizes_have_edges_of_their_own(ledger: Ledger) -> None:
    ledger.append(
        *run_of(500, 510, gpu_model="H100"), *run_of(500, 520, "w2", gpu_model="A100", gpus_milli=500)
    )
    with reading(ledger.engine) as reader:
        edges = look_back.use_edges(reader, CLUSTER, [(START, END)], bucket_s=END, by_model=True)
    assert {(e.gpu_model, e.gpus_milli): (e.number, e.seconds) for e in edges} == {
        ("H100", 8000): (0, 10),
        ("A100", 500): (0, 20),
    }


def test_healthy_gpus_change_when_hosts_do(ledger: Ledger) -> None:
    ill = host.StateChanged(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100", state="unhealthy")
    ledger.append(
        told(0, registered("h1", 8)), told(1000, ill), told(600, registered("h2", 4, gpu_model="A100")),
        told(END, registered("h3", 2)),
    )  # fmt: skip
    with reading(ledger.engine) as reader:
        assert look_back.capacity_changes(reader, CLUSTER, START, END) == [
            (START, "H100", 8), (600, "A100", 4), (1000, "H100", -8),
        ]  # fmt: skip
        assert look_back.capacity_changes(reader, "nowhere", START, END) == []


def test_shares_creations_and_first_uses_have_their_moments(ledger: Ledger) -> None:
    def share(weight: int) -> budget.ShareSet:
        return budget.ShareSet(account="org/a", share=weight, reason="test", by="test")

    ledger.append(
        told(50, budget.AccountCreated(account="org/a")),
        told(100, share(4)), told(100, share(5)), told(60, share(3)), told(900, share(9)),
    )  # fmt: skip
    ledger.append(*run_of(70, 80, account="org/a"), *run_of(55, 60, "w2", account="org/a"))
    with reading(ledger.engine) as reader:
        assert look_back.share_versions(reader, 100) == {"org/a": [(60, 3), (100, 5)]}
        assert look_back.created(reader) == {"org/a": 50}
        assert look_back.first_use(reader, [CLUSTER], ["org/a", "org/b"]) == {"org/a": 55}
        assert look_back.first_use(reader, [], ["org/a"]) == {}


def test_what_is_given_back_is_the_end_of_a_run(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted()), told(0, started(gpu_model="H100")), told(10 * HOUR, ended(reason="NODE_FAIL")),
        told(10 * HOUR, CreditGranted(cluster=CLUSTER, workload="w1", run="r1", incident="i", cap_s=HOUR)),
    )  # fmt: skip
    with reading(ledger.engine) as reader:
        given = ("org/vision", "H100", 8000, 9 * HOUR, 10 * HOUR)
        assert look_back.credited(reader, CLUSTER, 10 * HOUR - 1) == [given]
        assert look_back.credited(reader, CLUSTER, 10 * HOUR) == []
        assert look_back.credited(reader, "nowhere", 0) == []


def test_what_is_given_back_to_a_run_of_several_sizes_has_the_size_of_each_second(ledger: Ledger) -> None:
    def grown(at_s: int, gpus_milli: int) -> None:
        ledger.append(
            told(at_s, Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=gpus_milli, hosts=["h"]))
        )

    ledger.append(told(0, submitted()), told(0, started(gpu_model="H100", gpus_milli=1000)))
    grown(9 * HOUR, 3000)
    grown(10 * HOUR - 60, 8000)
    ledger.append(
        told(10 * HOUR, ended(reason="NODE_FAIL")),
        told(
            10 * HOUR, CreditGranted(cluster=CLUSTER, workload="w1", run="r1", incident="i", cap_s=HOUR + 7)
        ),
    )
    with reading(ledger.engine) as reader:
        found = look_back.credited(reader, CLUSTER, 5 * HOUR)
        assert look_back.credited(reader, CLUSTER, 10 * HOUR - 60) == found[:1]
    assert found == [
        ("org/vision", "H100", 8000, 10 * HOUR - 60, 10 * HOUR),
        ("org/vision", "H100", 3000, 9 * HOUR, 10 * HOUR - 60),
        ("org/vision", "H100", 1000, 9 * HOUR - 7, 9 * HOUR),
    ]
