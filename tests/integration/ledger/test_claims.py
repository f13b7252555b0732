"""What runs hold of hosts, and what is installed there, as the ledger has it."""

from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, ended, started, submitted, told

from gpuledger.database.engine import reading
from gpuledger.events.host import Registered, StateChanged
from gpuledger.events.workload import Resized
from gpuledger.ledger.claims import Claim, claimed, installed

START = at("2026-11-29T00:00:00Z")


def test_a_run_is_spread_over_its_hosts_and_cut_to_the_window(ledger: Ledger) -> None:
    ledger.append(
        told(START, submitted(gpus_milli=3001)),
        told(START, started(gpus_milli=3001, hosts=["n1", "n2"])),
        told(START + 2 * HOUR, ended()),
    )
    with reading(ledger.engine) as reader:
        found = claimed(reader, CLUSTER, START + HOUR, START + 9 * HOUR)
        assert claimed(reader, CLUSTER, START + 2 * HOUR, START + 9 * HOUR) == []
    assert sorted(found) == [
        Claim("n1", 1501, START + HOUR, START + 2 * HOUR),
        Claim("n2", 1500, START + HOUR, START + 2 * HOUR),
    ]


def test_a_run_claims_of_each_host_what_was_told_of_it_from_then_on(ledger: Ledger) -> None:
    hosts = ["n1", "n2"]
    moved = Resized(
        cluster=CLUSTER,
        workload="w1",
        run="r1",
        gpus_milli=8000,
        hosts=hosts,
        host_gpus_milli={"n1": 8000, "n2": 0},
    )
    untold = Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=8000, hosts=hosts)
    ledger.append(
        told(START, submitted()),
        told(START, started(hosts=hosts, host_gpus_milli={"n1": 2000, "n2": 6000})),
        told(START + 2 * HOUR, moved),
        told(START + 3 * HOUR, untold),
        told(START + 4 * HOUR, ended()),
    )
    with reading(ledger.engine) as reader:
        found = claimed(reader, CLUSTER, START + HOUR, START + 9 * HOUR)
        assert sorted(claimed(reader, CLUSTER, START, START + HOUR)) == [
            Claim("n1", 2000, START, START + HOUR),
            Claim("n2", 6000, START, START + HOUR),
        ]
    assert sorted(found) == [
        Claim("n1", 2000, START + HOUR, START + 2 * HOUR),
        Claim("n1", 4000, START + 3 * HOUR, START + 4 * HOUR),
        Claim("n1", 8000, START + 2 * HOUR, START + 3 * HOUR),
        Claim("n2", 4000, START + 3 * HOUR, START + 4 * HOUR),
        Claim("n2", 6000, START + HOUR, START + 2 * HOUR),
    ]


def test_a_run_whose_end_nobody_told_holds_nothing_beyond_its_declared_limit(ledger: Ledger) -> None:
    ledger.append(told(START, submitted(time_limit_s=2 * HOUR)), told(START, started(hosts=["n1"])))
    with reading(ledger.engine) as reader:
        assert claimed(reader, CLUSTER, START, START + 9 * HOUR) == [
            Claim("n1", 8000, START, START + 2 * HOUR)
        ]
        assert claimed(reader, CLUSTER, START + 2 * HOUR, START + 9 * HOUR) == []


def test_what_is_installed_is_there_in_whatever_health(ledger: Ledger) -> None:
    n1 = {"cluster": CLUSTER, "host": "n1", "gpus": 8, "gpu_model": "h100"}
    ledger.append(
        told(START, Registered(**n1)),
        told(START + HOUR, StateChanged(**n1, state="unhealthy")),
    )
    with reading(ledger.engine) as reader:
        found = installed(reader, CLUSTER, START, START + 3 * HOUR)
    assert sorted(found) == [
        Claim("n1", 8000, START, START + HOUR),
        Claim("n1", 8000, START + HOUR, START + 3 * HOUR),
    ]
