"""Every read is answered once and then only confirmed, and a long answer says the same compressed."""

from collections.abc import Callable

from fastapi.testclient import TestClient
from tests.integration.api.matrix import OPERATIONS, OWN, ask

from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]

READS = [
    name
    for name, asked in OPERATIONS.items()
    if asked.path.startswith("/v1/") and asked.body is None and not name.startswith("export")
]
"""Every question: what is sent with a body orders something, or asks about what the caller made up."""


def test_every_read_is_answered_once_and_then_only_confirmed(
    guarded: TestClient, tokens: dict[Role, str]
) -> None:
    confirmed = set()
    for operation in READS:
        first = ask(guarded, operation, OWN, tokens[Role.ADMIN])
        if first.status_code == 404:  # no cycle ran here, and no period was closed
            continue
        path = OPERATIONS[operation].path.format(**OWN)
        headers = {"Authorization": f"Bearer {tokens[Role.ADMIN]}", "If-None-Match": first.headers["etag"]}
        again = guarded.get(path, headers=headers)
        assert (again.status_code, again.content) == (304, b""), operation
        assert again.headers["etag"] == first.headers["etag"]
        other = guarded.get(path, headers={**headers, "If-None-Match": 'W/"another"'})
        assert other.status_code == 200
        # Who may not ask is not told that nothing changed.
        assert guarded.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 401
        confirmed.add(operation)
    assert set(READS) - confirmed == {"getCurrentAllocations", "getClose"}


def test_a_long_answer_travels_compressed_and_is_the_same(guarded: TestClient, shown: Shown) -> None:
    headers = shown(Role.ADMIN)
    plain = guarded.get("/v1/balances", headers={**headers, "Accept-Encoding": "identity"})
    packed = guarded.get("/v1/balances", headers={**headers, "Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json()["balances"] == plain.json()["balances"]
    assert packed.headers["etag"] == plain.headers["etag"]
    assert "accept-encoding" in packed.headers["vary"].lower()
