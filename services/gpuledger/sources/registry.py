"""The one list of sources; a new source is a module, its fixtures and a line here."""

from gpuledger.kernel.errors import Refused
from gpuledger.sources.clustercockpit import ClusterCockpit
from gpuledger.sources.dcgm import Dcgm
from gpuledger.sources.nvidia_smi_csv import NvidiaSmiCsv
from gpuledger.sources.nvidia_smi_xml import NvidiaSmiXml
from gpuledger.sources.openb import Openb
from gpuledger.sources.philly import Philly
from gpuledger.sources.protocol import Source
from gpuledger.sources.xid_log import XidLog

_SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        ClusterCockpit(),
        Dcgm(),
        NvidiaSmiCsv(),
        NvidiaSmiXml(),
        Openb(),
        Philly(),
        XidLog(),
    )
}


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
