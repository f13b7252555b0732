"""What accounts were entitled to, against an oracle that looks at every second."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.policy.entitlement import History, entitled, entitled_to, parts
from gpuledger.policy.memory import Memory, Step

LENGTH = 40
MEMORY = Memory(1000, 1000 + LENGTH, LENGTH, (1, 1), 1, (0, LENGTH))
HALVING = Memory(1000, 1000 + LENGTH, 10, (1, 2, 4, 8, 8), 8, (0, 10, 30, 70, 150))
CONSTANT = (Step(0, 9000),)


def test_a_cut_counts_from_the_cut_on() -> None:
    """40 of 100, then 10 of 70: half of the time each."""
    history = History(shares={"a": [Step(0, 40), Step(1020, 10)], "b": [Step(0, 60)]})
    found = entitled(["a", "b"], history, MEMORY, [Step(0, 100_000)])
    assert found["a"].gpu_ms == 20 * 40_000 + round(20 * 100_000 / 7)
    assert found["b"].gpu_ms == 40 * 100_000 - found["a"].gpu_ms


def test_a_newcomer_is_at_par_by_its_first_share() -> None:
    history = History(shares={"a": [Step(0, 9)], "b": [Step(1030, 1)]}, births={"b": 1030})
    found = entitled(["a", "b"], history, MEMORY, CONSTANT)
    assert found["a"] == (30 * 9000 + 10 * 8100, 0)
    assert found["b"] == (10 * 900, 30 * 900)


def test_who_came_this_very_second_has_nothing_but_par() -> None:
    history = History(shares={"a": [Step(0, 9)], "b": [Step(1040, 1)]}, births={"b": 1040})
    found = entitled(["a", "b"], history, MEMORY, CONSTANT)
    assert found == {"a": (40 * 9000, 0), "b": (0, 40 * 900)}


def test_what_a_leaf_was_entitled_to_is_its_own_when_it_gets_children() -> None:
    history = History(births={"a/x": 1010})
    found = entitled(["a", "a/x", "a/~own", "b"], history, MEMORY, CONSTANT)
    assert found["a/~own"] == (10 * 4500, 0)
    assert found["a/x"] == (30 * 4500, 10 * 4500)
    assert found["b"] == (40 * 4500, 0)


def test_a_share_of_0_is_entitled_to_nothing_while_it_lasts() -> None:
    history = History(shares={"a": [Step(0, 0), Step(1010, 1)]})
    assert entitled(["a", "b"], history, MEMORY, CONSTANT)["a"] == (30 * 4500, 0)


PATHS = ["a", "a/x", "a/y", "a/y/p", "a/y/q", "b", "b/x", "c"]
MOMENT = st.integers(995, 1045)
SHARES = st.dictionaries(
    st.sampled_from(PATHS),
    st.dictionaries(MOMENT, st.integers(0, 3), max_size=3).map(
        lambda d: [Step(*step) for step in sorted(d.items())]
    ),
)
BIRTHS = st.dictionaries(st.sampled_from(PATHS), MOMENT)
CAPACITY = st.dictionaries(MOMENT, st.integers(0, 9000), max_size=4).map(
    lambda d: [Step(*step) for step in sorted(d.items())]
)


def part(path: str, at_s: int, history: History) -> Fraction:
    """Return the part of the cluster that is an account's at a second, from the root down."""
    result = Fraction(1)
    names = path.split("/")
    for depth in range(len(names)):
        siblings = [p for p in PATHS if p.split("/")[:depth] == names[:depth] and p.count("/") == depth]
        shares = dict.fromkeys(siblings, 0)
        for sibling in siblings:
            if history.births.get(sibling, 0) <= at_s:
                set_ = [share for from_s, share in history.shares.get(sibling, ()) if from_s <= at_s]
                shares[sibling] = set_[-1] if set_ else 1
        whole = sum(shares.values())
        result *= Fraction(shares["/".join(names[: depth + 1])], whole) if whole else 0
    return result


@given(SHARES, BIRTHS, CAPACITY, st.sampled_from([MEMORY, HALVING]))
def test_it_is_the_sum_over_seconds(
    shares: dict[str, list[Step]], births: dict[str, int], capacity: list[Step], memory: Memory
) -> None:
    births = {path: born for path, born in births.items() if born <= memory.end_s}
    history = History(shares=shares, births=births)
    found = entitled(PATHS, history, memory, capacity)
    leaves = [path for path in PATHS if not any(other.startswith(path + "/") for other in PATHS)]
    assert sorted(found) == sorted(leaves)

    def amount(at_s: int) -> int:
        return next((step.amount for step in reversed(capacity) if step.from_s <= at_s), 0)

    seconds = range(memory.start_s, memory.end_s)
    weights = {at_s: Fraction(amount(at_s) * memory.weight(at_s, at_s + 1), memory.unit) for at_s in seconds}
    for leaf in leaves:
        exact = sum((part(leaf, at_s, history) * weights[at_s] for at_s in seconds), Fraction(0))
        assert abs(found[leaf].gpu_ms - exact) <= Fraction(3, 5)
        born = births.get(leaf, 0)
        before = sum((weights[at_s] for at_s in seconds if at_s < born), Fraction(0))
        expected = before * part(leaf, born, history) if born > memory.start_s else 0
        assert abs(found[leaf].par_gpu_ms - expected) <= Fraction(3, 5)


@given(st.lists(st.integers(0, 9), min_size=5, max_size=5), st.integers(1, 10**9), st.sampled_from([1, 1000]))
def test_parts_that_never_changed_say_the_same_at_once(shares: list[int], milli: int, per_unit: int) -> None:
    """An inner node of share 0, too, and siblings that have none at all."""
    paths = ["a", "a/x", "a/y", "b", "b/~own"]
    history = History(shares={path: [Step(0, share)] for path, share in zip(paths, shares, strict=True)})
    for memory in (MEMORY, HALVING):
        capacity = [Step(0, milli), Step(1017, milli // 3)]
        weight = memory.of_steps(capacity, memory.start_s, memory.end_s)
        at_once = {
            path: entitled_to(part, weight, memory, per_unit=per_unit)
            for path, part in parts(paths, history, 1020).items()
        }
        found = entitled(paths, history, memory, capacity, per_unit=per_unit)
        assert at_once == {path: leaf.gpu_ms for path, leaf in found.items()}
