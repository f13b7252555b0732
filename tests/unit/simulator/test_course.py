"""What the time of a run goes into, against a count of its seconds."""

from hypothesis import given
from hypothesis import strategies as st
from tests.simulating import job

from gpuledger.simulator.course import Outcome, course
from gpuledger.simulator.facts import Departure

SMALL = st.integers(0, 30)


def test_a_run_of_a_job_that_goes_on() -> None:
    way = course(job("j", work_s=500, startup_s=10, idle_s=5), 1000, 300)
    assert (way.loaded_s, way.done_s, way.ends_s, way.why) == (1010, 1310, 1315, Departure.DONE)


def test_a_time_limit_cuts_it_short() -> None:
    way = course(job("j", work_s=500, startup_s=10, time_limit_s=200), 1000, 500)
    assert (way.done_s, way.ends_s, way.why) == (1510, 1200, Departure.TIME_LIMIT)


@given(startup_s=SMALL, work_s=SMALL, idle_s=SMALL, checkpoint_s=st.none() | st.integers(1, 12), left_s=SMALL)
def test_its_outcome_is_what_a_count_of_its_seconds_gives(
    startup_s: int, work_s: int, idle_s: int, checkpoint_s: int | None, left_s: int
) -> None:
    way = course(job("j", work_s=work_s, startup_s=startup_s, idle_s=idle_s), 1000, work_s)
    left_s = min(left_s, way.ends_s - 1000)
    loading = worked = idle = saved = 0
    for _ in range(left_s):
        if loading < startup_s:
            loading += 1
        elif worked < work_s:
            worked += 1
            if worked == work_s or (checkpoint_s and worked % checkpoint_s == 0):
                saved = worked
        else:
            idle += 1
    assert way.outcome(1000 + left_s, checkpoint_s) == Outcome(saved, worked - saved, loading, idle)
    assert way.is_done(1000 + left_s) == (loading == startup_s and worked == work_s)
