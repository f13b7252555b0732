"""Users learn to ask for more, and never for less."""

from collections.abc import Iterable

from tests.simulating import job

from gpuledger.simulator.jobs import Job
from gpuledger.simulator.worlds.habits import HIGH, LOW, MEDIUM, Habits

WAIT_S = 1000


def names(raised: Iterable[tuple[Job, int]]) -> list[tuple[str, int]]:
    return [(asked.job, priority) for asked, priority in raised]


def test_a_job_asks_for_what_its_user_states() -> None:
    habits = Habits(WAIT_S)
    stated = (-3, 0, 1, 2, 9)
    assert [habits.waits(job(f"j{n}", priority=p, user=f"u{n}"), 0) for n, p in enumerate(stated)] == [
        LOW, LOW, MEDIUM, HIGH, HIGH,
    ]  # fmt: skip


def test_who_waits_for_long_asks_for_more_next_time_and_for_all_that_waits() -> None:
    habits = Habits(WAIT_S)
    habits.waits(job("a", user="ann"), 0)
    habits.waits(job("b", user="ann"), 10)
    habits.waits(job("c", user="bob"), 20)
    assert names(habits.look(999)) == []
    assert names(habits.look(1000)) == [("a", MEDIUM), ("b", MEDIUM)]
    assert habits.waits(job("d", user="ann"), 1001) == MEDIUM
    assert habits.waits(job("e", user="bob"), 1001) == LOW
    assert names(habits.look(1999)) == [
        ("c", MEDIUM),
        ("e", MEDIUM),
    ]  # a and b have not waited long as MEDIUM
    assert names(habits.look(2000)) == [("a", HIGH), ("b", HIGH), ("d", HIGH)]


def test_who_goes_on_waiting_goes_on_learning_until_there_is_nothing_higher() -> None:
    habits = Habits(WAIT_S)
    habits.waits(job("a", user="ann"), 0)
    steps = [names(habits.look(at_s)) for at_s in (1000, 1999, 2000, 3000, 9000)]
    assert steps == [[("a", MEDIUM)], [], [("a", HIGH)], [], []]
    habits.rests("a")
    assert habits.waits(job("b", user="ann"), 9001) == HIGH


def test_who_starts_in_time_learns_nothing() -> None:
    habits = Habits(WAIT_S)
    habits.waits(job("a", user="ann"), 0)
    habits.rests("a")
    habits.waits(job("a", user="ann"), 900)  # it waits again: a wait of its own
    assert names(habits.look(1800)) == []
    assert names(habits.look(1900)) == [("a", MEDIUM)]


def test_who_loses_gpus_learns_once() -> None:
    habits = Habits(WAIT_S)
    habits.waits(job("waits", user="ann"), 0)
    assert names(habits.learns("ann", LOW, 3)) == [("waits", MEDIUM)]
    assert names(habits.learns("ann", LOW, 3)) == []
    assert names(habits.learns("ann", HIGH, 3)) == []
    assert habits.waits(job("next", user="ann"), 5) == MEDIUM
    assert names(habits.learns("bob", MEDIUM, 3)) == []
    assert habits.waits(job("his", user="bob"), 5) == HIGH
