"""The one list of sources; a new source is a module, its fixtures and a line here."""

from gpuledger.kernel.errors import Refused
from gpuledger.sources.acme import Acme
from gpuledger.sources.beaker import Beaker
from gpuledger.sources.clustercockpit import ClusterCockpit
from gpuledger.sources.dcgm import Dcgm
from gpuledger.sources.dlrm import Dlrm
from gpuledger.sources.events import Events
from gpuledger.sources.helios import Helios
from gpuledger.sources.kubernetes.manifests import Manifests
from gpuledger.sources.kubernetes.streams import Watch
from gpuledger.sources.nvidia_smi_csv import NvidiaSmiCsv
from gpuledger.sources.nvidia_smi_xml import NvidiaSmiXml
from gpuledger.sources.openb import Openb
from gpuledger.sources.pai import Pai
from gpuledger.sources.philly import Philly
from gpuledger.sources.philly_json import PhillyJson
from gpuledger.sources.protocol import Source
from gpuledger.sources.slurm.jobcomp import Jobcomp
from gpuledger.sources.slurm.nodes import SlurmNodes
from gpuledger.sources.slurm.sacct_json import SacctJson
from gpuledger.sources.slurm.sacct_text import SacctText
from gpuledger.sources.slurm.sacctmgr import Sacctmgr
from gpuledger.sources.slurm.scontrol_jobs import ScontrolJobs
from gpuledger.sources.slurm.slurmrestd import Slurmrestd
from gpuledger.sources.slurm.squeue_json import SqueueJson
from gpuledger.sources.slurm.squeue_text import SqueueText
from gpuledger.sources.swf import Swf
from gpuledger.sources.xid_log import XidLog

_ALL: tuple[Source, ...] = (
    Acme(),
    Beaker(),
    ClusterCockpit(),
    Dcgm(),
    Dlrm(),
    Events(),
    Helios(),
    Jobcomp(),
    Manifests(),
    NvidiaSmiCsv(),
    NvidiaSmiXml(),
    Openb(),
    Pai(),
    Philly(),
    PhillyJson(),
    SacctJson(),
    SacctText(),
    Sacctmgr(),
    ScontrolJobs(),
    SlurmNodes(),
    Slurmrestd(),
    SqueueJson(),
    SqueueText(),
    Swf(),
    Watch("kai"),
    Watch("kueue"),
    Watch("pods"),
    XidLog(),
)
_SOURCES: dict[str, Source] = {source.name: source for source in _ALL}


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
