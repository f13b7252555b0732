import datetime as dt

from gpuledger_pipelines.defs.late import watching
from gpuledger_pipelines.defs.late.touched import Mark, Touched, ranges
from gpuledger_pipelines.defs.late.watching import AGAIN_AFTER_S, Asked, Outcome, Watched

DAY = dt.date(2026, 11, 1)
MARK, NEXT = Mark(5, 1, 86_400), Mark(9, 1, 2 * 86_400)
NOW_S = 1_000_000


def day(n: int) -> dt.date:
    return DAY + dt.timedelta(days=n)


def test_days_that_follow_each_other_are_one_run() -> None:
    assert ranges([day(3), day(1), day(2), day(7)]) == [(day(1), day(3)), (day(7), day(7))]


def test_a_tick_asks_for_what_is_touched_and_remembers_it() -> None:
    touched = Touched((day(0), day(1), day(5)), ("2026-10",))
    watched, runs = watching.ask("c", Watched(MARK), NEXT, touched, {"2026-10": day(-31)}, NOW_S)
    assert [(run.first, run.last, run.period) for run in runs] == [
        (day(0), day(1), None),
        (day(5), day(5), None),
        (day(-31), day(-31), "2026-10"),
    ]
    assert len({run.key for run in runs}) == 3
    assert watched == Watched(NEXT, tuple(runs), NOW_S)


def test_what_it_remembers_is_read_again() -> None:
    cursor = {
        "c": Watched(MARK, (Asked("k", day(0), day(3)), Asked("b", day(0), day(0), "2026-10")), 7),
        "d": Watched(),
    }
    assert watching.read(watching.write(cursor)) == cursor
    assert watching.read(None) == watching.read("") == {}


def test_what_is_done_is_forgotten_and_what_is_at_work_waited_for() -> None:
    done, busy, failed = (Asked(name, day(n), day(n)) for n, name in enumerate(("done", "busy", "failed")))
    outcomes = {"done": Outcome.DONE, "busy": Outcome.AT_WORK, "failed": Outcome.FAILED}
    watched = watching.settled(Watched(MARK, (done, busy, failed)), outcomes)
    assert watched.asked == (busy, failed)
    assert watching.at_work(watched, outcomes) == ["busy"]


def test_days_whose_run_failed_are_asked_for_again_after_a_while_with_what_came_since() -> None:
    failed = Watched(MARK, (Asked("old", day(0), day(1)),), asked_at_s=NOW_S)
    soon, late = NOW_S + AGAIN_AFTER_S - 1, NOW_S + AGAIN_AFTER_S
    assert not watching.due_again(failed, soon)
    assert watching.due_again(failed, late)

    kept, runs = watching.ask("c", failed, NEXT, Touched((day(9),)), {}, soon)
    assert [(run.first, run.last) for run in runs] == [(day(9), day(9))]
    assert kept.asked == (*failed.asked, *runs)

    watched, again = watching.ask("c", failed, NEXT, Touched((day(2),)), {}, late)
    assert [(run.first, run.last) for run in again] == [(day(0), day(2))]
    assert watched == Watched(NEXT, tuple(again), late)


def test_nothing_touched_moves_the_mark_alone() -> None:
    watched, runs = watching.ask("c", Watched(MARK, (), 3), NEXT, Touched(), {}, NOW_S)
    assert not runs
    assert watched == Watched(NEXT, (), 3)


def test_budgets_that_failed_are_asked_for_again_alone() -> None:
    failed = Watched(MARK, (Asked("old", day(0), day(0), "2026-10"),), asked_at_s=0)
    _, (run,) = watching.ask("c", failed, NEXT, Touched(), {}, NOW_S)
    assert (run.first, run.period) == (day(0), "2026-10")
