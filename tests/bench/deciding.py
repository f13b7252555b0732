"""Run a full cycle and one by event, both published, and print the most memory held in MiB: ``deciding WAITING``."""

import json
import sys

from tests.bench.peak import peak_mib
from tests.bench.test_policy_cycle import NOW_S, cluster, submission

from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.incremental import prepare
from gpuledger.policy.published import as_json


def main(waiting: int) -> None:
    """Hold what the service holds at once: the state, the cycle, its record, and what an event is answered from."""
    prepared = prepare(cluster(waiting), PolicyConfig()).settled()
    record = as_json(prepared.cycle)
    _, cycle = prepared.submitted(submission(0), NOW_S)
    json.dump(
        {"mib": peak_mib(), "decisions": len(record["decisions"]), "by_event": len(cycle.decisions)},
        sys.stdout,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
