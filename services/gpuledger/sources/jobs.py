"""From a job that ran at most once to its facts; the accounts of foreign teams."""

from collections.abc import Mapping, Sequence

import msgspec

from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.accounts import clash_suffix, escape_part, join
from gpuledger.kernel.clock import instant
from gpuledger.sources.values import PART_LIMIT_BYTES, Odd, name

RUN = "1"
"""The id of the only run of a workload."""

NO_USER = "-"
"""The user of records that name none."""


class Job(msgspec.Struct, kw_only=True, gc=False):
    """What a record says about a workload with at most one run.

    Args:
        source: Who says so, such as ``trace/philly/philly``.
        submitted_s: When it was submitted; None when the record does not know: then nothing is said of a wait.
        started_s: When its run started; None when none did.
        ended_s: When it ended; None when it has not.
        reason: Why it ended.
        estimated: Whether the end is the last that is known of it, not the true end.
        exit: Its exit code, where the record has one.
        run: The id of its run.
        eligible_s: When it could first start, where the record says so.
        labels: What else the source says of it, for mapping rules; never a person's name.
    """

    source: str
    cluster: str
    workload: str
    account: str
    user: str
    gpus_milli: int
    submitted_s: int | None
    started_s: int | None
    ended_s: int | None
    reason: str
    estimated: bool = False
    exit: str | None = None
    run: str = RUN
    kind: str | None = None
    eligible_s: int | None = None
    gpu_model: str | None = None
    time_limit_s: int | None = None
    hosts: list[str] | None = None
    gpu_uuids: list[str] | None = None
    labels: dict[str, str] | None = None

    def facts(self) -> list[tuple[Event, bytes]]:
        """Return submission, start and end, as far as they happened."""
        facts = []
        if self.submitted_s is not None:
            facts.append(self._submitted(self.submitted_s))
        if self.started_s is not None:
            facts.append(self._started(self.started_s))
        if self.ended_s is not None:
            facts.append(self._ended(self.ended_s))
        return facts

    def _submitted(self, at_s: int) -> tuple[Event, bytes]:
        submitted = Submitted(
            cluster=self.cluster,
            workload=self.workload,
            account=self.account,
            user=self.user,
            gpus_milli=self.gpus_milli,
            gpu_model=self.gpu_model,
            time_limit_s=self.time_limit_s,
            kind=self.kind,
            eligible_at=None if self.eligible_s is None else instant(self.eligible_s),
            labels=self.labels or None,
        )
        return make(id=f"{self.workload}/submitted", source=self.source, at_s=at_s, data=submitted)

    def _started(self, at_s: int) -> tuple[Event, bytes]:
        is_known = self.submitted_s is not None
        started = Started(
            cluster=self.cluster,
            workload=self.workload,
            run=self.run,
            attempt=1,
            gpus_milli=self.gpus_milli,
            gpu_model=self.gpu_model,
            hosts=self.hosts or [],
            gpu_uuids=self.gpu_uuids,
            account=None if is_known else self.account,
            user=None if is_known else self.user,
        )
        return make(id=f"{self._of_run}/started", source=self.source, at_s=at_s, data=started)

    def _ended(self, at_s: int) -> tuple[Event, bytes]:
        ended = Ended(
            cluster=self.cluster,
            workload=self.workload,
            reason=self.reason,
            run=None if self.started_s is None else self.run,
            exit=self.exit,
            estimated=self.estimated or None,
        )
        return make(id=f"{self._of_run}/ended", source=self.source, at_s=at_s, data=ended)

    @property
    def _of_run(self) -> str:
        return self.workload if self.run == RUN else f"{self.workload}/{self.run}"


UnderstoodJob = tuple[Job, Sequence[Odd]]
"""A job, and what is odd about its record."""


class Teams:
    """Accounts of foreign teams, directly below a root.

    Two teams whose names differ only by case are two accounts: the one that comes second in the file gets a
    suffix.

    Args:
        context: What ``remember`` returned for the record, on a retry.
    """

    def __init__(self, context: Mapping[str, object] | None = None) -> None:
        self._first: dict[tuple[str, str], str] = {}
        self._accounts: dict[str, dict[str, str]] = {}
        kept = (context or {}).get("team")
        if isinstance(kept, list) and len(kept) == 3 and all(isinstance(item, str) for item in kept):  # noqa: PLR2004
            self._first[kept[0], kept[1]] = kept[2]

    def account(self, field: str, root: str, team: str) -> tuple[str, list[Odd]]:
        """Return the account's path, and a remark when its name clashes with another's.

        Raises:
            BadRecord: When the team's name is missing or cannot be a name.
        """
        accounts = self.known(root)
        known = accounts.get(team)
        if known is not None:
            return known, []
        part = escape_part(name(field, team, limit_bytes=PART_LIMIT_BYTES))
        first = self._first.setdefault((root, part), team)
        odd: list[Odd] = []
        if first != team:
            part += clash_suffix(team)
            odd.append(("case-clash", f"{field}: {team!r} and {first!r} differ only by case: two accounts"))
        path = accounts[team] = join(root, part)
        return path, odd

    def known(self, root: str) -> dict[str, str]:
        """Return the accounts of the teams below a root that have one by now; it grows as they come."""
        return self._accounts.setdefault(root, {})

    def remember(self, root: str, team: str) -> dict[str, object]:
        """Return what a retry needs to give the team the same account."""
        if not team or len(team.encode()) > PART_LIMIT_BYTES:
            return {}
        part = escape_part(team)
        first = self._first.get((root, part))
        return {} if first is None else {"team": [root, part, first]}
