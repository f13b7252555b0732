"""A cluster as a test drives it: submit, wait, interfere, and ask what Slurm itself has written down."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from infra.slurm.cluster import Cluster

UNFINISHED = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED"})
ACCOUNTS = {"alice": "proj-a1", "bob": "proj-b1"}
SINCE = "now-1days"


class Row(NamedTuple):
    """One run as ``sacct -P --duplicates`` lists it, times in seconds since the epoch; 0 where there is none."""

    job: str
    state: str
    start_s: int
    end_s: int


class Slurm:
    """What tests do with a cluster.

    Args:
        cluster: A running one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.environment = cluster.environment

    def submit(
        self,
        name: str,
        *options: str,
        script: str = "sleep 5",
        user: str = "alice",
        account: str | None = None,
    ) -> str:
        """Submit a batch job and return its id.

        Args:
            name: The job's name.
            options: Options of ``sbatch``, such as ``--gres=gpu:2``.
            script: What it runs, without the line that names the shell.
            user: alice or bob.
            account: An account of the user; the user's own unless given.
        """
        given = ("-A", account or ACCOUNTS[user], "-J", name, "-o", "/dev/null", *options)
        return (
            self.cluster.ask("sbatch", "--parsable", *given, user=user, stdin=f"#!/bin/sh\n{script}\n")
            .partition(";")[0]
            .strip()
        )

    def wait(self, job: str, *states: str, wait_s: float = 120) -> None:
        """Wait until every task of a job is in one of the states; until it is over when none is named."""

        def reached() -> bool:
            now = self.states(job)
            return bool(now) and (now <= set(states) if states else not now & UNFINISHED)

        self.cluster.until(reached, f"job {job} {' or '.join(states) or 'over'}", wait_s)

    def states(self, job: str) -> set[str]:
        """Return the states of a job's tasks, as slurmctld sees them."""
        return set(self.cluster.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").split())

    def control(self, *arguments: str) -> str:
        """Run ``scontrol``, such as ``control("requeue", job)``."""
        return self.cluster.ask("scontrol", *arguments)

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        self.cluster.ask("scancel", job)

    def fail_node(self, node: str) -> None:
        """Kill everything of a node and wait until slurmctld has noticed."""
        self.cluster.kill_node(node)
        self.cluster.until(lambda: node in self.cluster.down_nodes(), f"{node} down", 120)

    def mend_node(self, node: str) -> None:
        """Start a failed node again and wait until it takes jobs."""
        self.cluster.start_node(node)
        self.cluster.until(lambda: node not in self.cluster.down_nodes(), f"{node} up", 120)

    def settle(self, wait_s: float = 180) -> None:
        """Wait until every job is over and the accounting database says so too."""

        def settled() -> bool:
            queued = set(self.cluster.ask("squeue", "-h", "-o", "%T").split())
            return not queued & UNFINISHED and all(row.end_s for row in self.rows() if row.start_s)

        self.cluster.until(settled, "all jobs over", wait_s)

    def rows(self) -> Sequence[Row]:
        """Return every run of every job so far, in the order of their starts."""
        columns = ("JobID", "State", "Start", "End")
        printed = self.cluster.ask(
            "env",
            "SLURM_TIME_FORMAT=%s",
            "sacct",
            "-anPXD",
            "-S",
            SINCE,
            "-E",
            "now+1days",
            "-o",
            ",".join(columns),
        )
        rows = [line.split("|") for line in printed.splitlines()]
        return sorted(
            (Row(job, state.split()[0], _second(start), _second(end)) for job, state, start, end in rows),
            key=lambda row: (row.start_s, row.end_s),
        )

    def accounting(self) -> str:
        """Return what ``sacct --json`` prints, which always lists every run."""
        return self.cluster.ask("sacct", "-a", "--json", "-D", "-S", SINCE, "-E", "now+1days")

    def sacct(self) -> list[dict[str, Any]]:
        """Return the records of ``sacct --json``."""
        return list(json.loads(self.accounting())["jobs"])


def _second(text: str) -> int:
    return int(text) if text.isdigit() else 0
