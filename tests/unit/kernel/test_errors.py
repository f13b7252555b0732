"""Errors: who can do what about them, and that they carry it."""

import pytest

from gpuledger.kernel import errors
from gpuledger.kernel.errors import BadRecord, GpuledgerError


@pytest.mark.parametrize(
    ("kind", "caught_as"),
    [
        (errors.NotFound, errors.Refused),
        (errors.BadRecord, errors.Refused),
        (errors.Fenced, errors.Conflict),
        (errors.Refused, GpuledgerError),
        (errors.Conflict, GpuledgerError),
        (errors.Unavailable, GpuledgerError),
        (errors.Corrupt, GpuledgerError),
    ],
)
def test_an_error_is_caught_by_what_the_caller_can_do(
    kind: type[GpuledgerError], caught_as: type[GpuledgerError]
) -> None:
    assert issubclass(kind, caught_as)


def test_verdicts_do_not_catch_each_other() -> None:
    verdicts = (errors.Refused, errors.Conflict, errors.Unavailable, errors.Corrupt)
    assert [
        (one, other) for one in verdicts for other in verdicts if one is not other and issubclass(one, other)
    ] == []


def test_an_error_says_what_was_wrong_and_what_to_do() -> None:
    error = errors.Refused("x.csv:7: no start", hint="add a start")
    assert (str(error), error.message, error.hint) == (
        "x.csv:7: no start",
        "x.csv:7: no start",
        "add a start",
    )


def test_a_bad_record_names_its_kind_of_fault() -> None:
    assert BadRecord("end lies before start", code="end-before-start").code == "end-before-start"
