"""The settings of the policy in the ``~org`` book: which knob was set to what, from when, for which cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import PolicyConfig, Value
from gpuledger.ledger import queries

SETTINGS = "settings"
"""The policy that settings are versions of."""


class Version(NamedTuple):
    """Settings that were made.

    Args:
        from_s: From when on they hold.
        org_seq: The row of ``~org`` that made them; of two for one moment the later row counts.
        cluster: The cluster they are for; None for every cluster.
        settings: Knob -> value; None takes back what was set.
    """

    from_s: int
    org_seq: int
    cluster: str | None
    settings: Mapping[str, Value | None]


def versions(connection: Reader | Writer, *, org_seq: int | None = None) -> list[Version]:
    """Return every version, in the order they were set.

    Args:
        connection: A transaction.
        org_seq: The row of ``~org`` to read up to; all of them unless given.
    """
    return [
        Version(from_s, seq, changed.on_cluster, changed.settings or {})
        for seq, from_s, changed in queries.policy_versions(connection, SETTINGS, org_seq=org_seq)
    ]


def read_config(
    connection: Reader | Writer, cluster: str, at_s: int, *, org_seq: int | None = None
) -> PolicyConfig:
    """Return the knobs in force for a cluster at a moment; the defaults where nothing was said.

    Args:
        connection: A snapshot.
        cluster: The cluster; its own settings come before those of every cluster.
        at_s: The moment.
        org_seq: The row of ``~org`` to read up to, for a cycle of the past; all of them unless given.

    Raises:
        Refused: When the settings in force do not go together: books took such until they were refused at the door.
    """
    try:
        return PolicyConfig.of(in_force(versions(connection, org_seq=org_seq), cluster, at_s))
    except Refused as error:
        raise Refused(
            f"cluster {cluster!r}: {error.message}",
            hint=f"{error.hint}; gpuledger policy-data list shows who set what",
        ) from error


def contradiction(before: Sequence[Version], wanted: Sequence[Version], at_s: int) -> Refused | None:
    """Return why settings would not go together from a moment on, when nothing kept them from it before.

    Args:
        before: The versions that there are.
        wanted: The same with new ones; what those contradict already is none of their doing.
        at_s: From when on the new ones hold.
    """
    moments = sorted({at_s, *(version.from_s for version in wanted if version.from_s > at_s)})
    for cluster in (None, *sorted({version.cluster for version in wanted if version.cluster is not None})):
        for moment_s in moments:
            refused = _refused(wanted, cluster, moment_s)
            if refused is not None and _refused(before, cluster, moment_s) is None:
                of = "every cluster" if cluster is None else f"cluster {cluster!r}"
                return Refused(f"{of}: {refused.message}", hint=refused.hint)
    return None


def _refused(versions: Iterable[Version], cluster: str | None, at_s: int) -> Refused | None:
    try:
        PolicyConfig.of(in_force(versions, cluster, at_s))
    except Refused as error:
        return error
    return None


def in_force(found: Iterable[Version], cluster: str | None, at_s: int) -> dict[str, Value]:
    """Return the knobs that are set for a cluster at a moment: its own settings before those of every cluster.

    Args:
        found: Versions in any order.
        cluster: The cluster; None for the settings of every cluster alone.
        at_s: The moment.
    """
    return in_force_alone(found, None, at_s) | (in_force_alone(found, cluster, at_s) if cluster else {})


def in_force_alone(found: Iterable[Version], cluster: str | None, at_s: int) -> dict[str, Value]:
    """Return what is set at a moment for a cluster itself, or for None by the settings of every cluster."""
    settings: dict[str, Value] = {}
    for version in sorted(found, key=lambda v: (v.from_s, v.org_seq)):
        if version.from_s <= at_s and version.cluster == cluster:
            for name, value in version.settings.items():
                settings.pop(name, None)
                if value is not None:
                    settings[name] = value
    return settings
