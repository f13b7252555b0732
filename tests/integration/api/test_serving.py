"""Over sockets: no budget is spent twice however many ask at once, and a restart under load loses nothing."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.integration.api.served import free_port, served
from tests.integration.ledger.books import GPU_HOUR, HOUR, Ledger, submitted, told

from gpuledger.api.app import create_app
from gpuledger.client import LedgerClient
from gpuledger.events.budget import OverdraftSet
from gpuledger.events.envelope import encode
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Unavailable
from gpuledger.ledger.audit import verify

ACCOUNT = "org/vision/video"


def test_of_two_hundred_that_ask_at_once_ten_are_funded_and_ten_protected(
    own_ledger: Ledger, tokens: dict[Role, str]
) -> None:
    own_ledger.append(told(0, OverdraftSet(account=ACCOUNT, overdraft="hard", reason="test", by="test")))
    left = own_ledger.balance(ACCOUNT, "2026-12").available_gpu_ms // GPU_HOUR
    now_s, names = seconds(own_ledger.clock.now()), [f"job{n}" for n in range(200)]
    asked = {"account": ACCOUNT, "gpus_milli": left * 100, "minimum_runtime_s": HOUR}  # a tenth of it each
    own_ledger.append(*(told(now_s, submitted(name, **asked)) for name in names))
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token")
    ready = threading.Barrier(len(names))
    with (
        served(app, free_port()) as address,
        LedgerClient(address, tokens[Role.SCHEDULER]) as client,
        ThreadPoolExecutor(len(names)) as pool,
    ):

        def admit(name: str) -> str:
            ready.wait(30)
            for _ in range(10):  # who gets no answer in time asks again, and is told the same
                try:
                    return client.admit("alpha", name).klass
                except Unavailable:
                    continue
            raise AssertionError(f"{name} was never answered")

        classes = list(pool.map(admit, names))
    assert classes.count("allocated") == 10
    assert classes.count("unallocated") == 190
    balance = own_ledger.balance(ACCOUNT, "2026-12")
    assert balance.available_gpu_ms >= 0
    with own_ledger.engine.connect() as connection:
        assert verify(connection).ok  # type: ignore[arg-type]


def test_a_restart_under_load_loses_nothing_that_was_answered(
    own_ledger: Ledger, tokens: dict[Role, str]
) -> None:
    """Four senders go on through it: what was not answered they send again, and each event counts once."""
    port, over = free_port(), threading.Event()
    now_s = seconds(own_ledger.clock.now())
    answered: list[str] = []

    def send(sender: int) -> None:
        with LedgerClient(f"http://127.0.0.1:{port}", tokens[Role.SCHEDULER]) as client:
            number = 0
            while not over.is_set():
                name = f"w{sender}-{number}"
                fact = submitted(name, account=ACCOUNT)
                try:
                    client.post_events([encode(id=name, source="test", at_s=now_s, data=fact)])
                except Unavailable:
                    time.sleep(0.02)
                    continue
                answered.append(name)
                number += 1

    senders = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    try:
        with served(create_app(own_ledger.engine, own_ledger.clock, mode="token"), port):
            for sender in senders:
                sender.start()
            _wait_for(answered, 40)
        before, began = len(answered), time.monotonic()
        with served(create_app(own_ledger.engine, own_ledger.clock, mode="token"), port):
            _wait_for(answered, before + 1)
            back_s = time.monotonic() - began
            _wait_for(answered, before + 40)
            over.set()
            for sender in senders:
                sender.join(20)
    finally:
        over.set()
    booked = [
        name
        for (name,) in own_ledger.rows(
            "SELECT workload FROM ledger.journal WHERE source = 'test' AND type = 'workload.submitted'"
        )
    ]
    assert len(booked) == len(set(booked))
    assert set(answered) == set(booked)
    assert back_s < 10
    with own_ledger.engine.connect() as connection:
        assert verify(connection).ok  # type: ignore[arg-type]


def _wait_for(answered: list[str], number: int) -> None:
    until = time.monotonic() + 60
    while len(answered) < number:
        assert time.monotonic() < until
        time.sleep(0.01)
