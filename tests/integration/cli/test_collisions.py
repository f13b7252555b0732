"""Commands that the database gives up for the sake of others are carried out all the same, and once."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds

JANUARY_S = int(dt.datetime(2026, 1, 10, tzinfo=dt.UTC).timestamp())
WHERE = ("--cluster", "alpha", "--period", "2026-01")
FILE = """
clusters:
  alpha: {gpus: 8, model: h100}
accounts:
  org/speech: {share: 1}
  org/vision: {grants: [{cluster: alpha, period: 2026-01, gpu_hours: 100}]}
"""
COLLIDE = (
    "CREATE SEQUENCE public.collisions",
    "GRANT USAGE ON SEQUENCE public.collisions TO PUBLIC",
    # What a sequence gave is given, whatever becomes of the transaction.
    """CREATE FUNCTION public.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('public.collisions') = 1 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '40P01'; END IF;
    RETURN NULL; END $$""",
    "CREATE TRIGGER collide AFTER INSERT ON ledger.journal FOR EACH STATEMENT EXECUTE FUNCTION public.collide()",
)

ORDERS = [
    ("budget", "grant", "org/speech", "5", *WHERE),
    ("budget", "transfer", "org/vision", "org/speech", "5", *WHERE),
    ("budget", "adjust", "org/vision", "5", *WHERE, "--code", "grant", "--reason", "test"),
    ("period", "open", "2026-03", "--cluster", "alpha", "--yes"),
    ("admit", "waits", "--cluster", "alpha"),
    ("tick", "--cluster", "alpha", "--at", "2026-01-20"),
    ("incident", "credit", "--cluster", "alpha", "--from", "2026-01-01", "--yes"),
    ("close", "run", "2026-01", "--cluster", "alpha", "--yes"),
]


@pytest.fixture
def colliding(ledger: Ledger, tmp_path: Path) -> Ledger:
    """A run whose host failed, a workload that waits, and a database in which the next rows collide once."""
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-01-01", "--yes")
    now_s = seconds(SystemClock().now())
    told: list[tuple[int, Fact]] = [
        (JANUARY_S, Submitted(cluster="alpha", workload="ran", account="org/vision", user="ada", gpus_milli=8000)),
        (JANUARY_S, Started(
            cluster="alpha", workload="ran", run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0001"]
        )),
        (JANUARY_S + 3600, Ended(cluster="alpha", workload="ran", run="r1", reason="NODE_FAIL")),
        (now_s, Submitted(
            cluster="alpha", workload="waits", account="org/vision", user="ada", gpus_milli=1000,
            minimum_runtime_s=60,
        )),
    ]  # fmt: skip
    events = [make(id=str(n), source="test", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(told)]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take(events)
    engine.dispose()
    change(ledger, *COLLIDE)
    return ledger


def change(ledger: Ledger, *statements: str) -> None:
    """Do what the owner of the database may do."""
    engine = make_engine(ledger.url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: " ".join(order[:2]))
def test_a_command_that_collides_is_carried_out(colliding: Ledger, order: tuple[str, ...]) -> None:
    (rows,) = colliding.rows("SELECT count(*) FROM ledger.journal WHERE book = 'alpha'")
    ran = colliding(*order)
    assert (ran.status, ran.err.count("cannot be used")) == (0, 0), ran.err
    assert colliding.rows("SELECT last_value > 1, is_called FROM public.collisions") == [(True, True)]
    assert colliding.rows("SELECT collisions FROM ledger.books WHERE book = 'alpha'") == [(1,)]
    (after,) = colliding.rows("SELECT count(*) FROM ledger.journal WHERE book = 'alpha'")
    assert after > rows
    change(colliding, "DROP TRIGGER collide ON ledger.journal")
    colliding.checked_digest()


RULES = {
    "policy-data": ("rate_card: {h100: 2000}", "rate_card: {h100: 3000}"),
    "mapping": ("rules: [{account: org/vision}]", "rules: [{account: org/speech}]"),
}


@pytest.mark.parametrize("command", RULES)
def test_rules_that_collide_in_either_book_are_put_in_force(
    colliding: Ledger, tmp_path: Path, command: str
) -> None:
    """At first the organisation's own book is in somebody's way, then that of a cluster that takes them over."""
    taken_over = "SELECT count(*) FROM ledger.journal WHERE book = 'alpha' AND type = 'policy.applied'"
    collided = "SELECT book, collisions FROM ledger.books WHERE collisions > 0 ORDER BY book"
    for number, text in enumerate(RULES[command]):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        if number:  # the first row is the organisation's
            change(colliding, "ALTER SEQUENCE public.collisions MINVALUE 0 RESTART WITH 0")
        colliding.done(command, "apply", path, "--from", "2026-01-01", "--yes")
        assert colliding.rows(taken_over) == [(number + 1,)]
        assert colliding.rows(collided) == [("alpha", 1), ("~org", 1)][1 - number :]
    change(colliding, "DROP TRIGGER collide ON ledger.journal")
    colliding.checked_digest()
