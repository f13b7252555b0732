import pytest

from gpuledger.events.workload import Ended
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.naming import Told, group_workload, identity
from gpuledger.sources.kubernetes.objects import Meta


def test_a_workload_is_named_by_namespace_name_and_uid() -> None:
    assert identity(Meta(name="n", namespace="ns", uid="u")) == "ns/n/u"
    assert group_workload(Meta(namespace="ns"), "g") == "ns/g"


@pytest.mark.parametrize(
    "meta", [Meta(name="n", uid="u"), Meta(namespace="ns", uid="u"), Meta(namespace="ns", name="n")]
)
def test_a_name_that_is_missing_is_a_fault(meta: Meta) -> None:
    with pytest.raises(BadRecord, match="is missing"):
        identity(meta)


def test_a_fact_is_told_once_and_the_first_repeated_when_there_is_nothing_new() -> None:
    told = Told("s", "w")
    assert told.take() == []
    for at_s in (1, 2):
        told.tell("ended", at_s, Ended(cluster="c", workload="w", reason="r"))
    (first,) = told.take()
    assert (first[0].id, first[0].at_s) == ("w/ended", 1)
    assert told.take() == [first]
