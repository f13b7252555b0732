"""Slurm through its own commands: what it says, and what is done to it."""

from dataclasses import dataclass, replace

import sqlalchemy as sa

from gpuledger.collect.programs import CommandFailed, Programs
from gpuledger.database.engine import reading
from gpuledger.enforce import slurm_seen
from gpuledger.enforce.config import Slurm
from gpuledger.enforce.names import Reading, resolve
from gpuledger.enforce.plan import Action, Applied, Command, Draft
from gpuledger.enforce.reading import read_facts
from gpuledger.enforce.slurm import draft
from gpuledger.enforce.slurm_errors import may_pass
from gpuledger.enforce.slurm_seen import Seen
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries
from gpuledger.sources.slurm.job import SCHEDULER


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """A Slurm cluster as its commands show it here.

    Args:
        engine: The ledger.
        programs: Runs the commands.
        config: What may be changed.
        clock: Says the present.
        calendar: The organisation's days before it has set its own.
    """

    engine: sa.Engine
    programs: Programs
    config: Slurm
    clock: Clock
    calendar: Calendar

    def draft(self, applied: Applied) -> tuple[str, Draft]:
        """Return the cycle and what is wanted; see ``Scheduler.draft``."""
        seen = self.look()
        cluster = self.config.cluster or escape_part(seen.cluster)
        with reading(self.engine) as reader:
            facts = read_facts(
                reader,
                cluster,
                seconds(self.clock.now()),
                scheduler=SCHEDULER,
                calendar=self.calendar,
                stale_after_s=self.config.stale_after_s,
            )
            rules = queries.mapping(reader, cluster)
        named = resolve(
            (one.account for one in seen.associations if not one.user),
            facts.issued(),
            Reading(rules, cluster, facts.now_s),
            given=self.config.names,
            managed=self.config.managed,
        )
        return facts.cycle, draft(facts, seen, named, self.config, applied)

    def act(self, action: Action) -> None:
        """Run a command; see ``Scheduler.act``."""
        if not isinstance(action, Command):
            raise Refused(f"Slurm takes commands, not {action.shown}")
        try:
            replace(self.programs, attempts=1).ask(*action.words)  # the next run tries again
        except CommandFailed as error:
            if may_pass(error.said):
                raise
            raise Refused(error.message, hint=error.hint) from error

    def look(self) -> Seen:
        """Return the cluster as it is now, no more of it than is asked for.

        Raises:
            CommandFailed: When a command fails.
            Refused: When one is not installed, or its answer cannot be read.
        """
        settings = slurm_seen.settings(self._told(slurm_seen.CONFIGURATION))
        cluster = settings.get("ClusterName", "")
        wants_jobs = self.config.order is not None or self.config.preempt
        return Seen(
            cluster=cluster,
            limits_are_safe="safe" in settings.get("AccountingStorageEnforce", "").split(","),
            associations=slurm_seen.associations(self._told(slurm_seen.ASSOCIATIONS), cluster),
            qos=slurm_seen.qualities(self._told(slurm_seen.QOS)) if self.config.unallocated else {},
            usage=slurm_seen.usages(self._told(slurm_seen.USAGE)) if self.config.budgets else {},
            jobs=slurm_seen.jobs(self._told(slurm_seen.JOBS)) if wants_jobs else (),
            nodes=slurm_seen.nodes(self._told(slurm_seen.NODES)) if self.config.hosts else (),
        )

    def _told(self, command: tuple[str, ...]) -> str:
        return self.programs.ask(*command).read_text(encoding="utf-8", errors="replace")
