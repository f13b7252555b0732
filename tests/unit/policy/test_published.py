"""A cycle under its published keys, and what the next cycle reads of it."""

import json

import pytest
from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import Cycle, PolicyConfig, run_cycle
from gpuledger.policy.published import as_json, milli_of, reservations_of


def crowded() -> Cycle:
    """w0 starts for an hour at least; one host has a run that leaves; the others are protected for hours."""
    return run_cycle(
        cluster(
            [account("a", share=3, demand=99), account("b", used=9999)],
            [pending("w0", "a", gpus=8), pending("w1", "a", gpus=8), pending("wide", "a", gpus=16)],
            [
                run("b", gpus=8, name="old", hosts={"h1": 8}),
                run("b", gpus=8, name="new", hosts={"h2": 8}, protected_until_s=AT_S + 3600),
                run("b", gpus=8, name="newer", hosts={"h3": 8}, protected_until_s=AT_S + 7200),
            ],
            on=hosts(8, 8, 8, 8),
        ),
        PolicyConfig(floor_alpha_permille=1000),
    )


def test_starts_name_their_hosts_preemptions_their_run_and_reservations_their_kind() -> None:
    published = as_json(crowded())
    starts, _, _, leaves = published["decisions"]
    assert (starts["workload"], starts["hosts"]) == ("w0", {"h0": 8000})
    assert (leaves["workload"], leaves["action"], leaves["run"]) == ("old", "preempt", "old/1")
    assert published["reservations"] == [
        {
            "workload": "w1",
            "hosts": {"h1": 8000},
            "at": "1970-01-12T13:47:40Z",
            "kind": "promise",
            "leaving": [{"workload": "old", "run": "old/1"}],
        },
        {
            "workload": "wide",
            "hosts": {"h0": 8000, "h2": 8000},
            "at": "1970-01-12T14:46:40Z",
            "kind": "bound",
            "leaving": [],
        },
    ]


def test_what_was_published_is_read_back_as_it_was() -> None:
    cycle = crowded()
    assert reservations_of(json.loads(json.dumps(as_json(cycle)))) == cycle.reservations


def test_a_record_from_before_there_were_reservations_has_none() -> None:
    assert reservations_of({"decisions": []}) == ()


def test_a_start_on_a_cluster_whose_hosts_nobody_named_names_none() -> None:
    cycle = run_cycle(cluster([account("a")], [pending("w", "a")]), PolicyConfig())
    assert "hosts" not in as_json(cycle)["decisions"][0]


@pytest.mark.parametrize(("published", "amount"), [(8, 8000), ("0.500", 500), ("12.375", 12_375), (0, 0)])
def test_published_gpus_are_read_exactly(published: int | str, amount: int) -> None:
    assert milli_of(published) == amount
