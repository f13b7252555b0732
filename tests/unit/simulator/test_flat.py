import msgspec
from tests.unit.simulator.stories import scenario, submitted

from gpuledger.simulator.flat import Figure, figures
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise


def test_every_number_of_the_document_has_a_row() -> None:
    told = scenario()
    report = summarise(measure([submitted("j", 0)], told), told, world="fifo", seed=4, wall_s=0.5)
    rows = list(figures(report))
    of = {row.measure: row.value for row in rows}
    assert rows[0] == Figure("story", "fifo", 4, 1, "gpus", 16.0)
    assert of["wait_s.medium.unended"] == 1
    assert of["wait_s.medium.p90"] is None
    assert of["delivered_over_owed.placeable.window"] == 0
    assert of["over_time.occupancy.3"] == 0
    assert len(of) == len(rows)
    document = msgspec.to_builtins(report)
    assert {place.partition(".")[0] for place in of} == document.keys() - {
        "scenario", "world", "seed", "days", "warm_up_days", "gpu_hours", "lost_gpu_hours_by", "notes"
    }  # fmt: skip
