from tests.unit.simulator.stories import scenario

from gpuledger.simulator.document import as_json
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise

KEYS = {
    "world", "seed", "days", "jobs", "occupancy", "unallocated_share", "delivered_over_owed", "wait_s", "preemptions",
    "lost_gpu_hours", "human_repairs", "gpu_hours", "wall_s",
}  # fmt: skip
"""Keys that other tools rely on."""


def test_one_report_is_the_document_itself_and_several_stand_in_a_list() -> None:
    told = scenario()
    both = [summarise(measure([], told), told, world=world, seed=1, wall_s=0) for world in ("old", "fifo")]
    one = as_json(both[:1])
    assert one["world"] == "old"
    assert as_json(both) == {"simulations": [one, {**one, "world": "fifo"}]}


def test_the_keys_that_tools_rely_on() -> None:
    told = scenario()
    found = as_json([summarise(measure([], told), told, world="old", seed=1, wall_s=0)])
    assert found.keys() >= KEYS
    assert found["delivered_over_owed"].keys() >= {
        "window",
        "hourly",
        "raw",
        "accounts",
        "worst",
        "at_least_95",
    }
    assert found["wait_s"].keys() == {"all", "debug", "interactive", "medium", "large", "largest"}
    assert found["wait_s"]["debug"].keys() >= {"p50", "p90", "p99"}
