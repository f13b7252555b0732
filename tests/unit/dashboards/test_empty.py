"""Each broken link of the chain names itself and the command that mends it."""

import datetime as dt

import pytest
from tests.unit.dashboards.answers import status

from gpuledger.kernel.errors import GpuledgerError, NotFound, Unavailable
from gpuledger_dashboards import empty


def test_an_api_that_cannot_be_reached_is_started() -> None:
    why = empty.of_error(Unavailable("the ledger API at http://x cannot be reached: refused"), "http://x")
    assert "http://x" in why.sentence
    assert why.command == "gpuledger serve"


@pytest.mark.parametrize(
    "error",
    [
        NotFound("cluster 'x' does not exist", hint="known clusters: y"),
        GpuledgerError("a", hint="known clusters: y"),
    ],
)
def test_other_errors_keep_their_hint(error: GpuledgerError) -> None:
    why = empty.of_error(error, "http://x")
    assert error.message in why.sentence
    assert why.remedy == "known clusters: y"


def test_the_first_broken_link_is_named() -> None:
    assert empty.no_clusters().command.startswith("gpuledger import")
    assert empty.not_rolled_up(status(rolled_up=False)).command == "gpuledger rollup"
    assert empty.no_budget(status(rolled_up=False)).command == "gpuledger rollup"
    assert "budget apply" in empty.no_budget(status()).command
    day = dt.date(2026, 1, 1)
    assert "2026-02-01" in empty.outside("alpha", day, day, (dt.date(2026, 2, 1), day)).sentence


def test_a_layer_without_a_value_says_what_it_needs() -> None:
    assert "budget apply" in empty.of_layer("impact", "no inventory").command
    assert "measures" in empty.of_layer("utilisation", "no sample").remedy
    assert empty.of_layer("impact", "nothing was owed") == empty.Why("Nothing was owed.")
