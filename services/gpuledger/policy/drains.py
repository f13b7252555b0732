"""Hosts that are being emptied: who is still there, and when the last of them has to be gone."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger import queries, state
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.knobs import read_config
from gpuledger.policy.agenda import Entry, Kind, of_hosts
from gpuledger.policy.places import place_runs
from gpuledger.policy.reading import read_cadence, read_state
from gpuledger.policy.words import moment


@dataclass(frozen=True, slots=True)
class Staying:
    """A run that is still on a host that is being emptied.

    Args:
        gpus_milli: What it holds on that host, in milli-GPU.
        protected_until_s: From this instant on it may be told to leave.
    """

    workload: str
    run: str
    account: str
    gpus_milli: int
    protected_until_s: int

    def as_json(self) -> dict[str, Any]:
        """Return the run under its published keys."""
        return {
            "workload": self.workload,
            "run": self.run,
            "account": self.account,
            "gpus_milli": self.gpus_milli,
            "protected_until": moment(self.protected_until_s),
        }


@dataclass(frozen=True, slots=True)
class Drain:
    """A host that takes no new runs and is to be empty.

    Args:
        entry: When it will be, and what that rests on, as the calendar tells it.
        runs: Who is still there.
    """

    cluster: str
    entry: Entry
    runs: tuple[Staying, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the drain under its published keys."""
        return {
            "cluster": self.cluster,
            "host": self.entry.host,
            "gpus_milli": self.entry.gpus_milli,
            "empty_by": moment(self.entry.at_s),
            "certainty": self.entry.certainty.value,
            "text": self.entry.text,
            "runs": [run.as_json() for run in self.runs],
        }


def drains(
    reader: Reader, cluster: str | None, *, at_s: int, as_of: dt.datetime | None = None
) -> list[Drain]:
    """Return the drains in progress, by cluster and host.

    Args:
        reader: A snapshot.
        cluster: One cluster; all of them unless given.
        at_s: The present.
        as_of: Recorded time: what the books said then; now unless given.

    Raises:
        NotFound: When the cluster does not exist.
    """
    queries.require_cluster(reader, cluster)
    found: list[Drain] = []
    for book in queries.clusters(reader) if cluster is None else [cluster]:
        found += _of_cluster(reader, book, at_s, as_of)
    return found


def _of_cluster(reader: Reader, cluster: str, at_s: int, as_of: dt.datetime | None) -> list[Drain]:
    vector = vector_of(reader, as_of)
    seq = seq_of(vector, cluster)
    if not any(host.draining for host in state.hosts(reader, cluster, at_s, seq=seq)):
        return []  # most of the time, and a cluster without a healthy GPU cannot be decided about
    config = read_config(reader, cluster, at_s, org_seq=seq_of(vector, ORG_BOOK))
    there = read_state(reader, cluster, at_s, config, vector=vector)
    cadence = read_cadence(reader, cluster, at_s, seq=seq)
    places = place_runs(there.running, there.hosts)
    entries = [one for one in of_hosts(there, config, cadence=cadence) if one.kind is Kind.DRAIN]
    return [
        Drain(
            cluster,
            entry,
            tuple(
                Staying(run.workload, run.run, run.account, placed[entry.host], run.protected_until_s)
                for run in sorted(there.running, key=lambda one: one.id)
                if entry.host is not None and entry.host in (placed := places[run.id])
            ),
        )
        for entry in sorted(entries, key=lambda one: one.host or "")
    ]
