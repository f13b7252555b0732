"""The broker is killed while events arrive and are booked; nothing that it acknowledged is lost or doubled."""

import random
import time
from collections.abc import Sequence

import pytest
from infra.kafka.nodes import Broker
from tests.chaos.publishing import Published, forget_topics, messages, publish_all
from tests.chaos.workers import Watch, ended, wait_for, worker
from tests.commands.fixtures import Ledger, running_home
from tests.commands.running import finish
from tests.commands.traces import DATA

pytestmark = [pytest.mark.durable_broker, pytest.mark.timeout(2400)]

KILLS = {"short": 2, "full": 20}
SEED = 20_200_203


def test_workers_whose_broker_is_killed(
    ledger: Ledger, own_home: Ledger, killable_kafka: Broker, test_form: str
) -> None:
    forget_topics(killable_kafka.bootstrap)
    events = list(messages([("openb", DATA)]))
    kills, chance = KILLS[test_form], random.Random(SEED)
    published = 0
    for number in range(kills):
        part = _part(events, number, kills + 1)
        publish_all(killable_kafka.bootstrap, part)
        published += len(part)
        _killed_while_booked(ledger, killable_kafka, published, chance, patient=number % 2 == 0)
    publish_all(killable_kafka.bootstrap, _part(events, kills, kills + 1))

    last = finish(worker(ledger, killable_kafka.bootstrap, "--once"))

    assert last.status == 0, last.err
    assert Watch(ledger).position == len(events)
    counts = "SELECT type, count(*) FROM ledger.journal WHERE book = 'openb' GROUP BY 1 ORDER BY 1"
    with running_home(own_home.home) as clean:
        assert clean.fresh("db", "upgrade").status == 0
        clean.done("import", "openb", DATA)
        assert ledger.checked_digest() == clean.checked_digest()
        assert ledger.rows(counts) == clean.rows(counts)


def _killed_while_booked(
    ledger: Ledger, broker: Broker, published: int, chance: random.Random, *, patient: bool
) -> None:
    """Kill the broker under a worker; it is back when the worker has given up, or, impatiently, at once."""
    watch = Watch(ledger)
    epoch = watch.epoch
    with ended(worker(ledger, broker.bootstrap)) as process:
        assert wait_for(lambda: watch.epoch > epoch, process)
        time.sleep(chance.uniform(0, 1.5))
        broker.kill()
        if patient:
            ran = finish(process, within_s=120)
            broker.start()
        else:
            broker.start()
            if wait_for(lambda: watch.position == published, process):
                return  # it went on as if nothing had happened
            ran = finish(process)
    assert ran.status == 75, ran.err
    assert "Traceback" not in ran.err


def _part(events: Sequence[Published], number: int, of: int) -> Sequence[Published]:
    return events[len(events) * number // of : len(events) * (number + 1) // of]
