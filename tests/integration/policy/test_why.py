"""A workload's story from a ledger, why it waits, and what would let it start."""

from collections.abc import Iterator

import pytest
from tests.integration.policy.stories import (
    DAY,
    HOUR,
    NOON,
    World,
    happened,
    small_cluster,
    started,
    submitted,
)

from gpuledger.database.engine import reading
from gpuledger.events import workload
from gpuledger.events.envelope import Event, make
from gpuledger.kernel.errors import NotFound
from gpuledger.policy.counterfactual import Obstacle
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.story import State
from gpuledger.policy.telling import lines_of


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with small_cluster(database_url) as found:
        yield found


def test_a_waiting_workload_is_told_its_place_its_ratios_and_its_date(world: World) -> None:
    assert world.why("w-b8").decided is None
    world.cycle()
    answer = world.why("w-b8", NOON + 30)
    decided = answer.decided
    assert (answer.story.state, answer.ahead) == (State.WAITS, None)
    assert decided is not None
    assert (decided.action, decided.numbers["position"]) == ("wait", 2)
    assert [level.account for level in decided.chain] == ["c", "c/b"]
    assert decided.chain[1].before[0][0] == "c/a"
    # w-a is protected until 13:00; then a cycle within a minute, a minute of grace, and the next cycle.
    assert (decided.starts_by_s, decided.certainty) == (NOON + HOUR + 180, Certainty.BOUND)


def test_what_if_names_the_run_that_is_in_the_way(world: World) -> None:
    world.cycle()
    ahead = world.why("w-b8", NOON + 30, what_if=True).ahead
    assert ahead is not None
    by_kind = {change.found.obstacle: change for change in ahead.changes}
    runs = by_kind[Obstacle.RUNS]
    assert [run.workload for run in runs.found.runs] == ["w-a"]
    assert (runs.expected_s, runs.certainty) == (NOON + HOUR, Certainty.ESTIMATE)
    assert by_kind[Obstacle.GPUS].found.gpu_model == "x"
    assert ahead.starts_at_s == NOON + HOUR + 60


def test_a_preempted_run_is_told_for_whom(world: World) -> None:
    world.take(started("w-b4", NOON, 4))
    world.cycle(NOON + 60)
    world.cycle(NOON + HOUR)
    world.cycle(NOON + HOUR + 30)
    stop = happened(workload.Preempted, "w-a", NOON + HOUR + 60, run="1", reason="preempted")
    world.take(stop)
    world.cycle(NOON + HOUR + 120)
    answer = world.why("w-a", NOON + HOUR + 120)
    assert answer.story.state is State.WAITS
    told = next(one.text for one in answer.story.happenings if one.what == "preempted")
    assert told.startswith("Preempted after 2 h 1 min: Leaves for w-b8 of account c/b")
    # By then a later cycle had repeated the order; the comparison is that of the cycle that gave it.
    assert told.endswith("until the minimum runtime of what runs here was over.")
    announced = [one for one in answer.story.happenings if one.what.startswith("preemption")]
    # It was told once that it has to leave, however often the order was repeated.
    assert [(one.what, one.at_s) for one in announced] == [("preemption announced", NOON + HOUR)]
    assert answer.decided is not None


def test_an_end_that_the_reconciliation_contradicts_is_kept_and_shown(world: World) -> None:
    def ended(at_s: int, source: str) -> Event:
        data = workload.Ended(cluster="c", workload="w-a", run="1", reason="completed")
        return make(id=f"end/{at_s}", source=source, at_s=at_s, data=data)[0]

    world.take(ended(NOON - 600, "reconcile/slurm"))
    world.take(ended(NOON - 60, "slurm/c"))
    answer = world.why("w-a")
    (one,) = answer.story.superseded
    assert (one.fact.at_s, one.by.at_s, one.fact.source) == (NOON - 60, NOON - 600, "slurm/c")
    assert answer.as_json()["superseded"] == [one.as_json()]
    (line,) = [line for line in lines_of(answer) if "does not count" in line]
    assert line.startswith(
        "  [1] ended at 2027-01-15T11:59:00Z, says slurm/c; does not count: ended at 2027-01-15T11:50"
    )
    assert "a reconciliation is believed before any other source" in line
    assert [one.at_s for one in answer.story.happenings if one.what == "ended"] == [NOON - 600]


def test_the_story_of_an_earlier_instant_knows_nothing_later(world: World) -> None:
    world.cycle()
    assert world.why("w-old", NOON - DAY + HOUR).story.state is State.RUNS
    assert world.why("w-old").story.state is State.OVER
    assert world.why("w-b4", NOON - 1).decided is None
    with pytest.raises(NotFound, match="by then"):
        world.why("w-b4", NOON - HOUR)


def test_cost_is_what_is_booked_and_what_came_since(world: World) -> None:
    assert world.why("w-old").story.cost.charged_gpu_ms == 10 * 3 * HOUR * 1000
    assert world.why("w-a").story.open_gpu_ms == 6 * HOUR * 1000


def test_cost_at_an_instant_of_the_past_counts_up_to_it_and_no_more_of_its_day(world: World) -> None:
    for ago_s in (HOUR, 30, 0):
        at_s = NOON - DAY + 3 * HOUR - ago_s
        story = world.why("w-old", at_s).story
        assert story.cost.charged_gpu_ms + story.open_gpu_ms == 10 * 1000 * (3 * HOUR - ago_s)


def test_an_unknown_workload_is_named_with_near_ones(world: World) -> None:
    with pytest.raises(NotFound, match="w-b5") as caught:
        world.why("w-b5")
    assert "w-b4" in caught.value.hint
    with pytest.raises(NotFound, match="nowhere"):
        world.why("w-b4", cluster="nowhere")


def test_the_text_has_every_part_and_the_document_too(world: World) -> None:
    world.cycle()
    answer = world.why("w-b8", NOON + 30, what_if=True)
    text = "\n".join(lines_of(answer))
    for part in (
        "Submitted for c/b",
        "Cost so far",
        "Reserved: 8 GPUs on host h1",
        "Starts by",
        "w-a/1",
        "estimate",
    ):
        assert part in text
    document = answer.as_json()
    assert document["decision"]["starts_by"] == "2027-01-15T13:03:00Z"
    assert document["ahead"]["starts_now_without"][0]["obstacle"] == "runs"


def test_what_the_window_has_to_forget_is_dated(world: World) -> None:
    """c/b used 30 GPU-hours yesterday, so that c/a comes first for the one GPU that is free."""
    world.take(
        happened(workload.Ended, "w-b4", NOON - 1500, reason="cancelled"),
        happened(workload.Ended, "w-b8", NOON - 800, reason="cancelled"),
        submitted("w-b3", "c/b", NOON - 1000, 3),
        started("w-b3", NOON - 1000, 3),
        submitted("w-a1", "c/a", NOON - 500, 1),
        submitted("w-b1", "c/b", NOON - 600, 1),
    )
    world.cycle()
    ahead = world.why("w-b1", NOON, what_if=True).ahead
    assert ahead is not None
    use = next(change for change in ahead.changes if change.found.obstacle is Obstacle.USE)
    assert use.found.account == "c/b"
    # It used 10 GPUs from yesterday noon on, which the window forgets a week later at 10 GPU-hours an hour.
    assert use.expected_s == NOON - DAY + 7 * DAY + -(-use.found.gpu_ms // 10_000)
    assert [burst.gpu_ms for burst in use.bursts] == [30 * HOUR * 1000, 3 * 1000 * 1000]
    assert use.bursts[0].forgotten_by_s == NOON - DAY + 3 * HOUR + 7 * DAY


def test_how_to_go_on_from_a_checkpoint_is_kept_aside_and_told(world: World) -> None:
    """An interactive run that has to leave: its user finds again where it stood, until that is erased."""
    path = "s3://ada/session"
    for at_s, said in ((NOON - 1200, path), (NOON - 900, "suspended")):
        world.take(happened(workload.Checkpointed, "w-a", at_s, run="1", restore=said))
    with reading(world.engine) as reader:
        (journal,) = reader.exec_driver_sql(
            "SELECT string_agg(body::text, '') FROM ledger.journal WHERE type = 'workload.checkpointed'"
        ).one()
    assert (path in journal, "(aside)" in journal) == (False, True)

    def told(at_s: int) -> str:
        return next(one.text for one in world.why("w-a", at_s).story.happenings if one.what == "checkpointed")

    assert told(NOON - 1000).endswith(f"To go on from it: {path}")
    assert told(NOON).endswith("To go on from it: suspended")  # a word of programs is kept as it is
    with world.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM side.texts")
    assert told(NOON - 1000) == "Saved its work, for the last time so far."
