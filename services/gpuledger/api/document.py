"""The OpenAPI document: what FastAPI derives, with examples that keep their nulls and with our errors."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gpuledger.api.answers import Problem
from gpuledger.api.examples import EXAMPLES
from gpuledger.api.problems import (
    FORBIDDEN,
    INTERNAL,
    MEDIA_TYPE,
    NOT_FOUND,
    REFUSED,
    UNAVAILABLE,
    UNIDENTIFIED,
)

_V1_PROBLEMS = (UNIDENTIFIED, FORBIDDEN, NOT_FOUND, REFUSED, INTERNAL, UNAVAILABLE)


def of(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application, made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = found["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["Problem"] = Problem.model_json_schema()
        for path, methods in found["paths"].items():
            for operation in methods.values():
                _complete(path, operation)
        app.openapi_schema = found
    return app.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    example = EXAMPLES.get(operation["operationId"])
    answers: dict[str, Any] = operation["responses"]
    if example is not None:
        answers["200"]["content"]["application/json"]["example"] = example
    # FastAPI would announce its own shape of a validation error; ours is a problem document.
    answers.pop("422", None)
    kinds = _V1_PROBLEMS if path.startswith("/v1/") else (UNAVAILABLE,) if path == "/readyz" else ()
    for kind in kinds:
        answers[str(kind.status)] = {
            "description": kind.title,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
