"""The configuration of a cycle, as policy data has it."""

from gpuledger.database.engine import Reader
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import knobs


def read_config(reader: Reader, cluster: str, at_s: int, *, org_seq: int | None = None) -> PolicyConfig:
    """Return the knobs in force for a cluster at a moment; the defaults where nothing was said.

    Args:
        reader: A snapshot.
        cluster: The cluster; its own settings come before those of every cluster.
        at_s: The moment.
        org_seq: The row of ``~org`` to read up to, for a cycle of the past; all of them unless given.

    Raises:
        Refused: When the settings in force do not go together; no file can bring that about, but a stream can.
    """
    try:
        return PolicyConfig.of(knobs.in_force(knobs.versions(reader, org_seq=org_seq), cluster, at_s))
    except Refused as error:
        raise Refused(
            f"cluster {cluster!r}: {error.message}",
            hint=f"{error.hint}; gpuledger policy-data list shows who set what",
        ) from error
