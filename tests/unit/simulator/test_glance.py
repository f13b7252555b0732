from tests.unit.simulator.stories import scenario, started, submitted

from gpuledger.simulator.document import Wait
from gpuledger.simulator.glance import PAST, length_text, overview, part_text, wait_text
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise


def test_figures_in_words() -> None:
    assert [part_text(0.98765), part_text(None)] == ["98.8 %", "-"]
    assert [length_text(7_500, 9_000), length_text(None, 9_000), length_text(None, None)] == [
        "2 h 5 min",
        "not reached",
        "-",
    ]
    assert (
        wait_text(Wait(p50=30, p90=None, p99=None, count=3, unended=2, from_before=0, longest=90))
        == "30 s, not reached"
    )
    assert (
        wait_text(Wait(p50=None, p90=None, p99=None, count=0, unended=0, from_before=0, longest=None)) == "-"
    )


def test_each_line_has_a_value_for_each_report() -> None:
    told = scenario()
    facts = [submitted("j", 0), started("j", 30, {"h1": 1})]
    reports = [summarise(measure(given, told), told, world="fifo", seed=1, wall_s=0) for given in ([], facts)]
    rows = dict(overview(reports))
    assert all(len(cells) == 2 for cells in rows.values())
    assert rows["wait, all: p50"] == rows["wait, all: p90"] == ["-", "30 s"]
    assert rows["delivered / owed (window)"] == ["-", "100.0 %"]
    assert rows["repairs that needed a human"] == ["0 of 0", "0 of 0"]


def test_of_the_past_nobody_knows_what_only_a_simulation_tells() -> None:
    told = scenario()
    facts = [submitted("j", 0), started("j", 30, {"h1": 1})]
    reports = [
        summarise(measure(facts, told), told, world=world, seed=1, wall_s=2) for world in (PAST, "fifo")
    ]
    rows = dict(overview(reports))
    unlike = {label: cells for label, cells in rows.items() if cells[0] != cells[1]}
    assert unlike == {
        "… reserved": ["-", "0.0 %"],
        "squatted GPU-hours": ["-", "0.0"],
        "repairs that needed a human": ["-", "0 of 0"],
        "took": ["-", "2.0 s"],
    }
