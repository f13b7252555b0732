"""The page stands alone: nothing is loaded, every name is escaped, every chart has its figures as a table."""

import re
from html.parser import HTMLParser

import msgspec
import pytest
from tests.unit.simulator.stories import in_order, scenario, started, submitted

from gpuledger.simulator.document import Simulation
from gpuledger.simulator.measures import measure
from gpuledger.simulator.report import page
from gpuledger.simulator.scenario import AccountSpec
from gpuledger.simulator.summary import summarise

ODD = "org/<b>&x"


def report(world: str, seed: int = 1) -> Simulation:
    told = scenario(
        days=2, accounts=[AccountSpec(account=ODD, share=1), AccountSpec(account="org/b", share=1)]
    )
    facts = in_order(
        submitted("a", 0, account=ODD, gpus=4),
        started("a", 60, {"h1": 4}),
        submitted("b", 0, account="org/b", gpus=9),
    )
    return summarise(measure(facts, told), told, world=world, seed=seed, wall_s=0.5)


class Outline(HTMLParser):
    """Collects tags, and refuses what does not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.attributes = list[str](), list[str](), list[tuple[str, str | None]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert not found.open
    return found


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = page([report("old"), report("gpuledger")])
    found = outline(text)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(found.tags)
    assert not [value for name, value in found.attributes if name in ("src", "href") or name.startswith("on")]
    assert "default-src 'none'" in text
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert "url(" not in text


def test_every_chart_has_a_title_and_its_figures_as_a_table() -> None:
    found = outline(page([report("old"), report("gpuledger")]))
    assert found.tags.count("figure") == found.tags.count("details") == 5
    assert found.tags.count("table") == 6
    assert found.tags.count("desc") == 5
    assert ("lang", "en") in found.attributes


def test_names_are_escaped() -> None:
    text = page(
        [msgspec.structs.replace(report("<i>old</i>"), notes=("3 records of <b>x</b> were left out",))]
    )
    outline(text)
    assert "3 records of &lt;b&gt;x&lt;/b&gt;" in text
    assert "org/<b>" not in text
    assert "org/&lt;b&gt;&amp;x" in text
    assert "<i>" not in text


@pytest.mark.parametrize(
    ("reports", "names"),
    [
        ([report("old"), report("fifo")], ["old", "fifo"]),
        ([report("old"), report("old", 2)], ["old, seed 1", "old, seed 2"]),
        ([report("old"), msgspec.structs.replace(report("old"), scenario="other")], ["story, old, seed 1"]),
        ([report("old"), report("old")], ["1: story, old, seed 1", "2: story, old, seed 1"]),
    ],
)
def test_series_are_told_apart(reports: list[Simulation], names: list[str]) -> None:
    text = page(reports)
    assert all(f"</svg> {name}</li>" in text for name in names)


def test_series_can_be_named() -> None:
    text = page([report("old"), report("old")], ["the past", "as <decided>"])
    assert all(f"</svg> {name}</li>" in text for name in ("the past", "as &lt;decided&gt;"))


def test_who_was_given_little_is_in_the_table() -> None:
    text = page([report("fifo")])
    assert re.search(r"org/b</th><td>0.0 % of 384 GPU-h</td>", text)
    assert "not reached" in text
