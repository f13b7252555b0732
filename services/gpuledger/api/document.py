"""The OpenAPI document: what FastAPI derives, with examples that keep their nulls and with our errors."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gpuledger.api.access import RIGHT
from gpuledger.api.answers import Problem
from gpuledger.api.examples import EXAMPLES
from gpuledger.api.problems import (
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    MEDIA_TYPE,
    NOT_FOUND,
    REFUSED,
    THROTTLED,
    UNAVAILABLE,
    UNIDENTIFIED,
)

_V1_PROBLEMS = (NOT_FOUND, REFUSED, INTERNAL, UNAVAILABLE)

_OF_BODIES = {
    400: "The body is no JSON",
    408: "The body stood still",
    CONFLICT.status: "The key stands for another order, or somebody else was faster",
    413: "The body is too large",
    415: "A body of this form is not read here",
}


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
    problems = {kind.status: kind.title for kind in kinds}
    if RIGHT in operation:
        problems |= {
            kind.status: kind.title for kind in (UNIDENTIFIED, FORBIDDEN, THROTTLED, INTERNAL, UNAVAILABLE)
        }
    if "requestBody" in operation:
        problems |= _OF_BODIES
    for status, title in sorted(problems.items()):
        answers[str(status)] = {
            "description": title,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
