"""From a budget file to commands: only what differs, and each command once."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.events import budget, host
from gpuledger.ingest.budget_file import BudgetFile, read
from gpuledger.ingest.budgets import SOURCE, plan
from gpuledger.ingest.changes import Change, apply
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused

FULL = """
organisation: {timezone: Europe/Berlin}
clusters:
  alpha: {gpus: 12, model: h100}
accounts:
  org/a: {share: 2}
  org/b: {share: 1, grants: [{cluster: alpha, period: 2026-01, gpu_hours: 1.5, priority: 3, rollover: none}]}
"""


@pytest.fixture
def file(tmp_path: Path) -> BudgetFile:
    path = tmp_path / "budget.yaml"
    path.write_text(FULL)
    return read(path)


def planned(engine: sa.Engine, file: BudgetFile, at_s: int = 0) -> list[Change]:
    with reading(engine) as reader:
        return plan(reader, file, at_s, "ada", Calendar())


def test_the_commands_of_a_new_ledger(engine: sa.Engine, file: BudgetFile) -> None:
    facts = [fact for change in planned(engine, file) for fact in change.facts]
    assert [type(fact) for fact in facts] == [
        budget.PolicyChanged,
        *[budget.AccountCreated] * 3,
        *[budget.ShareSet] * 2,
        *[host.Registered] * 2,
        budget.Granted,
    ]
    machines = [(fact.host, fact.gpus) for fact in facts if isinstance(fact, host.Registered)]
    assert machines == [("alpha-0001", 8), ("alpha-0002", 4)]
    (grant,) = [fact for fact in facts if isinstance(fact, budget.Granted)]
    assert (grant.gpu_ms, grant.priority, grant.rollover, grant.by) == (5_400_000, 3, "none", "ada")


def test_after_applying_nothing_is_left_to_do(engine: sa.Engine, intake: Intake, file: BudgetFile) -> None:
    opened = apply(intake, planned(engine, file), 0, SOURCE)
    assert opened == {"alpha": ["2026-01"]}
    assert planned(engine, file) == []


def test_the_same_plan_is_booked_once(engine: sa.Engine, intake: Intake, file: BudgetFile) -> None:
    """Whoever was interrupted between two books plans anew; whoever applies twice at once is heard once."""
    changes = planned(engine, file)
    intake.take([])
    apply(intake, changes, 0, SOURCE)
    with engine.connect() as connection:
        before = connection.exec_driver_sql("SELECT count(*) FROM ledger.journal").scalar_one()
    apply(intake, planned(engine, file), 0, SOURCE)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM ledger.journal").scalar_one() == before


def test_a_grant_that_shrinks_is_refused_by_name(
    engine: sa.Engine, intake: Intake, file: BudgetFile, tmp_path: Path
) -> None:
    apply(intake, planned(engine, file), 0, SOURCE)
    path = tmp_path / "less.yaml"
    path.write_text(FULL.replace("1.5", "1"))
    with pytest.raises(
        Refused, match=r"accounts.org/b: the grant on alpha for 2026-01 would shrink to 1 GPU"
    ):
        planned(engine, read(path))


def test_the_zone_stays_when_facts_are_booked(
    engine: sa.Engine, intake: Intake, file: BudgetFile, tmp_path: Path
) -> None:
    apply(intake, planned(engine, file), 0, SOURCE)
    path = tmp_path / "moved.yaml"
    path.write_text("organisation: {timezone: Asia/Tokyo}")
    with pytest.raises(Refused, match="Asia/Tokyo differs from Europe/Berlin"):
        planned(engine, read(path))
    path.write_text("organisation: {timezone: Europe/Berlin}")
    assert planned(engine, read(path)) == []


EXPIRING = """
accounts: {{a: {{grants: [{{cluster: alpha, period: 2026-01, gpu_hours: 1, expires: {expires}}}]}}}}
"""


def test_a_grant_expires_where_a_day_of_the_zone_in_force_begins(
    engine: sa.Engine, intake: Intake, file: BudgetFile, tmp_path: Path
) -> None:
    """The file that sets the zone is read in it; one that says nothing of it in the ledger's."""
    path = tmp_path / "expiring.yaml"
    path.write_text(
        "organisation: {timezone: Europe/Berlin}" + EXPIRING.format(expires="2026-01-30T23:00:00Z")
    )
    (*_, change) = planned(engine, read(path))
    assert [fact.expires_at.isoformat() for fact in change.facts] == ["2026-01-30T23:00:00+00:00"]

    apply(intake, planned(engine, file), 0, SOURCE)
    path.write_text(EXPIRING.format(expires="2026-01-30T23:00:00Z"))
    planned(engine, read(path))
    path.write_text(EXPIRING.format(expires="2026-01-31T00:00:00Z"))
    with pytest.raises(Refused) as refused:
        planned(engine, read(path))
    assert refused.value.message == (
        "accounts.a.grants[0].expires: 2026-01-31T00:00:00Z is not the beginning of a day in Europe/Berlin"
    )
    assert "2026-01-30T23:00:00Z (2026-01-31) or 2026-01-31T23:00:00Z (2026-02-01)" in refused.value.hint
