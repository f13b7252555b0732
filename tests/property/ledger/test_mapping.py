"""Law 3 with mappings: facts and rules in any order come to the amounts of an oracle that shares no code."""

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger import oracle
from tests.property.ledger.oracle import Fact
from tests.property.ledger.workloads import ACCOUNTS, USERS, event_of, worlds

from gpuledger.database.engine import Reader, Writer, make_engine
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.envelope import Event, make
from gpuledger.events.mapping import MappingRule
from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import EPOCH, FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.mapping import Foreign, Rules, Version
from gpuledger.ledger.policies import bring_up_to_date
from gpuledger.ledger.rebuild import check, rebuild, state_digest

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 8, deadline=None)
CLUSTER = "alpha"

NET = """
    SELECT code, account, workload, run, day::text, sum(amount)::bigint FROM (
        SELECT code, credit_account AS account, workload, run, effective_on AS day, amount FROM ledger.postings
        WHERE commodity = 'gpu_ms' AND credit_pot IN ('spent', 'unallocated')
        UNION ALL
        SELECT code, debit_account, workload, run, effective_on, -amount FROM ledger.postings
        WHERE commodity = 'gpu_ms' AND debit_pot IN ('spent', 'unallocated')) AS legs
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(amount) <> 0
"""

rules_ = st.builds(
    MappingRule,
    cluster=st.sampled_from([(), (), ("alpha",), ("beta",)]),
    account=st.sampled_from([(), ("org/a",), ("org/*",), ("org/b", "org/c/?")]),
    user=st.sampled_from([(), (), ("ada",), ("grace", "zoë")]),
    to=st.sampled_from([None, "lab", "lab/{account}", "lab/{account.2}"]),
    klass=st.sampled_from([None, "allocated", "unallocated"]),
)
moments = st.integers(-3, 3).map(lambda day: day * 86_400 + 43_200)
mappings = st.dictionaries(moments, st.lists(rules_, max_size=3), max_size=3)
"""From when on, relative to the first fact -> the rules, in the order in which they are set."""


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE mappings TEMPLATE {template_database}")
    engine = make_engine(postgres.url("mappings"))
    yield engine
    engine.dispose()


def expected(facts: Sequence[Fact], versions: dict[int, list[MappingRule]]) -> list[Fact]:
    """Return the facts as a source would tell them that knew the rules: starts and updates say who pays."""
    found = []
    for fact in facts:
        if fact.kind not in ("started", "updated"):
            found.append(fact)
            continue
        own = [f for f in facts if f.workload == fact.workload]
        asked = max((f for f in own if f.kind == "submitted"), key=oracle.standing, default=None)
        updates = [f for f in own if f.kind == "updated" and asked is not None and f.at_s >= asked.at_s]
        details = dict(fact.details)
        account = details.get("account")
        if fact.kind == "started" and account is None and asked is not None:
            account = oracle.asked_for(asked.details, updates, "account", fact.at_s)
        if account is not None:
            at_s = (asked or fact).at_s
            user = asked.details["user"] if asked else None
            payer, is_free = meant(account, user, at_s, versions)
            details |= {"account": payer}
        if account is not None and fact.kind == "started":
            wanted = asked.details if asked else {}
            minimum = 0 if is_free else oracle.asked_for(wanted, updates, "minimum_runtime_s", fact.at_s)
            klass = fact.details.get("class") or ("unallocated" if minimum == 0 else "allocated")
            details |= {"class": klass}
        found.append(fact._replace(details=details))
    return found


def meant(
    account: str, user: str | None, at_s: int, versions: dict[int, list[MappingRule]]
) -> tuple[str, bool]:
    """Return who pays and whether it is free, by the words of the design; versions stand in the order they were set."""
    as_set = list(versions)
    begun = [moment for moment in as_set if moment <= at_s]
    asked = as_set[as_set.index(max(begun)) :] if begun else as_set
    about = [
        (moment, [rule for rule in versions[moment] if rule.cluster in ((), (CLUSTER,))]) for moment in asked
    ]
    heard = [(moment, rules) for moment, rules in about if rules or not versions[moment]]
    if not heard or not versions[heard[0][0]]:
        return account, False
    for _, rules in heard:
        for rule in rules:
            names = {(): True, ("org/a",): account == "org/a", ("org/*",): True}
            is_named = names.get(rule.account, account in ("org/b", "org/c/d"))
            parts = account.split("/")
            to = {None: account, "lab": "lab", "lab/{account}": f"lab/{account}"}.get(
                rule.to, f"lab/{parts[1]}"
            )
            if is_named and (not rule.user or user in rule.user):
                return to, rule.klass == "unallocated"
    return f"unmapped/{account}", False


def told(
    facts: Sequence[Fact], versions: dict[int, list[MappingRule]], randomness: random.Random
) -> list[Event]:
    """Return facts in any order, some of them again, and the rules between them in the order in which they were set."""
    events: list[Event | None] = [event_of(number, fact, CLUSTER) for number, fact in enumerate(facts)]
    events += [event for event in events for _ in range(randomness.choice([0, 0, 0, 1]))]
    events += [None] * len(versions)
    randomness.shuffle(events)
    waiting = iter(versions.items())
    return [_set(*next(waiting)) if event is None else event for event in events]


def _set(from_s: int, rules: list[MappingRule]) -> Event:
    fact = PolicyChanged(policy="mapping", rules=rules, by="ada")
    return make(id=f"m{from_s}", source="test", at_s=from_s, data=fact)[0]


def tell(writer: Writer, events: Sequence[Event], randomness: random.Random, calendar: Calendar) -> None:
    """Append the events one by one or several at a time, at a clock that jumps about."""
    left = list(events)
    while left:
        batch = [left.pop(0)]
        book = getattr(batch[0].data, "cluster", "~org")
        while left and randomness.random() < 0.5 and getattr(left[0].data, "cluster", "~org") == book:
            batch.append(left.pop(0))
        clock = FixedClock(EPOCH.replace(year=randomness.randint(2000, 2030)))
        append(writer, book, batch, clock=clock, calendar=calendar)
    bring_up_to_date(writer, CLUSTER, clock=FixedClock(EPOCH.replace(year=2031)), calendar=calendar)


@few
@given(world=worlds(), relative=mappings, seeds=st.tuples(st.integers(0), st.integers(0)))
def test_facts_and_rules_in_any_order_come_to_what_the_oracle_says(
    empty: sa.Engine,
    world: tuple[str, list[Fact]],
    relative: dict[int, list[MappingRule]],
    seeds: tuple[int, int],
) -> None:
    (zone, facts), calendar = world, Calendar(world[0])
    base_s = min((fact.at_s for fact in facts), default=10**9)
    versions = {base_s + moment: rules for moment, rules in relative.items()}
    net = {tuple(key): gpu_ms for key, gpu_ms in oracle.net(expected(facts, versions), zone).items()}
    digests = set()
    for seed in seeds:
        randomness = random.Random(seed)
        with empty.connect() as connection, connection.begin() as transaction:
            reader, writer = Reader(connection), Writer(connection)
            tell(writer, told(facts, versions, randomness), randomness, calendar)
            found = {tuple(key): amount for *key, amount in connection.exec_driver_sql(NET).all()}
            assert found == net
            assert (verify(reader).ok, check(reader, calendar).differences) == (True, ())
            digests.add(state_digest(reader))
            rebuild(writer, calendar)
            assert check(reader, calendar).differences == ()
            digests.add(state_digest(reader))
            transaction.rollback()
    assert len(digests) == 1


names = st.text(min_size=1, max_size=12)
globs = st.lists(st.text("ab*?[]!-/", min_size=1, max_size=12), max_size=2).map(tuple)


@given(
    account=st.one_of(st.sampled_from(ACCOUNTS), names),
    label=names,
    rule=st.builds(
        MappingRule,
        account=globs,
        labels=st.dictionaries(st.sampled_from(["partition", "qos"]), globs, max_size=2),
        to=st.sampled_from([None, "org/{account}", "org/{account.1}/{partition}", "org/{cluster}-{qos}"]),
    ),
    users=st.frozensets(st.sampled_from(USERS), max_size=2),
)
def test_any_name_under_any_rule_has_a_payer_with_a_path(
    account: str, label: str, rule: MappingRule, users: frozenset[str]
) -> None:
    """Names come from outside: none may stop a book, and none may make an account that is no path."""
    rules = Rules([Version(0, 1, [rule])], CLUSTER)
    foreign = Foreign(account, users, (("partition", label), ("qos", "x")))
    meaning = rules.meaning(foreign, 0)
    assert meaning == rules.meaning(foreign, 10**9)
    if meaning.account != account:
        assert check_path(meaning.account) == meaning.account


VERSIONS = [Version(at, seq, [MappingRule(to=f"lab/{seq}")]) for at, seq in [(0, 1), (5, 2), (5, 3), (9, 4)]]


@given(order=st.permutations(VERSIONS))
def test_versions_in_any_order_say_the_same(order: list[Version]) -> None:
    rules = Rules(order, CLUSTER)
    assert [rules.meaning(Foreign("x"), at_s).account for at_s in (-1, 0, 4, 5, 8, 9, 10)] == [
        "lab/1", "lab/1", "lab/1", "lab/3", "lab/3", "lab/4", "lab/4",
    ]  # fmt: skip


held = st.tuples(moments, st.lists(rules_, max_size=2))


@given(
    before=st.lists(held, max_size=4),
    added=held,
    at_s=moments,
    account=st.sampled_from(ACCOUNTS),
    user=st.sampled_from(USERS),
)
def test_a_version_moves_nothing_of_before_its_moment_that_a_rule_had_decided(
    before: list[tuple[int, list[MappingRule]]],
    added: tuple[int, list[MappingRule]],
    at_s: int,
    account: str,
    user: str,
) -> None:
    versions = [Version(from_s, seq, rules) for seq, (from_s, rules) in enumerate(before, 1)]
    foreign = Foreign(account, frozenset({user}))
    stood = Rules(versions, CLUSTER).meaning(foreign, at_s)
    stands = Rules([*versions, Version(added[0], 99, added[1])], CLUSTER).meaning(foreign, at_s)
    if added[0] > at_s and stood.matched is not None:
        assert stands == stood
