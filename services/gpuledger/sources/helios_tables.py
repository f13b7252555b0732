"""What the three kinds of tables of the Helios trace share: no zone in the file, one cluster to a file."""

from collections.abc import Mapping

from gpuledger.kernel.errors import Refused
from gpuledger.sources.jobs import Teams
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.table import Translator
from gpuledger.sources.values import LocalTimes, cluster_name

NAME = "helios"


class HeliosTable(Translator):
    """A table whose times are local, nobody knows where: without ``--tz`` it is refused."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Keep cluster, zone and accounts.

        Raises:
            Refused: When no zone is named, or it is not known, or the cluster cannot be one.
        """
        super().__init__(options)
        if options.timezone is None:
            raise Refused(
                "--tz: the times of the Helios trace have no zone, and it names none",
                hint="say where its clocks stood, such as --tz Asia/Shanghai; nothing was imported",
            )
        self.times = LocalTimes(options.timezone)
        self.cluster = cluster_name(options.cluster or NAME)
        self.source = f"trace/helios/{self.cluster}"
        self.teams = Teams(context)

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        """Return what a retry needs to give the virtual cluster the same account."""
        return self.teams.remember(self.cluster, values.get("vc", ""))
