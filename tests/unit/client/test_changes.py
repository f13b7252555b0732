"""What the client changes is described so that it may be sent again."""

from gpuledger.client import Order
from gpuledger.client.changes import admit, grant, post_events, transfer

ORDER = Order("a/b", 5, cluster="alpha", period="2026-12", reason="why")


def test_every_command_carries_a_key_of_its_own_unless_one_is_given() -> None:
    asks = (admit("alpha", "w"), grant(ORDER), grant(ORDER), transfer(ORDER, "a/c"))
    keys = {ask.headers["Idempotency-Key"] for ask in asks}
    assert len(keys) == len(asks)
    assert all(keys)
    assert grant(ORDER, key="k").headers["Idempotency-Key"] == "k"


def test_events_travel_as_lines() -> None:
    ask = post_events(iter([b'{"id": "1"}', b'{"id": "2"}']))
    assert ask.content == b'{"id": "1"}\n{"id": "2"}'
    assert ask.headers["Content-Type"] == "application/x-ndjson"
