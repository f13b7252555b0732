"""Over HTTP each caller has a rate, and who is nobody is told nothing of what is inside."""

from fastapi.testclient import TestClient
from httpx import Response
from tests.integration.ledger.books import Ledger

from gpuledger.api.app import create_app
from gpuledger.api.rates import Limiter, Rate
from gpuledger.database.engine import make_engine
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import SystemClock


def test_each_token_has_a_rate_of_its_own_and_strangers_share_one_by_address(
    own_ledger: Ledger, tokens: dict[Role, str]
) -> None:
    limiter = Limiter(Rate(per_s=1, burst=3), lambda: 0.0)
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token", limiter=limiter)
    with TestClient(app, raise_server_exceptions=False) as api:

        def me(token: str) -> Response:
            return api.get("/v1/me", headers={"Authorization": f"Bearer {token}"})

        answers = [me(tokens[Role.ADMIN]) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["ratelimit"] for answer in answers[1:]] == [
            '"caller";r=1;t=0', '"caller";r=0;t=1', '"caller";r=0;t=1'
        ]  # fmt: skip
        refused = answers[-1]
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["type"] == "/problems/too-many"
        assert tokens[Role.ADMIN] not in refused.text
        assert me(tokens[Role.AUDITOR]).status_code == 200
        guessed = [me(f"gpl_000000000000_{n:043d}").status_code for n in range(4)]
        assert guessed == [401, 401, 401, 429]
        assert me(tokens[Role.LEAD]).status_code == 200
        assert api.get("/healthz").status_code == 200


def test_a_stranger_is_not_told_where_the_database_is() -> None:
    gone = make_engine("postgresql+psycopg://secret-user@127.0.0.1:1/secret-name")
    app = create_app(gone, SystemClock(), mode="token")
    with TestClient(app, raise_server_exceptions=False) as api:
        answer = api.get("/v1/me", headers={"Authorization": "Bearer gpl_000000000000_" + "A" * 43})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "secret" not in answer.text
        assert "127.0.0.1" not in answer.text
        assert "secret" not in api.get("/readyz").text
