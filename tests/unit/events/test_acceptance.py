"""What may come on a stream: every fact and order, nothing that the ledger writes itself, nothing impossible."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.integration.ledger.books import registered, started, submitted

from gpuledger.cli.app import app
from gpuledger.events.acceptance import understood
from gpuledger.events.budget import AccountCreated, Granted, PolicyChanged, Transferred
from gpuledger.events.envelope import make
from gpuledger.events.fields import GPUS_MAX
from gpuledger.events.host import Registered
from gpuledger.events.mapping import MappingRule
from gpuledger.events.own import OWN
from gpuledger.events.registry import Fact, name_of, names
from gpuledger.events.workload import Submitted
from gpuledger.kernel.errors import BadRecord

CORPUS = Path(__file__).parents[2] / "contract/events/corpus"
"""An event of each type."""


def told(fact: Fact) -> bytes:
    return make(id="x", source="test", at_s=0, data=fact)[1]


@pytest.mark.parametrize("fact", OWN)
def test_what_the_ledger_writes_itself_is_refused_with_its_command(fact: type[Fact]) -> None:
    for line in (CORPUS / f"{name_of(fact)}.v1.ndjson").read_bytes().splitlines():
        with pytest.raises(BadRecord, match=name_of(fact)) as refused:
            understood(line)
        assert (refused.value.code, refused.value.hint) == (
            "own-type",
            f"gpuledger {OWN[fact]} has it written",
        )


@pytest.mark.parametrize("name", sorted(set(names()) - {name_of(fact) for fact in OWN}))
def test_whatever_else_there_is_may_come_on_a_stream(name: str) -> None:
    for line in (CORPUS / f"{name}.v1.ndjson").read_bytes().splitlines():
        assert understood(line).name == name


def test_the_hint_names_a_command_that_there_is() -> None:
    for command in OWN.values():
        found: Any = typer.main.get_command(app)
        for word in command.split():
            assert word in found.commands, command
            found = found.commands[word]


GRANT: dict[str, Any] = {
    "account": "org/a",
    "cluster": "alpha",
    "period": "2026-12",
    "gpu_ms": 1,
    "reason": "r",
    "by": "ada",
}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Granted(**{**GRANT, "period": "soon"}), "soon"),
        (Granted(**GRANT, rollover="half of it"), "'half of it' is no rule"),
        (Granted(**GRANT, priority=10**12), "priority: 1000000000000 is beyond 1000000000"),
        (Granted(**{**GRANT, "period": "2101-06"}), "period '2101-06' is outside the years 1970 to 2100"),
        (Granted(**GRANT, expires_at=dt.datetime.max.replace(tzinfo=dt.UTC)), "expires_at: 9999-12-31"),
        (
            Submitted(cluster="alpha", workload="w", account="a", user="u", gpus_milli=1, priority=-(10**25)),
            "priority: -1",
        ),
        (Transferred(**{**GRANT, "period": "2026-13"}, to="org/b"), "2026-13"),
        (PolicyChanged(policy="organisation", timezone="Mars/Olympus", period="month"), "Mars/Olympus"),
        (
            PolicyChanged(policy="mapping", rules=[MappingRule(), MappingRule(to="Org")]),
            "account: account path 'Org'",
        ),
    ],
)
def test_an_order_that_no_book_could_be_settled_with_is_refused(fact: Fact, expected: str) -> None:
    with pytest.raises(BadRecord, match=expected) as refused:
        understood(told(fact))
    assert refused.value.code == "bad-field"


def test_a_mapping_may_come_on_a_stream() -> None:
    fact = PolicyChanged(
        policy="mapping", rules=[MappingRule(account=("ml-*",), to="org/{account}")], by="ada"
    )
    assert understood(told(fact)).data == fact


def test_a_cluster_cannot_be_called_like_the_organisations_book() -> None:
    value = told(Registered(cluster="~org", host="h", gpus=1, gpu_model="m"))
    with pytest.raises(BadRecord, match="no cluster") as refused:
        understood(value)
    assert refused.value.code == "reserved-name"


@pytest.mark.parametrize("account", ["~", "~/team"])
def test_nobodys_work_is_booked_among_the_books_own_pots(account: str) -> None:
    for fact in (submitted(account=account), AccountCreated(account=account, by="x")):
        with pytest.raises(BadRecord, match="own pots") as refused:
            understood(told(fact))
        assert refused.value.code == "reserved-name"
    for lookalike in ("~own", "org/~", "org/~own", "~~"):
        assert understood(told(submitted(account=lookalike))).data == submitted(account=lookalike)


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (submitted(gpus_milli=GPUS_MAX * 1000), submitted(gpus_milli=GPUS_MAX * 1000 + 1)),
        (started(gpus_milli=GPUS_MAX * 1000), started(gpus_milli=2**53)),
        (registered("h1", GPUS_MAX), registered("h1", GPUS_MAX + 1)),
    ],
    ids=["submitted", "started", "host"],
)
def test_more_gpus_than_any_cluster_has_are_refused(within: Fact, beyond: Fact) -> None:
    """Alone they would be booked, and stop the first tick that charges them."""
    assert understood(told(within)).data == within
    with pytest.raises(BadRecord, match="is more than 1000000") as refused:
        understood(told(beyond))
    assert refused.value.code == "out-of-bounds"
