"""What users used of late, as Slurm remembers it: decayed each time priorities are computed, not in between."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpuledger.kernel.accounts import clash_suffix, escape_part, join, lineage, share_unless_set
from gpuledger.policy.decay import ONE_BITS, decayed
from gpuledger.policy.fair_tree import Association, rank
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec


@dataclass(slots=True)
class _Use:
    gpu_ms: int = 0
    held_milli: int = 0
    since_s: int = 0

    def until(self, at_s: int) -> None:
        """Count what is held up to an instant."""
        self.gpu_ms += self.held_milli * (at_s - self.since_s)
        self.since_s = at_s


class Usage:
    """The use of each user, below the accounts of a scenario.

    Args:
        accounts: The tree; a user has the share 1.
        half_life_s: After so long a use weighs half; 0 forgets nothing.
        at_s: Since when nothing has been used.
    """

    def __init__(self, accounts: Iterable[AccountSpec], half_life_s: int, at_s: int) -> None:
        self._half_life_s = half_life_s
        self._at_s = at_s
        self._shares: dict[str, int] = {}
        self._uses: dict[str, _Use] = {}
        self._leaves: dict[tuple[str, str], str] = {}
        self._above: dict[str, int] = {}  # shares of the accounts that somebody asks for; others have no user
        for spec in accounts:
            self._shares[spec.account] = spec.share

    def leaf(self, job: Job) -> str:
        """Return who a job is charged to: its user in its account, who has a place in the tree from now on."""
        asker = (job.account, job.user)
        if asker not in self._leaves:
            for path in lineage(job.account):
                self._above[path] = self._shares.get(path, share_unless_set(path))
            leaf = join(job.account, f"~{escape_part(job.user)}")
            if leaf in self._uses:  # of somebody whose name differs by case only
                leaf += clash_suffix(job.user)
            self._leaves[asker] = leaf
            self._uses[leaf] = _Use(since_s=self._at_s)
        return self._leaves[asker]

    def holds(self, job: Job, at_s: int) -> None:
        """Take note that a job has its GPUs from now on."""
        self._change(job, job.gpus_milli, at_s)

    def gives_back(self, job: Job, at_s: int) -> None:
        """Take note that a job has its GPUs no longer."""
        self._change(job, -job.gpus_milli, at_s)

    def factors(self, at_s: int, whole: int) -> dict[str, int]:
        """Forget what has decayed since the last time, and return everybody's factor.

        Args:
            at_s: Now.
            whole: What the factor of the first to be served is.
        """
        kept = decayed(at_s - self._at_s, self._half_life_s) if self._half_life_s else 1 << ONE_BITS
        self._at_s = at_s
        for use in self._uses.values():
            use.until(at_s)
            use.gpu_ms = use.gpu_ms * kept >> ONE_BITS
        nodes = [Association(path, share) for path, share in self._above.items()]
        nodes += [Association(path, 1, use.gpu_ms) for path, use in self._uses.items()]
        return {user.path: whole * user.factor.numerator // user.factor.denominator for user in rank(nodes)}

    def _change(self, job: Job, milli: int, at_s: int) -> None:
        use = self._uses[self.leaf(job)]
        use.until(at_s)
        use.held_milli += milli
