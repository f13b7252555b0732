"""Lists of hosts, name by name; one short line fills no memory."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm import hosts
from gpuledger.sources.slurm.hosts import HOST_LIMIT, NOWHERE, hosts_of


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("node1", ("node1",)),
        ("node[1-2]", ("node1", "node2")),
        ("node[01-03,7],login1", ("node01", "node02", "node03", "node7", "login1")),
        ("n[008-011]", ("n008", "n009", "n010", "n011")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("r[1-2]n[3-4]", ("r1n3", "r1n4", "r2n3", "r2n4")),
        ("n[1,1],n1", ("n1",)),
        ("rack[0-1]-gpu", ("rack0-gpu", "rack1-gpu")),
        (
            "learnnode[1273,1405,1529,1666]",
            ("learnnode1273", "learnnode1405", "learnnode1529", "learnnode1666"),
        ),
    ],
)
def test_a_list_is_expanded_in_its_order(listed: str, names: tuple[str, ...]) -> None:
    assert hosts_of("NodeList", listed) == names


@pytest.mark.parametrize("listed", [None, *sorted(NOWHERE), "  "])
def test_nowhere_is_no_host(listed: str | None) -> None:
    assert hosts_of("NodeList", listed) == ()


@pytest.mark.parametrize(
    "listed",
    [
        "n[1-",
        "n1-2]",
        "n[2-1]",
        "n[a-b]",
        "n[]",
        "n[1-99999999999]",
        "n[1-2]]",
        "a,,b",
        f"n[0-{HOST_LIMIT}]",
        "n\t1",
    ],
)
def test_what_is_no_list_is_refused(listed: str) -> None:
    with pytest.raises(BadRecord, match="NodeList"):
        hosts_of("NodeList", listed)


def test_a_short_line_cannot_name_more_hosts_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "HOST_LIMIT", 1500)
    with pytest.raises(BadRecord) as refused:
        hosts_of("NodeList", "n[0-999]x[0-999]y[0-999]")
    assert refused.value.code == "out-of-bounds"
