"""The order of what is going to happen."""

from itertools import permutations

from gpuledger.simulator.calendar import Calendar, Kind


def drained(calendar: Calendar) -> list[tuple[int, Kind, str]]:
    taken = []
    while (at_s := calendar.next_s()) is not None:
        kind, subject = calendar.take()
        taken.append((at_s, kind, subject))
    return taken


def test_by_instant_then_by_kind_however_it_was_put_down() -> None:
    events = [(1, Kind.WAKES, "w"), (2, Kind.ENDS, "e"), (2, Kind.GRACE_OVER, "g"), (2, Kind.SUBMITS, "s")]
    for order in permutations(events):
        calendar = Calendar()
        for at_s, kind, subject in order:
            calendar.put(at_s, kind, subject)
        assert drained(calendar) == events


def test_equal_events_come_as_they_were_put_down_and_are_never_compared() -> None:
    calendar = Calendar()
    for subject in ("z", {"a": 1}, 5, "a"):
        calendar.put(7, Kind.SUBMITS, subject)
    assert [subject for _, _, subject in drained(calendar)] == ["z", {"a": 1}, 5, "a"]


def test_what_ends_is_over_before_anything_else_of_its_instant() -> None:
    assert list(Kind) == sorted(Kind)
    assert min(Kind) == Kind.ENDS
    assert Kind.GRACE_OVER < Kind.FAILS < Kind.SUBMITS < Kind.FOLLOWS < Kind.WAKES
