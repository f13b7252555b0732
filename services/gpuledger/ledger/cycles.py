"""The record of policy cycles: each is one journalled fact, and lies beside every decision of it for a while.

Two things are called newest. The newest cycle is the newest ``allocation.issued``: whoever reads allocations, credits,
settings or the interval means it. The newest *word* is that cycle with what amended it since: whoever reads
reservations, orders, or the decision of a workload means that one (docs/decisions/0054).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import AllocationAmended, AllocationIssued
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.copying import driver

WAKING = (
    "workload.submitted", "workload.updated", "workload.ended", "workload.preempted", "workload.requeued",
    "workload.resized",
    "host.registered", "host.state_changed", "host.retired",
)  # fmt: skip
"""Facts after which somebody may start: work that came, GPUs that are free, GPUs that came or went."""

_PREEMPT = "preempt"

_ISSUED = (
    "SELECT j.seq, extract(epoch FROM j.effective_at)::bigint, j.body::text FROM ledger.journal AS j"
    " WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'allocation.issued'"
)

_AMENDED = _ISSUED.replace("allocation.issued", "allocation.amended")

_OF_ID = (
    "AND j.seq IN (SELECT i.seq FROM ledger.identities AS i WHERE i.book = %(book)s AND i.event_id = %(id)s)"
    " AND j.body->>'cycle' = %(cycle)s"
)

_NEWEST = (
    "AND j.effective_at <= to_timestamp(%(at)s) AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s::bigint)"
    " ORDER BY j.effective_at DESC, j.seq DESC LIMIT 1"
)


class Recorded(NamedTuple):
    """A cycle as it was journalled.

    Args:
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        issued: The fact.
    """

    seq: int
    at_s: int
    issued: AllocationIssued

    @property
    def id(self) -> str:
        """The cycle's id."""
        return self.issued.cycle

    @property
    def place(self) -> "Place":
        """Where it stands."""
        return Place(self.issued.cluster, self.issued.cycle, self.at_s)


class Amendment(NamedTuple):
    """What submissions changed after a cycle, as it was journalled.

    Args:
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        amended: The fact.
    """

    seq: int
    at_s: int
    amended: AllocationAmended

    @property
    def id(self) -> str:
        """The amendment's id."""
        return self.amended.cycle

    def said_of(self, workload: str) -> Iterator[dict[str, Any]]:
        """Yield what it decided for a workload and its runs."""
        return (one for one in self.amended.record["decisions"] if one["workload"] == workload)


class Word(NamedTuple):
    """The newest statement of the policy on a cluster: a cycle, and what amended it.

    Args:
        issued: The cycle.
        amendments: What amended it, in their order.
    """

    issued: Recorded
    amendments: tuple[Amendment, ...] = ()

    @property
    def newest(self) -> Recorded | Amendment:
        """The newest fact of it."""
        return self.amendments[-1] if self.amendments else self.issued

    @property
    def cycles(self) -> set[str]:
        """The ids of all facts of it."""
        return {self.issued.id, *(one.id for one in self.amendments)}

    @property
    def record(self) -> Mapping[str, Any]:
        """The cycle as it was recorded, with the reservations and orders in force by now in place of its own."""
        record = self.issued.issued.record
        if not self.amendments:
            return record
        newest = self.amendments[-1].amended.record
        return {
            **record,
            "reservations": newest["reservations"],
            "decisions": self.in_force(record.get("decisions", ())),
        }

    def said(self) -> list[dict[str, Any]]:
        """Return every order that was given, the newest first, whether it was repeated or not."""
        records = [one.amended.record for one in reversed(self.amendments)]
        return [one for record in (*records, self.issued.issued.record) for one in record["decisions"]]

    def in_force(self, decisions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return decisions of the cycle as the amendments leave them: the newest of each workload and run.

        Whom the cycle told to leave has to if the newest amendment repeats it: each says all who have to.
        """
        if not self.amendments:
            return list(decisions)
        newest = self.amendments[-1].amended.record["decisions"]
        leaving = [decision for decision in newest if decision["action"] == _PREEMPT]
        later = {
            decision["workload"]: decision
            for amendment in self.amendments
            for decision in amendment.amended.record["decisions"]
            if decision["action"] != _PREEMPT
        }
        kept = [decision for decision in decisions if decision["action"] != _PREEMPT]
        standing = [later.pop(decision["workload"], decision) for decision in kept]
        return [*standing, *later.values(), *leaving]


class Named(NamedTuple):
    """Where a cycle stands.

    Args:
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        cycle: Its id.
        every_s: The interval of the leader that ran it; None where none did.
    """

    seq: int
    at_s: int
    cycle: str
    every_s: int | None

    def place(self, cluster: str) -> "Place":
        """Return where it stands in the book of its cluster."""
        return Place(cluster, self.cycle, self.at_s)


class Place(NamedTuple):
    """What amendments of a cycle are found by.

    Args:
        cluster: The cluster, which is the book.
        cycle: The cycle's id.
        at_s: The instant that it decided for.
    """

    cluster: str
    cycle: str
    at_s: int


def latest(
    connection: Reader | Writer, cluster: str, *, at_s: int, seq: int | None = None
) -> Recorded | None:
    """Return the newest cycle of a cluster up to an instant, or None when there was none.

    Args:
        connection: A transaction.
        cluster: The cluster.
        at_s: Of the cycles that decided for this instant or an earlier one, the one of the latest instant counts,
            whichever was recorded last.
        seq: Look only at rows of the book up to this one.
    """
    return _one(
        connection,
        f"{_ISSUED} {_NEWEST}",
        book=cluster,
        at=at_s,
        seq=seq,
    )


def newest_word(
    connection: Reader | Writer, cluster: str, *, at_s: int, seq: int | None = None
) -> Word | None:
    """Return the newest statement of the policy on a cluster up to an instant, or None when there was none.

    It is the newest cycle, as ``latest`` says, with what amended that very cycle up to the instant and the row.
    """
    issued = latest(connection, cluster, at_s=at_s, seq=seq)
    return None if issued is None else Word(issued, amendments(connection, issued.place, at_s=at_s, seq=seq))


def amendments(
    connection: Reader | Writer, of: Place, *, at_s: int, seq: int | None = None
) -> tuple[Amendment, ...]:
    """Return what amended a cycle up to an instant and, where one is given, up to a row of the book; in order."""
    rows = driver(connection).execute(
        f"{_AMENDED} AND j.effective_at >= to_timestamp(%(from)s) AND j.effective_at <= to_timestamp(%(at)s)"
        " AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s::bigint) AND j.body->>'base' = %(base)s ORDER BY j.seq",
        {"book": of.cluster, "from": of.at_s, "at": at_s, "seq": seq, "base": of.cycle},
    )
    return tuple(_amendment(*row) for row in rows)


def find_amendment(connection: Reader | Writer, cycle: str) -> Amendment | None:
    """Return the amendment of an id, or None when there is none."""
    cluster, _, _ = cycle.rpartition("@")
    row = driver(connection).execute(
        f"{_AMENDED} {_OF_ID}", {"book": cluster, "id": f"cycle/{cycle}", "cycle": cycle}
    ).fetchone()  # fmt: skip
    return None if row is None else _amendment(*row)


def named(connection: Reader | Writer, cluster: str, at_s: int, *, seq: int | None = None) -> Named | None:
    """Return where the newest cycle up to an instant stands, without reading what it decided; as ``latest``."""
    row = driver(connection).execute(
        "SELECT j.seq, extract(epoch FROM j.effective_at)::bigint, j.body->>'cycle',"
        " (j.body->>'every_s')::bigint FROM ledger.journal AS j"
        " WHERE j.book = %(book)s AND j.workload IS NULL AND j.type = 'allocation.issued'"
        f" {_NEWEST}",
        {"book": cluster, "at": at_s, "seq": seq},
    ).fetchone()  # fmt: skip
    return None if row is None else Named(*row)


def of_instant(connection: Reader | Writer, cluster: str, at_s: int) -> Recorded | None:
    """Return the cycle that was recorded for an instant, or None."""
    return _one(
        connection,
        f"{_ISSUED} AND j.effective_at = to_timestamp(%(at)s) ORDER BY j.seq LIMIT 1",
        book=cluster,
        at=at_s,
    )


def find(connection: Reader | Writer, cycle: str) -> Recorded | None:
    """Return the cycle of an id, or None when there is none."""
    cluster, _, _ = cycle.rpartition("@")
    return _one(
        connection,
        f"{_ISSUED} {_OF_ID}",
        book=cluster,
        id=f"cycle/{cycle}",
        cycle=cycle,
    )


def is_woken(connection: Reader | Writer, cluster: str, after_seq: int) -> bool:
    """Tell whether anything was booked after a row that a cycle should not wait for the next minute to hear of."""
    row = driver(connection).execute(
        "SELECT 1 FROM ledger.journal WHERE book = %s AND seq > %s AND type = ANY(%s) LIMIT 1",
        (cluster, after_seq, list(WAKING)),
    ).fetchone()  # fmt: skip
    return row is not None


def _one(connection: Reader | Writer, query: str, **values: object) -> Recorded | None:
    row = driver(connection).execute(query, values).fetchone()
    if row is None:
        return None
    seq, decided_s, body = row
    issued = decode_data("allocation.issued", body)
    assert isinstance(issued, AllocationIssued)  # noqa: S101 - the query selected the type
    return Recorded(seq, decided_s, issued)


def _amendment(seq: int, decided_s: int, body: str) -> Amendment:
    amended = decode_data("allocation.amended", body)
    assert isinstance(amended, AllocationAmended)  # noqa: S101 - the query selected the type
    return Amendment(seq, decided_s, amended)
