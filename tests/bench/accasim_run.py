"""Simulate an SWF file with AccaSim 1.1.3, and print how it went: ``accasim_run SWF HOSTS GPUS_PER_HOST``.

A process of its own: AccaSim takes names from ``collections`` that Python 3.10 removed, keeps its settings in a
singleton and writes into the folder of the program that calls it. EASY backfilling with first fit; it writes no output.
"""

import collections
import collections.abc
import json
import sys
import tempfile
import time
from pathlib import Path

for name in ("Callable", "Iterable", "Mapping", "MutableMapping", "Sequence"):
    setattr(collections, name, getattr(collections.abc, name))


def main(swf: str, hosts: int, gpus_per_host: int) -> None:
    """Run it, and say how many jobs were dispatched in how much processor time; and how long the queue was."""
    from accasim.base.allocator_class import FirstFit
    from accasim.base.event_class import EventManager
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    queues: list[int] = []
    dispatch = EventManager.call_dispatcher

    def counted(manager: object, known: object, queued: list[object]) -> object:
        queues.append(len(queued))
        return dispatch(manager, known, queued)

    EventManager.call_dispatcher = counted
    with tempfile.TemporaryDirectory() as folder:
        system = Path(folder, "system.json")
        described = {"groups": {"host": {"core": gpus_per_host}}, "resources": {"host": hosts}}
        system.write_text(json.dumps(described))
        simulator = Simulator(
            swf,
            str(system),
            EASYBackfilling(FirstFit()),
            scheduling_output=False,
            statistics_output=False,
            show_statistics=False,
            RESULTS_FOLDER_NAME=f"{folder}/",
            LOG_LEVEL="WARNING",
        )
        begun = time.process_time()
        simulator.start_simulation()
        spent = time.process_time() - begun
    json.dump(
        {
            "dispatched": simulator.dispatched_jobs,
            "rejected": simulator.rejected_jobs,
            "s": spent,
            "queue_mean": sum(queues) / len(queues),
            "queue_most": max(queues),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
