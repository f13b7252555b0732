"""One run: what differs is set, what fails is tried again, what stops work is looked at once more."""

from pathlib import Path

import pytest

from gpuledger.enforce.applying import enforce, look
from gpuledger.enforce.memory import Memory
from gpuledger.enforce.plan import Action, Applied, Command, Draft, Target
from gpuledger.kernel.errors import Unavailable


class Fake:
    """A scheduler that is a dictionary; ``wanted`` is what every run wants of it."""

    def __init__(
        self, world: dict[str, str], wanted: dict[str, str], stops: frozenset[str] = frozenset()
    ) -> None:
        self.world, self.wanted, self.stops = world, wanted, stops
        self.broken: set[str] = set()
        self.done: list[str] = []
        self.looks = 0
        self.withdrawn: set[str] = set()

    def draft(self, applied: Applied) -> tuple[str, Draft]:
        self.looks += 1
        wanted = {key: to for key, to in self.wanted.items() if self.looks == 1 or key not in self.withdrawn}
        return "c1", Draft(tuple(self._target(key, to) for key, to in wanted.items()), ("said",))

    def _target(self, key: str, to: str) -> Target:
        stops = key in self.stops
        return Target(
            object=key, field="f", now=self.world.get(key), wanted=to, why="so", action=Command((key, to)),
            destructive=stops, kept=not stops,
        )  # fmt: skip

    def act(self, action: Action) -> None:
        assert isinstance(action, Command)
        key, to = action.words
        if key in self.broken:
            raise Unavailable(f"{key} does not answer")
        self.world[key] = to
        self.done.append(key)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path, "fake")


def test_a_look_changes_nothing(memory: Memory) -> None:
    fake = Fake({"a": "1"}, {"a": "2"})
    outcome = look(fake, memory)

    assert (outcome.is_dry, outcome.done, fake.world, memory.folder.joinpath("fake.json").exists()) == (
        True, [], {"a": "1"}, False,
    )  # fmt: skip
    assert outcome.as_json() == {
        "cycle": "c1",
        "dry_run": True,
        "changes": [
            {
                "object": "a", "field": "f", "from": "1", "to": "2", "reason": "a: f from 1 to 2, so",
                "command": "a 2", "destructive": False, "done": False, "dropped": False,
                "error": None,
            }
        ],
        "drift": [],
        "notes": ["said"],
    }  # fmt: skip


def test_the_second_run_finds_nothing_to_do(memory: Memory) -> None:
    fake = Fake({"a": "1", "b": "2"}, {"a": "2", "b": "2"})
    assert [target.object for target in enforce(fake, memory, 0).done] == ["a"]
    again = enforce(fake, memory, 0)
    assert (again.plan.changes, again.plan.drifts, again.done, again.failed) == ((), (), [], [])


def test_what_fails_is_told_and_the_next_run_does_it(memory: Memory) -> None:
    fake = Fake({}, {"a": "1", "b": "1", "c": "1"})
    fake.broken = {"b"}
    first = enforce(fake, memory, 0)
    assert [(target.object, why.message) for target, why in first.failed] == [("b", "b does not answer")]
    assert fake.done == ["a", "c"]

    fake.broken = set()
    assert [target.object for target in enforce(fake, memory, 0).done] == ["b"]


def test_what_somebody_changed_is_told_once_and_set_back(memory: Memory) -> None:
    fake = Fake({"a": "1"}, {"a": "2", "b": "3"})
    enforce(fake, memory, 0)
    fake.world |= {"a": "9"}

    assert [drift.found for drift in look(fake, memory).plan.drifts] == ["9"]
    assert [drift.found for drift in enforce(fake, memory, 0).plan.drifts] == ["9"]
    assert fake.world["a"] == "2"
    assert look(fake, memory).plan.drifts == ()


def test_a_hand_that_sets_what_is_wanted_next_is_told_once(memory: Memory) -> None:
    fake = Fake({}, {"a": "1"})
    enforce(fake, memory, 0)
    fake.world["a"], fake.wanted["a"] = "2", "2"
    assert len(enforce(fake, memory, 0).plan.drifts) == 1
    assert look(fake, memory).plan.drifts == ()


def test_work_is_stopped_last_and_only_if_it_still_has_to(memory: Memory) -> None:
    fake = Fake({"x": "runs", "y": "runs"}, {"x": "gone", "y": "gone", "a": "1"}, frozenset({"x", "y"}))
    fake.withdrawn = {"y"}
    outcome = enforce(fake, memory, 0)

    assert fake.done == ["a", "x"]
    assert outcome.failed == []
    assert [target.object for target in outcome.dropped] == ["y"]
    assert [one["dropped"] for one in outcome.as_json()["changes"]] == [False, True, False]
    assert fake.world["y"] == "runs"


def test_where_nothing_else_was_set_one_look_is_enough(memory: Memory) -> None:
    fake = Fake({"x": "runs"}, {"x": "gone"}, frozenset({"x"}))
    enforce(fake, memory, 0)
    assert (fake.looks, fake.world["x"]) == (1, "gone")
