import msgspec
from tests.unit.sources.kubernetes.building import Object, admission, assignment, pod_set, workload

from gpuledger.sources.kubernetes.admissions import asked, placements
from gpuledger.sources.kubernetes.objects import Admission, Reclaimable, Workload
from gpuledger.sources.kubernetes.reading import decode


def given(*assignments: Object) -> Admission:
    return msgspec.convert(admission(*assignments), Admission)


def two_sets() -> Workload:
    sets = [pod_set("driver", 1, 0), pod_set("workers", 4, 2)]
    return decode(Workload, msgspec.json.encode(workload("x", sets, None)))


def test_all_pods_of_all_sets_ask() -> None:
    assert asked(two_sets()) == 8000


def test_what_was_given_is_a_sum_over_the_pods() -> None:
    placed = placements(
        two_sets().spec, given(assignment("driver", 1, 0, "cpu"), assignment("workers", 4, 8, "h100"))
    )
    assert {part: (p.gpus_milli, p.model) for part, p in placed.items()} == {"": (8000, "h100")}


def test_an_admission_without_a_count_is_of_all_pods() -> None:
    workers = assignment("workers", 4, 8, "h100")
    del workers["count"]
    (placed,) = placements(two_sets().spec, given(workers), [Reclaimable(name="workers", count=3)]).values()
    assert placed.gpus_milli == 2000


def test_pods_that_are_through_never_make_it_negative() -> None:
    through = [Reclaimable(name="workers", count=9)]
    (placed,) = placements(two_sets().spec, given(assignment("workers", 4, 8, "h100")), through).values()
    assert placed.gpus_milli == 0


def test_hosts_are_read_in_both_forms() -> None:
    old = {"levels": ["rack", "kubernetes.io/hostname"], "domains": [{"values": ["r1", "n2"], "count": 1}]}
    new = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"prefix": "n", "roots": ["1", "3"]}],
                "universalPodCount": 1,
            }
        ],
    }
    racks = {"levels": ["rack"], "domains": [{"values": ["r1"], "count": 4}]}
    for topology, hosts in ((old, ["n2"]), (new, ["n1", "n3"]), (racks, [])):
        workers = assignment("workers", 4, 8, "h100", topologyAssignment=topology)
        (placed,) = placements(two_sets().spec, given(workers)).values()
        assert placed.hosts == hosts


def test_parts_are_named_after_their_model() -> None:
    driver = assignment("driver", 1, 1, "a100")
    workers = assignment("workers", 4, 8, "h100")
    del driver["flavors"]
    placed = placements(two_sets().spec, given(driver, workers))
    assert {part: p.gpus_milli for part, p in placed.items()} == {"-other": 1000, "-h100": 8000}


def _spread(*counts: int | None, usage: int = 8, pods: int = 4) -> dict[str, int] | None:
    domains = [{"values": [f"n{number}"], "count": count} for number, count in enumerate(counts)]
    topology = {"levels": ["kubernetes.io/hostname"], "domains": domains}
    workers = assignment("workers", pods, usage, "h100", topologyAssignment=topology)
    (placed,) = placements(two_sets().spec, given(workers)).values()
    return placed.host_gpus_milli


def test_what_each_host_gives_is_told_where_they_differ_and_all_is_known() -> None:
    assert _spread(3, 1) == {"n0": 6000, "n1": 2000}
    assert _spread(2, 2) is None, "as much each: the total says it"
    assert _spread(3, None) is None, "nobody knows"
    assert _spread(2, 1) is None, "does not add up to the pods"
    assert _spread(2, 1, usage=1, pods=3) is None, "no part of a GPU is rounded"


def test_what_is_left_of_pods_that_are_through_is_nowhere_known() -> None:
    topology = {
        "levels": ["kubernetes.io/hostname"],
        "domains": [{"values": ["n1"], "count": 3}, {"values": ["n2"], "count": 1}],
    }
    workers = assignment("workers", 4, 8, "h100", topologyAssignment=topology)
    through = [Reclaimable(name="workers", count=1)]
    (placed,) = placements(two_sets().spec, given(workers), through).values()
    assert (placed.gpus_milli, placed.host_gpus_milli) == (6000, None)


def test_pod_sets_of_one_model_add_up_host_by_host() -> None:
    def on(host: str) -> Object:
        return {"levels": ["kubernetes.io/hostname"], "domains": [{"values": [host], "count": 1}]}

    sets = [assignment("driver", 1, 1, "h100", topologyAssignment=on("n1"))]
    sets += [assignment("workers", 1, 4, "h100", topologyAssignment=on("n2"))]
    (placed,) = placements(two_sets().spec, given(*sets)).values()
    assert placed.host_gpus_milli == {"n1": 1000, "n2": 4000}
