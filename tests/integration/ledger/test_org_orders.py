"""What the organisation's book refuses as it stands: another zone once facts are booked, settings that contradict."""

import threading
from collections.abc import Iterator

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of, started, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.envelope import ORG_BOOK, Event
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.kernel.knobs import PolicyConfig, Value
from gpuledger.ledger import queries
from gpuledger.ledger.append import append
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.rebuild import check, state_digest


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


def zone(name: str, at_s: int = 0) -> Event:
    return told(at_s, PolicyChanged(policy="organisation", timezone=name, period="month"))


def settings(at_s: int = 0, cluster: str | None = None, **knobs: Value | None) -> Event:
    return told(at_s, PolicyChanged(policy="settings", settings=knobs, on_cluster=cluster))


def refusal(ledger: Ledger, *events: Event) -> BadRecord:
    with pytest.raises(BadRecord) as caught:
        ledger.append(*events)
    return caught.value


def zone_of(ledger: Ledger) -> str:
    with reading(ledger.engine) as reader:
        return queries.calendar(reader, Calendar()).timezone


def config(ledger: Ledger, cluster: str, at_s: int) -> PolicyConfig:
    with reading(ledger.engine) as reader:
        return read_config(reader, cluster, at_s)


def digest(ledger: Ledger) -> str:
    with reading(ledger.engine) as reader:
        return state_digest(reader)


def rows(ledger: Ledger, book: str) -> int:
    with reading(ledger.engine) as reader:
        return queries.sequences(reader).get(book, 0)


def test_another_zone_is_refused_once_facts_are_booked_and_what_stands_stays(ledger: Ledger) -> None:
    ledger.append(zone("Europe/Berlin"))
    ledger.append(*run_of(0, HOUR))
    before = digest(ledger)
    error = refusal(ledger, zone("Asia/Tokyo", 10 * HOUR))
    assert (error.code, zone_of(ledger), digest(ledger)) == ("zone-in-use", "Europe/Berlin", before)
    assert "Asia/Tokyo differs from Europe/Berlin, and facts of alpha are booked by its days" in error.message
    assert "set up a new database" in error.hint
    assert rows(ledger, ORG_BOOK) == 1


def test_a_zone_at_the_edge_of_a_period_that_is_to_come_is_refused_too(ledger: Ledger) -> None:
    """A run that is under way has its days already."""
    ledger.append(told(0, submitted()), told(0, started()))
    assert refusal(ledger, zone("Asia/Tokyo", 10**9)).code == "zone-in-use"


def test_before_the_first_fact_the_zone_may_change_and_the_one_in_force_may_be_said_again(
    ledger: Ledger,
) -> None:
    ledger.append(zone("Europe/Berlin"), zone("Asia/Tokyo"))
    ledger.append(zone("Europe/Berlin", 5))
    ledger.append(*run_of(0, HOUR))
    ledger.append(zone("Europe/Berlin", 6))
    assert zone_of(ledger) == "Europe/Berlin"


def test_a_zone_that_was_set_is_a_repeat_when_it_comes_again_later(ledger: Ledger) -> None:
    """Streams are read again; what was superseded since is no wish for another zone."""
    ledger.append(zone("Asia/Tokyo"), zone("Europe/Berlin"))
    ledger.append(*run_of(0, HOUR))
    assert ledger.append(zone("Asia/Tokyo")).repeated == 1
    assert zone_of(ledger) == "Europe/Berlin"


def test_the_first_facts_and_another_zone_that_come_at_once_wait_for_one_another(ledger: Ledger) -> None:
    """Facts first: the zone is refused."""
    found: list[BadRecord] = []
    teller = threading.Thread(target=lambda: found.append(refusal(ledger, zone("Asia/Tokyo"))))
    with writing(ledger.engine) as writer:
        append(writer, CLUSTER, run_of(0, HOUR), clock=ledger.clock, calendar=ledger.calendar)
        teller.start()
        teller.join(0.5)
        assert teller.is_alive()
    teller.join()
    assert found[0].code == "zone-in-use"


def test_facts_that_waited_for_a_zone_are_booked_by_its_days(ledger: Ledger) -> None:
    """The zone first: who had read the one before books by the new one."""
    teller = threading.Thread(target=lambda: ledger.append(*run_of(16 * HOUR, 17 * HOUR)))
    with writing(ledger.engine) as writer:
        append(writer, ORG_BOOK, [zone("Asia/Tokyo")], clock=ledger.clock, calendar=ledger.calendar)
        teller.start()
        teller.join(0.5)
        assert teller.is_alive()
    teller.join()
    with ledger.engine.connect() as connection:
        days = connection.exec_driver_sql("SELECT DISTINCT effective_on::text FROM ledger.postings").scalars()
        assert list(days) == ["1970-01-02"]
    with reading(ledger.engine) as reader:
        assert check(reader, Calendar()).differences == ()


def test_settings_set_apart_that_do_not_go_together_are_refused_and_those_in_force_stay(
    ledger: Ledger,
) -> None:
    ledger.append(settings(100, protection_cap_s=1800))
    error = refusal(ledger, settings(200, quantum_s=3600))
    assert error.code == "settings-contradict"
    assert "every cluster: a quantum of 3600 s" in error.message
    assert "in one order" in error.hint
    assert config(ledger, "c", 300) == PolicyConfig(protection_cap_s=1800)


def test_settings_of_a_cluster_are_held_against_those_of_every_cluster_at_every_later_moment(
    ledger: Ledger,
) -> None:
    ledger.append(settings(500, "c", protection_cap_s=1000))
    assert "cluster 'c'" in refusal(ledger, settings(100, quantum_s=2000)).message
    ledger.append(settings(100, "c", quantum_s=900), settings(100, quantum_s=2000))
    assert config(ledger, "c", 600) == PolicyConfig(protection_cap_s=1000)
    assert config(ledger, "d", 600) == PolicyConfig(quantum_s=2000)


def test_of_one_batch_the_earlier_order_counts_for_the_later(ledger: Ledger) -> None:
    refused = refusal(ledger, settings(0, protection_cap_s=1000), settings(0, quantum_s=2000))
    assert refused.code == "settings-contradict"
    ledger.append(settings(0, protection_cap_s=40_000), settings(0, quantum_s=30_000))
    assert config(ledger, "c", 0).quantum_s == 30_000


def test_books_that_took_a_contradiction_once_can_be_mended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order is refused for what it brings about, not for what it finds."""
    with monkeypatch.context() as before:
        before.setattr("gpuledger.ledger.org_orders.check", lambda *_: None)
        ledger.append(settings(100, protection_cap_s=100), settings(900, protection_cap_s=50))
    ledger.append(settings(200, protection_cap_s=None))
    assert config(ledger, "c", 200) == PolicyConfig()
    ledger.append(settings(900, "e", grace_s=7))
    with pytest.raises(Refused, match="cap of 50 s"):
        config(ledger, "e", 900)
