"""``gjob``: the story of a job in plain words, the same as ``gpuledger why`` tells it."""

import argparse
import sys
from collections.abc import Sequence

from gpuledger.login import asking


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    made = asking.parser("gjob", "Tell what happened to a job and why, what it cost, and what it waits for.")
    made.add_argument(
        "jobs", metavar="JOBID", nargs="+", help="a job, as the scheduler names it, such as 8841 or 8841_7"
    )
    made.add_argument(
        "--what-if", action="store_true", help="look for what would let it start now; takes longer"
    )
    options = made.parse_args(arguments)
    return asking.end_of("gjob", lambda: _run(options), as_json=options.json)


def _run(options: argparse.Namespace) -> int:
    import msgspec

    with asking.open_client() as client:
        told = [
            client.workload(job, cluster=options.cluster, what_if=options.what_if) for job in options.jobs
        ]
    if options.json:
        asking.print_document({"jobs": [msgspec.to_builtins(each) for each in told]})
        return 0
    print("\n\n".join("\n".join(each.lines) for each in told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
