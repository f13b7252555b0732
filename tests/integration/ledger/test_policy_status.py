"""How the policy's service is, as the database knows it."""

import datetime as dt
import time

from tests.integration.ledger.books import CLUSTER, NOON, Ledger, submitted, told

from gpuledger.database.engine import Writer, detached, reading, writing
from gpuledger.ledger import policy_status
from gpuledger.ledger.policy_status import Newest


def newest(cycle: str, minutes: int) -> Newest:
    return Newest(cycle, NOON + dt.timedelta(minutes=minutes), NOON, 1500)


def test_the_newest_instant_counts_and_every_cycle_is_counted(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()))
    with reading(ledger.engine) as reader:
        (nothing,) = policy_status.read(reader)
    assert (nothing.leader, nothing.newest, nothing.cycles) == (None, None, 0)
    with writing(ledger.engine) as writer:
        policy_status.write(writer, CLUSTER, newest("c2", 2), {"waiting": {"1": 2}})
        policy_status.write(writer, CLUSTER, newest("c1", 1), {"waiting": {"1": 1}})
    with reading(ledger.engine) as reader:
        (found,) = policy_status.read(reader)
    assert (found.newest, found.cycles, found.figures) == (newest("c2", 2), 2, {"waiting": {"1": 2}})


def test_one_session_leads_until_it_ends(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()))
    with detached(ledger.engine) as first, detached(ledger.engine) as second:
        first.exec_driver_sql("SET application_name = 'gpuledger policy h1 7'")
        assert policy_status.lead(Writer(first), CLUSTER)
        first.commit()
        assert not policy_status.lead(Writer(second), CLUSTER)
        second.commit()
        with reading(ledger.engine) as reader:
            assert [status.leader for status in policy_status.read(reader)] == ["h1 7"]
        first.close()
        deadline = time.monotonic() + 20  # the server takes a moment to see it
        while not policy_status.lead(Writer(second), CLUSTER):
            assert time.monotonic() < deadline
            time.sleep(0.05)
