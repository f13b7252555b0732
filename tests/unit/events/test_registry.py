"""The closed set of facts: names and classes belong to each other, one to one."""

import msgspec
import pytest

from gpuledger.events.registry import fact_type, name_of, names
from gpuledger.events.workload import Started, Stopped


@pytest.mark.parametrize("name", names())
def test_a_name_and_its_class_lead_to_each_other(name: str) -> None:
    fact = fact_type(name)
    assert fact is not None
    assert name_of(fact) == name


@pytest.mark.parametrize("name", names())
def test_a_fact_cannot_be_changed(name: str) -> None:
    fact = fact_type(name)
    assert fact is not None
    assert fact.__struct_config__.frozen


def test_names_are_sorted() -> None:
    assert names() == sorted(names())
    assert "workload.started" in names()
    assert fact_type("workload.started") is Started


def test_an_unknown_name_has_no_class() -> None:
    assert fact_type("workload.exploded") is None
    assert fact_type("") is None


@pytest.mark.parametrize("shape", [Stopped, msgspec.Struct])
def test_a_common_shape_is_no_fact(shape: type[msgspec.Struct]) -> None:
    with pytest.raises(KeyError):
        name_of(shape)
