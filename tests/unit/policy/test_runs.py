"""The runs by account, as time passes."""

from tests.unit.policy.forests import run

from gpuledger.policy.runs import ById, Runs

QUANTUM_S = 900


def names(group: ById | None) -> list[str]:
    return sorted(id_.workload for id_ in group or {})


def test_who_may_leave_for_whom_goes_by_protection_and_quantum() -> None:
    long = run("a", gpus=4, name="long", started_at_s=0, protected_until_s=3600)
    short = run("a", gpus=2, name="short", started_at_s=0, protected_until_s=60)
    free = run("b", gpus=1, name="free", klass="unallocated")
    runs = Runs([long, short, free], 0, QUANTUM_S)
    assert runs.allocated_milli == {"a": 6000, "b": 0}
    assert names(runs.unallocated) == ["free"]
    assert (runs.unprotected, runs.takeable) == ({}, {})
    seen = {}
    for at_s in (59, 60, 899, 900, 3599, 3600):
        runs.follow((), (), at_s)
        seen[at_s] = names(runs.unprotected.get("a")), names(runs.takeable.get("a"))
    assert seen == {
        59: ([], []),
        60: (["short"], []),
        899: (["short"], []),
        900: (["short"], ["short"]),
        3599: (["short"], ["short"]),
        3600: (["long", "short"], ["long", "short"]),
    }


def test_who_is_gone_is_nowhere_any_more_and_who_is_protected_anew_may_not_leave() -> None:
    one = run("a", gpus=4, name="one", started_at_s=0, protected_until_s=60)
    runs = Runs([one], 2000, QUANTUM_S)
    assert (names(runs.unprotected["a"]), names(runs.takeable["a"])) == (["one"], ["one"])
    again = run("a", gpus=4, name="one", started_at_s=0, protected_until_s=2500)
    runs.follow([one], [again], 2001)
    assert (runs.unprotected, runs.takeable, runs.allocated_milli) == ({}, {}, {"a": 4000})
    runs.follow([again], [], 2002)
    runs.follow((), (), 2600)
    assert (runs.unprotected, runs.takeable, runs.allocated_milli) == ({}, {}, {})


def test_the_lowest_priority_is_that_of_who_may_leave() -> None:
    low = run("a", gpus=1, name="low", priority=1)
    high = run("a", gpus=1, name="high", priority=5)
    runs = Runs([low, high], 2000, QUANTUM_S)
    assert (runs.least_priority("a"), runs.least_priority("b")) == (1, None)
    runs.follow([low], [], 2001)
    assert runs.least_priority("a") == 5
    runs.follow([high], [], 2002)
    assert runs.least_priority("a") is None
