"""The options of ``proposal make``, read without a ledger."""

import datetime as dt
from pathlib import Path

import pytest

from gpuledger.cli.proposals_reading import Asked, read, simulated
from gpuledger.events.proposal import NewShare, NewTransfer
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused

BERLIN = Calendar("Europe/Berlin")


def test_days_begin_where_the_organisation_is() -> None:
    asked = Asked(
        shares=["org/a=b=3"], grants=[], transfers=["org/a:org/b=0.5"], cluster="alpha", period="2026-12",
        from_="2026-12-15", decide_by="2026-12-08T00:00:00Z", simulation=None, reason="more",
    )  # fmt: skip
    found = read(asked, "p-000000000001", "ada", BERLIN)
    assert found.shares == [NewShare(account="org/a=b", share=3)]
    assert found.transfers == [NewTransfer(account="org/a", to="org/b", period="2026-12", gpu_ms=1_800_000)]
    assert found.effective_at == dt.datetime(2026, 12, 14, 23, tzinfo=dt.UTC)
    assert found.decide_by == dt.datetime(2026, 12, 8, tzinfo=dt.UTC)
    assert (found.proposal, found.by, found.reason) == ("p-000000000001", "ada", "more")


@pytest.mark.parametrize("text", ["", "[]", '{"scenario": "x"}'])
def test_a_file_that_is_no_comparison_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "it.json"
    file.write_text(text)
    with pytest.raises(Refused, match=r"it\.json"):
        simulated(file)
