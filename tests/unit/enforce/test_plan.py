"""Targets against what is there, and against what was set last."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.enforce.plan import Command, Draft, Eviction, Patch, Target, diff, drafted


def target(key: str, now: str | None, wanted: str, *, kept: bool = True) -> Target:
    return Target(
        object=key, field="share", now=now, wanted=wanted, why="so it is issued",
        action=Command(("set", key, wanted)), kept=kept,
    )  # fmt: skip


def test_what_differs_is_a_change_and_what_does_not_is_settled() -> None:
    plan = diff(
        "c", Draft((target("a", "1", "2"), target("b", "2", "2"), target("c", None, "")), ("said",)), {}
    )

    assert [change.key for change in plan.changes] == ["a: share", "c: share"]
    assert plan.settled == {"b: share": "2"}
    assert (plan.cycle, plan.notes, plan.drifts) == ("c", ("said",), ())


def test_what_is_not_as_it_was_set_is_a_drift_whether_it_is_wanted_now_or_not() -> None:
    draft = Draft(
        (target("a", "9", "2"), target("b", "2", "2"), target("c", None, "1"), target("d", "1", "2"))
    )
    applied = {"a: share": ("2",), "b: share": ("1",), "c: share": ("1",), "d: share": ("1",)}

    drifts = {drift.key: (drift.set_to, drift.found) for drift in diff("c", draft, applied).drifts}

    assert drifts == {"a: share": ("2", "9"), "b: share": ("1", "2"), "c: share": ("1", None)}
    assert (
        diff("c", draft, applied).drifts[2].sentence
        == "c: share was set to 1 and is nothing: changed by hand"
    )


def test_where_a_crash_left_two_values_open_neither_is_a_drift() -> None:
    open_ = {"a: share": ("1", "2")}
    assert diff("c", Draft((target("a", "1", "2"),)), open_).drifts == ()
    assert diff("c", Draft((target("a", "2", "2"),)), open_).drifts == ()
    assert len(diff("c", Draft((target("a", "3", "2"),)), open_).drifts) == 1


def test_what_does_not_stay_as_it_is_set_cannot_drift() -> None:
    plan = diff("c", Draft((target("job", "5", "6", kept=False),)), {"job: share": ("4",)})
    assert (plan.drifts, plan.settled) == ((), {})


VALUES = st.sampled_from(["1", "2", "3"])


@given(st.lists(st.tuples(VALUES, VALUES), max_size=8), st.dictionaries(st.integers(0, 8), VALUES))
def test_setting_what_differs_leaves_nothing_to_do_and_no_drift(
    fields: list[tuple[str, str]], before: dict[int, str]
) -> None:
    """The law of an idempotent run, against a world that is a dictionary."""
    world = {f"o{n}": now for n, (now, _) in enumerate(fields)}

    def draft() -> Draft:
        return Draft(tuple(target(f"o{n}", world[f"o{n}"], wanted) for n, (_, wanted) in enumerate(fields)))

    applied = {f"o{n}: share": (value,) for n, value in before.items()}
    plan = diff("c", draft(), applied)
    assert {change.object for change in plan.changes} == {
        f"o{n}" for n, (now, wanted) in enumerate(fields) if now != wanted
    }
    for change in plan.changes:
        world[change.object] = change.wanted
    after = {**applied, **{key: (value,) for key, value in plan.settled.items()}}
    after |= {change.key: (change.wanted,) for change in plan.changes}

    again = diff("c", draft(), after)
    assert (again.changes, again.drifts) == ((), ())


def test_a_change_says_what_why_and_how() -> None:
    change = target("account a", "", "2")
    assert change.sentence == "account a: share from nothing to 2, so it is issued"
    assert Command(("scontrol", "update", "Reason=gpuledger: to do")).shown == (
        "scontrol update 'Reason=gpuledger: to do'"
    )
    test = {"op": "test", "path": "/metadata/uid", "value": "u"}
    patch = Patch("Queue", "", "a", (test, {"op": "add", "path": "/spec/x", "value": "1"}))
    assert patch.shown == (
        'kubectl patch queue a --type=json -p \'[{"op": "add", "path": "/spec/x", "value": "1"}]\''
    )
    assert Eviction("team", "p-0", "u").shown == "evict pod p-0 of namespace team"


def test_drafts_are_joined_in_order() -> None:
    first, second = Draft((target("a", "1", "2"),), ("x",)), Draft((target("b", "1", "2"),), ("y",))
    assert drafted([first, second]) == Draft((*first.targets, *second.targets), ("x", "y"))
