"""A cluster that ``gpuledger enforce slurm`` steers, played once from an empty cluster to a repaired node.

Nothing waits for the clock but the minimum runtime; what else takes time happens while it passes.
"""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.commands.fixtures import Ledger
from tests.commands.running import Ran
from tests.slurm.driving import Slurm

CLUSTER = "ai2test"
MINIMUM_S = 40
WHOLE = ("-N1", "-c1", "--mem=1G", "--gres=gpu:8", "-t", "180")

CONFIG = """\
slurm:
  managed: ["proj-*"]
  order: {}
  budgets: {}
  unallocated: {preempted_by: [normal]}
  hosts: true
  preempt: true
"""
BUDGET = """\
accounts:
  ai2test/proj-a1: {share: 1}
  ai2test/proj-b1: {share: 3}
  ai2test/proj-a2: {share: 1, overdraft: hard, grants: [{cluster: ai2test, period: PERIOD, gpu_hours: 0.1}]}
"""
MAPPING = f"""\
rules:
  - when: {{cluster: {CLUSTER}, qos: unallocated}}
    class: unallocated
  - when: {{cluster: {CLUSTER}}}
    minimum_runtime_s: {MINIMUM_S}
"""
POLICY = "settings: {quantum_s: 1, notice_s: 0, hysteresis_permille: 0}\n"
"""Nothing but the minimum runtime keeps a run: a quarter of an hour is too long for a test."""


class Story(NamedTuple):
    """What was seen on the way.

    Args:
        first: What the first run did, after its dry run.
        again: What the same run did once more.
        drift: What a dry run said of a share that was changed by hand.
        mended: What the run after that did.
        used_s: GPU-seconds that Slurm counted for the account of the free job, and for that of a charged one.
        free_in_ledger: The free job's account in the ledger: charged and unallocated, in gpu_ms.
        held: Why the job waited that does not fit its hard account's budget.
        by_slurm: Waiting jobs in the order in which Slurm alone would have started them.
        by_ledger: The same in the order of the cycle.
        priorities: Job -> priority after the run.
        early: What the runs did while the victim was within its minimum runtime.
        victim: The run that was to leave: its job.
        late: What the run did afterwards.
        lasted_s: How long the victim ran, by Slurm's accounting.
        started: Jobs in the order in which they started after that.
        drained: The state of a node that was to be repaired, and once it was well again.
    """

    first: Any
    again: Any
    drift: Ran
    mended: Any
    used_s: tuple[int, int]
    free_in_ledger: tuple[int, int]
    held: str
    by_slurm: list[str]
    by_ledger: list[str]
    priorities: dict[str, int]
    early: list[Any]
    victim: str
    late: Any
    lasted_s: int
    started: list[str]
    drained: tuple[str, str]


class Play:
    """The story as it is played.

    Args:
        slurm: A cluster of two nodes, of its own.
        ledger: An empty ledger, whose commands find the cluster.
        folder: For files.
    """

    def __init__(self, slurm: Slurm, ledger: Ledger, folder: Path) -> None:
        self.slurm, self.ledger, self.folder = slurm, ledger, folder
        self.config = folder / "enforce.yaml"
        self.runs: list[Any] = []

    def tell(self) -> Story:
        """Play it."""
        self._begin()
        first = self.enforce()
        free = self.slurm.submit("free", "-q", "unallocated", *WHOLE, script="sleep 4", user="bob")
        again = self.enforce()
        held = self._ask_for_too_much()
        self.slurm.wait(free)
        free_s = self._used_s("proj-b1")
        running, waiting = self._fill()
        by_slurm = self._in_order(waiting)
        record = self.cycle()
        by_ledger = [job for job in self._order(record) if job in waiting]
        assert self._leaving(record) == []
        self.enforce()
        priorities = {job: int(self._queue(job, "%Q")) for job in waiting}
        # What takes time happens while the minimum runtime passes; every run from here on may end it.
        drift, mended = self._change_by_hand()
        drained = self._repair()
        own = self.ledger.done("balance", "ai2test/proj-b1", "--cluster", CLUSTER)
        victim, late = self._wait_for_the_end_of_protection()
        self.slurm.wait(by_ledger[0], "RUNNING")
        started = [job for job in waiting if self.slurm.states(job) == {"RUNNING"}]
        self.slurm.cancel(next(job for job in running if job != victim))
        self.slurm.wait(by_ledger[1], "RUNNING")
        started += [job for job in waiting if job not in started]
        return Story(
            first, again, drift, mended, (free_s, self._used_s("proj-a1")),
            (own["charged_gpu_ms"], own["unallocated_gpu_ms"]), held, by_slurm, by_ledger, priorities, self.runs[:-1],
            victim, late, self._lasted_s(victim), started, drained,
        )  # fmt: skip

    def _fill(self) -> tuple[list[str], list[str]]:
        """Fill the cluster and let one job of each wait; return who runs and who waits."""
        running = [self.slurm.submit(name, *WHOLE, script="sleep 300") for name in ("a", "b")]
        # Slurm alone would start alice's job first: an account without a share comes last.
        self.slurm.cluster.ask("sacctmgr", "-i", "modify", "account", "name=prog-b", "set", "fairshare=0")
        for job in running:
            self.slurm.wait(job, "RUNNING")
        waiting = [
            self.slurm.submit("of-alice", *WHOLE, script="sleep 300"),
            self.slurm.submit("of-bob", *WHOLE, script="sleep 300", user="bob"),
        ]
        self.slurm.cluster.until(lambda: self._in_order(waiting) == waiting, "Slurm's own order", 30)
        return running, waiting

    def enforce(self) -> Any:  # noqa: ANN401 - any JSON document
        """Run the enforcer, which must do all it wants."""
        self.runs.append(self.ledger.done("enforce", "slurm", "--config", self.config))
        return self.runs[-1]

    def cycle(self) -> Any:  # noqa: ANN401
        """Hear what Slurm says, and decide."""
        self.ledger.done("collect", "slurm", "--once")
        return self.ledger.done("cycle", "--cluster", CLUSTER)

    def _begin(self) -> None:
        self.config.write_text(CONFIG)
        period = time.strftime("%Y-%m", time.gmtime())
        self.ledger.done("collect", "slurm", "--once")
        for command, text in (
            ("budget", BUDGET.replace("PERIOD", period)), ("mapping", MAPPING), ("policy-data", POLICY),
        ):  # fmt: skip
            path = self.folder / f"{command}.yaml"
            path.write_text(text)
            self.ledger.done(
                command, "apply", path, "--yes", *(("--from", 0) if command == "mapping" else ())
            )
        self.ledger.done("cycle", "--cluster", CLUSTER)
        shown = self.ledger.done("enforce", "slurm", "--config", self.config, "--dry-run")
        assert [change["done"] for change in shown["changes"]] == [False] * len(shown["changes"])
        assert self.slurm.cluster.ask("sacctmgr", "-nP", "show", "qos", "unallocated") == ""

    def _change_by_hand(self) -> tuple[Ran, Any]:
        self.slurm.cluster.ask("sacctmgr", "-i", "modify", "account", "name=proj-a1", "set", "fairshare=99")
        drift = self.ledger("enforce", "slurm", "--config", self.config, "--dry-run", "--json")
        return drift, self.enforce()

    def _ask_for_too_much(self) -> str:
        """Ask for 8 GPUs x 3 hours where 6 GPU-minutes are left."""
        job = self.slurm.submit("too-much", *WHOLE, account="proj-a2")
        self.slurm.cluster.until(lambda: "Assoc" in self._queue(job, "%r"), "a limit", 30)
        reason = self._queue(job, "%r")
        self.slurm.cancel(job)
        return reason

    def _repair(self) -> tuple[str, str]:
        states = []
        for word in ("draining", "healthy"):
            told = {
                "id": f"repair/{word}", "source": "repairs/desk", "type": "org.gpuledger.host.state_changed.v1",
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "specversion": "1.0",
                "data": {"cluster": CLUSTER, "host": "node2", "gpus": 8, "gpu_model": "h100", "state": word},
            }  # fmt: skip
            path = self.folder / f"{word}.ndjson"
            path.write_text(json.dumps(told) + "\n")
            self.ledger.done("import", "events", path)
            self.enforce()
            # An asterisk says that slurmctld has not heard of the node lately, which is not the question.
            states.append(
                self.slurm.cluster.ask("sinfo", "-h", "-n", "node2", "-o", "%T").strip().rstrip("*")
            )
            time.sleep(1)  # the next word comes in a later second
        return states[0], states[1]

    def _wait_for_the_end_of_protection(self) -> tuple[str, Any]:
        """Decide and enforce until a job is requeued; return it, and what that run did."""
        deadline = time.monotonic() + MINIMUM_S + 30
        while time.monotonic() < deadline:
            record = self.cycle()
            leaving = self._leaving(record)
            done = self.enforce()
            if any(change["to"] == "requeued" for change in done["changes"]):
                (victim,) = leaving
                return victim, done
        raise AssertionError(f"nobody was requeued: {record}")

    def _leaving(self, record: Any) -> list[str]:  # noqa: ANN401
        """Return the jobs that a cycle orders to leave."""
        return [_job(each["workload"]) for each in record["decisions"] if each["action"] == "preempt"]

    def _lasted_s(self, job: str) -> int:
        """Return how long the first run of a job lasted, once accounting knows its end."""

        def ended() -> list[int]:
            return [
                row.end_s - row.start_s
                for row in self.slurm.rows()
                if row.job == job and row.start_s and row.end_s
            ]

        self.slurm.cluster.until(lambda: bool(ended()), "the end in accounting", 30)
        return ended()[0]

    def _order(self, record: Any) -> list[str]:  # noqa: ANN401
        places = [
            (d["numbers"]["position"], _job(d["workload"]))
            for d in record["decisions"]
            if "position" in d["numbers"]
        ]
        return [job for _, job in sorted(places)]

    def _in_order(self, jobs: list[str]) -> list[str]:
        return sorted(jobs, key=lambda job: -int(self._queue(job, "%Q")))

    def _queue(self, job: str, column: str) -> str:
        return self.slurm.cluster.ask("squeue", "-h", "-t", "all", "-j", job, "-o", column).strip()

    def _used_s(self, account: str) -> int:
        """Return what Slurm charged an account, in seconds of billing: a GPU counts one."""
        printed = self.slurm.cluster.ask("sshare", "-anP", "-o", "Account,User,RawUsage")
        rows = (line.strip().split("|") for line in printed.splitlines())
        return next(int(used) for name, user, used in rows if name == account and not user)


def _job(workload: str) -> str:
    return workload.rpartition("-")[0]
