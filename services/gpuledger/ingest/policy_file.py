"""The policy file: versions of policy data that people set. Read strictly."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gpuledger.database.engine import Reader
from gpuledger.ingest.yaml_file import Strict, Word, read_yaml
from gpuledger.ledger import policies

Weight = Annotated[int, Field(ge=0, le=100_000)]


class PolicyFile(Strict):
    """The whole file.

    Args:
        rate_card: GPU model -> weight in per mille; models that are left out keep theirs.
    """

    rate_card: dict[Word, Weight] = Field(default_factory=dict)


def read(path: Path) -> PolicyFile:
    """Read and validate a policy file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    return read_yaml(path, PolicyFile, "docs/policy-file.md")


def plan(reader: Reader, file: PolicyFile, at_s: int) -> list[str]:
    """Return what the file changes from a moment on, a line each."""
    changed = policies.changed_weights(reader, file.rate_card, at_s)
    return [
        f"~ weight   {model}  {before} -> {wanted} per mille" for model, (before, wanted) in changed.items()
    ]
