"""Simulations in processes of their own: several at once, one progress bar, and none is left behind."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gpuledger.cli.output import note, progress

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gpuledger.simulator.document import Simulation
    from gpuledger.simulator.playing import Play

LOOK_EACH_S = 0.5
STOP_S = 10.0

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "--processes", min=1, max=256, help="Run so many at once; one for each core unless given."
    ),
]
Done = Mapping[int, "Simulation"]
"""Place of a play -> what came of it."""

_seen: MutableSequence[int] = []
"""In a process of a pool: how far each play is, in simulated seconds; shared with the command."""


class Failed(NamedTuple):
    """An error of a simulation, as it comes from another process.

    Args:
        message: What was wrong.
        hint: What a person can do about it.
        refused: Whether it was the caller's fault.
    """

    message: str
    hint: str
    refused: bool


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_here(play: "Play", place: int = 0) -> "Simulation | Failed":
    """Run a simulation in this process, which the command started for it."""
    from gpuledger.kernel.errors import GpuledgerError, Refused
    from gpuledger.simulator import playing

    try:
        scenario = playing.prepare(play)

        def watch(at_s: int) -> None:
            if place < len(_seen):
                _seen[place] = at_s - scenario.start_s

        return playing.run_prepared(scenario, play.world, watch=watch)
    except GpuledgerError as error:  # as a value: an error with arguments of its own does not travel
        return Failed(error.message, error.hint, isinstance(error, Refused))


def run_all(
    what: str,
    plays: "Sequence[Play]",
    length_s: int,
    processes: int | None,
    *,
    interrupted: Callable[[Done], None] = lambda _: None,
) -> "list[Simulation]":
    """Run simulations in processes of their own; the order of the reports is that of the plays.

    Args:
        what: What they are called on the progress bar.
        plays: Which.
        length_s: The simulated seconds of each.
        processes: How many at once; one for each core unless given.
        interrupted: Told what was done, when somebody interrupts it; no process is left then.

    Raises:
        GpuledgerError: When one of them fails, or a process is killed.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    from gpuledger.kernel.errors import GpuledgerError

    found: dict[int, Simulation] = {}
    # Spawned, not forked: a fork would take over whatever threads and locks the command has.
    spawning = get_context("spawn")
    seen = spawning.Array("q", len(plays), lock=False)
    pool = ProcessPoolExecutor(
        min(processes or cores(), len(plays)), mp_context=spawning, initializer=_begin, initargs=(seen,)
    )
    try:
        with progress(what, length_s * len(plays)) as advance:
            with _not_interrupted():
                waiting = {pool.submit(run_here, play, place): place for place, play in enumerate(plays)}
            while waiting:
                advance(sum(seen))
                found.update(_finished(waiting))
    except BrokenProcessPool as error:
        raise GpuledgerError(
            f"{what}: a process was killed",
            hint="run fewer at once, with --jobs: each needs memory of its own",
        ) from error
    except KeyboardInterrupt:
        note(f"{what}: interrupted; {len(found)} of {len(plays)} simulations were done")
        interrupted(found)
        raise
    finally:
        is_done = len(found) == len(plays)
        pool.shutdown(wait=is_done, cancel_futures=True)
        if not is_done:
            _stop()
    return [found[place] for place in range(len(plays))]


def _finished(waiting: "dict[Future[Simulation | Failed], int]") -> "Iterator[tuple[int, Simulation]]":
    """Wait for a while, and yield what is done by then."""
    from concurrent.futures import FIRST_COMPLETED, wait

    from gpuledger.kernel.errors import GpuledgerError, Refused

    for done in wait(waiting, LOOK_EACH_S, FIRST_COMPLETED).done:
        outcome = done.result()
        if isinstance(outcome, Failed):
            raise (Refused if outcome.refused else GpuledgerError)(outcome.message, hint=outcome.hint)
        yield waiting.pop(done), outcome


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Keep Ctrl-C for later. Whoever is started meanwhile never hears it: it is for the command to end them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(seen: MutableSequence[int]) -> None:
    """Take over where a process of the pool says how far it is."""
    global _seen  # noqa: PLW0603 - what a pool gives its processes has no other place
    _seen = seen


def _stop() -> None:
    """End every process that was started, and wait until it is gone."""
    from multiprocessing import active_children

    children = active_children()
    for child in children:
        child.terminate()
    for child in children:
        child.join(STOP_S)


__all__ = ["Done", "Failed", "Jobs", "cores", "run_all", "run_here"]
