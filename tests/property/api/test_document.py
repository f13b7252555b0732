"""The API's document, attacked: every operation with made-up requests, good and bad, with and without a token.

Whatever is sent, no answer is a fault of ours, each has a status, a type and a shape that the document says, and
nobody is let in without a token.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.integration.api.matrix import OPERATIONS, booked_ledger, tokens_of
from tests.integration.ledger.books import Ledger

from gpuledger.api.app import create_app
from gpuledger.identity.roles import Role
from gpuledger.ledger.audit import verify

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

CHECKS: list[Any] = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
]  # fmt: skip


@pytest.fixture(scope="module")
def booked(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[Ledger]:
    yield from booked_ledger(postgres, template_database, "gpuledger_attacked")


@pytest.fixture(scope="module")
def tokens(booked: Ledger) -> dict[Role, str]:
    return tokens_of(booked)


@pytest.fixture(scope="module")
def app(booked: Ledger) -> FastAPI:
    return create_app(booked.engine, booked.clock, mode="token")


def attack(app: FastAPI, operation: str, mode: GenerationMode, token: str | None) -> list[int]:
    """Send made-up requests for an operation; return the statuses that came."""
    document = schemathesis.openapi.from_asgi("/openapi.json", app)
    statuses = []

    # Requests are dear: a quarter of what a property of pure code is tried with.
    @settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
    @given(case=document.find_operation_by_id(operation).as_strategy(generation_mode=mode))
    def once(case: Case) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = case.call(headers=headers)
        statuses.append(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    once()
    return statuses


TAKE_NOTHING = ("getMetrics", "getHealth", "getReadiness")
"""Operations that cannot be asked wrongly."""


@pytest.mark.parametrize("operation", [*OPERATIONS, "getHealth", "getReadiness"])
def test_what_is_asked_rightly_is_answered_as_the_document_says(
    app: FastAPI, tokens: dict[Role, str], operation: str
) -> None:
    assert attack(app, operation, GenerationMode.POSITIVE, tokens[Role.ADMIN])


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in TAKE_NOTHING])
def test_what_is_asked_wrongly_is_refused_as_the_document_says(
    app: FastAPI, tokens: dict[Role, str], operation: str
) -> None:
    assert attack(app, operation, GenerationMode.NEGATIVE, tokens[Role.ADMIN])


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_nobody_gets_in_by_guessing(app: FastAPI, operation: str) -> None:
    assert set(attack(app, operation, GenerationMode.POSITIVE, None)) == {401}


def test_the_books_hold_after_it(booked: Ledger, app: FastAPI, tokens: dict[Role, str]) -> None:
    for operation, asked in OPERATIONS.items():
        if asked.method == "POST":
            attack(app, operation, GenerationMode.POSITIVE, tokens[Role.ADMIN])
    with booked.engine.connect() as connection:
        assert verify(connection).ok  # type: ignore[arg-type]
