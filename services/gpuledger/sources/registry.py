"""The one list of sources; a new source is a module, its fixtures and a line here."""

from gpuledger.kernel.errors import Refused
from gpuledger.sources.clustercockpit import ClusterCockpit
from gpuledger.sources.kubernetes.manifests import Manifests
from gpuledger.sources.kubernetes.streams import Watch
from gpuledger.sources.openb import Openb
from gpuledger.sources.philly import Philly
from gpuledger.sources.protocol import Source

_ALL: tuple[Source, ...] = (
    ClusterCockpit(),
    Manifests(),
    Openb(),
    Philly(),
    Watch("kai"),
    Watch("kueue"),
    Watch("pods"),
)
_SOURCES = {source.name: source for source in _ALL}


def source(name: str) -> Source:
    """Return the source of that name.

    Raises:
        Refused: When there is none.
    """
    found = _SOURCES.get(name)
    if found is None:
        raise Refused(f"source {name!r} is not known", hint=f"known sources: {', '.join(names())}")
    return found


def names() -> list[str]:
    """Return the name of every source, sorted."""
    return sorted(_SOURCES)
