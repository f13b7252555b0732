"""A table of the Helios trace has the zone, the cluster and the accounts that it was told."""

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.helios_tables import HeliosTable
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.table import Record


class Empty(HeliosTable):
    required = ("vc",)

    def translate(self, record: Record) -> Facts:
        return (), ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ImportOptions(), "--tz: the times of the Helios trace"),
        (ImportOptions(timezone="Mars/Base"), "Mars/Base"),
        (ImportOptions(timezone="UTC", cluster="A/B"), "--cluster"),
    ],
)
def test_what_cannot_be_is_refused(options: ImportOptions, said: str) -> None:
    with pytest.raises(Refused, match=said):
        Empty(options)


def test_the_account_of_a_virtual_cluster_is_remembered() -> None:
    table = Empty(ImportOptions(timezone="UTC"))
    assert table.teams.account("vc", table.cluster, "vcA")[0] == "helios/vca"
    kept = table.remember({"vc": "VCA"})
    again = Empty(ImportOptions(timezone="UTC"), kept)
    assert again.teams.account("vc", again.cluster, "VCA")[0].startswith("helios/vca~")
    assert table.remember({}) == {}
