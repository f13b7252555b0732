"""Policy data in the ``~org`` book: versions with an effective time, set once, kept for ever (law 12).

A transaction touches one book (law 2), so that a rate card or a mapping is set in ``~org`` and each cluster's book
takes it over as a fact of its own, with the next that is appended to it or when it is brought up to date. What follows
otherwise from then on is restated there: the set of facts alone says what a charge is (law 3).
"""

from collections.abc import Mapping, Sequence

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import PolicyChanged, Word, XidTable
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.events.mapping import MappingRule
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant
from gpuledger.kernel.knobs import Value
from gpuledger.ledger import health_states, knobs, queries
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.health import XID_TABLE
from gpuledger.ledger.knobs import SETTINGS
from gpuledger.ledger.mapping import MAPPING, Version
from gpuledger.ledger.rates import RATE_CARD
from gpuledger.ledger.store import lock_book

SOURCE = "gpuledger/policy-file"
MAPPING_SOURCE = "gpuledger/mapping-file"


def changed_weights(
    connection: Reader | Writer, weights: Mapping[str, int], at_s: int
) -> dict[str, tuple[int, int]]:
    """Return model -> (weight in force then, weight wanted) of those that differ."""
    card = queries.rate_card(connection)
    return {
        model: (card.weight(model, at_s), weight)
        for model, weight in sorted(weights.items())
        if card.weight(model, at_s) != weight
    }


def set_weights(
    writer: Writer, weights: Mapping[str, int], at_s: int, by: str, *, clock: Clock, calendar: Calendar
) -> None:
    """Put weights in force from a moment on, in the ``~org`` book."""
    fact = PolicyChanged(
        policy=RATE_CARD, weights=dict(sorted(weights.items())), by=by, reason=Word.POLICY_FILE
    )
    _set(writer, fact, at_s, clock, calendar)


def set_xid_table(
    writer: Writer, table: XidTable, at_s: int, by: str, *, clock: Clock, calendar: Calendar
) -> None:
    """Put an XID table in force from a moment on, in the ``~org`` book, unless it is."""
    if health_states.tables(writer).at(at_s) != table:
        fact = PolicyChanged(policy=XID_TABLE, xid_table=table, by=by, reason=Word.POLICY_FILE)
        _set(writer, fact, at_s, clock, calendar)


def changed_settings(
    connection: Reader | Writer, cluster: str | None, wanted: Mapping[str, Value | None], at_s: int
) -> dict[str, tuple[Value | None, Value | None]]:
    """Return knob -> (what is set at a moment, what is wanted) of those that differ; None for nothing.

    Args:
        connection: A transaction.
        cluster: The cluster that they are for; None for every cluster.
        wanted: Knob -> value; None takes back what was set.
        at_s: The moment.
    """
    set_ = knobs.in_force_alone(knobs.versions(connection), cluster, at_s)
    return {
        name: (set_.get(name), value) for name, value in sorted(wanted.items()) if set_.get(name) != value
    }


def put_settings(
    writer: Writer,
    cluster: str | None,
    wanted: Mapping[str, Value | None],
    at_s: int,
    by: str,
    *,
    clock: Clock,
    calendar: Calendar,
) -> None:
    """Put settings of the policy in force from a moment on, in the ``~org`` book, unless they are."""
    if changed_settings(writer, cluster, wanted, at_s):
        fact = PolicyChanged(
            policy=SETTINGS,
            settings=dict(sorted(wanted.items())),
            on_cluster=cluster,
            by=by,
            reason=Word.POLICY_FILE,
        )
        _set(writer, fact, at_s, clock, calendar)


def _set(writer: Writer, fact: PolicyChanged, at_s: int, clock: Clock, calendar: Calendar) -> None:
    seen_seq = lock_book(writer, ORG_BOOK).last_seq
    event, _ = make(id=f"{fact.policy}/{at_s}/{seen_seq}", source=SOURCE, at_s=at_s, data=fact)
    append(writer, ORG_BOOK, [event], clock=clock, calendar=calendar)


def set_mapping(
    writer: Writer,
    rules: Sequence[MappingRule],
    at_s: int,
    by: str,
    *,
    supersedes: int | None,
    clock: Clock,
    calendar: Calendar,
) -> None:
    """Put a whole mapping in force from a moment on, in the ``~org`` book.

    Args:
        writer: A transaction of its own.
        rules: The first that matches counts; people by their names.
        at_s: From when on, in seconds since the epoch.
        by: Who sets it.
        supersedes: The row of the mapping in whose place it comes.
        clock: Says when it is recorded.
        calendar: The organisation's days.
    """
    seen_seq = lock_book(writer, ORG_BOOK).last_seq
    fact = PolicyChanged(
        policy=MAPPING, rules=list(rules), supersedes=supersedes, by=by, reason=Word.MAPPING_FILE
    )
    event, _ = make(id=f"{MAPPING}/{at_s}/{seen_seq}", source=MAPPING_SOURCE, at_s=at_s, data=fact)
    append(writer, ORG_BOOK, [event], clock=clock, calendar=calendar)


def in_force(versions: Sequence[Version], at_s: int) -> Version | None:
    """Return the version of the mapping that holds at a moment; of one moment the last set counts."""
    begun = [version for version in versions if version.from_s <= at_s]
    return max(begun, key=lambda version: (version.from_s, version.org_seq), default=None)


def bring_up_to_date(writer: Writer, cluster: str, *, clock: Clock, calendar: Calendar) -> None:
    """Let a cluster's book take over what policy data it does not have yet, and conclude from it anew."""
    lock_book(writer, cluster)
    concluded = health_states.state_changes(writer, cluster)
    append(writer, cluster, concluded, clock=clock, calendar=calendar)


def charged_after(connection: Reader | Writer, at_s: int) -> int:
    """Return how many workloads are charged for time after a moment: those that a card from it restates."""
    row = driver(connection).execute(
        "SELECT count(*) FROM (SELECT DISTINCT book, workload FROM ledger.segments"
        " WHERE until_seq IS NULL AND to_at > %s) AS charged",
        (instant(at_s),),
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0
