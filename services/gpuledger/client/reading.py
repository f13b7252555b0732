"""What an HTTP answer means to the client: the value that was asked for, or an error by what the caller can do."""

import httpx2
import msgspec

from gpuledger.client import answers
from gpuledger.client.asking import A, Ask
from gpuledger.kernel.errors import (
    Conflict,
    Corrupt,
    Forbidden,
    GpuledgerError,
    KeyReused,
    NotFound,
    Refused,
    Unavailable,
    Unidentified,
)


def read(base_url: str, ask: Ask[A], response: httpx2.Response) -> A:
    """Return what was asked for.

    Raises:
        GpuledgerError: What the API refused it with, of the kind that it was; Unavailable when what answers is not it.
    """
    if not response.is_success:
        raise error_of(base_url, ask.path, response)
    try:
        return msgspec.json.decode(response.content, type=ask.kind)
    except msgspec.DecodeError as error:
        raise Unavailable(
            f"what answers at {base_url}{ask.path} is not the ledger API of this version: {error}",
            hint="check GPULEDGER_API_URL, and upgrade the older side",
        ) from error


def error_of(base_url: str, path: str, response: httpx2.Response) -> GpuledgerError:
    """Return the error that an answer is, with its hint."""
    try:
        problem = msgspec.json.decode(response.content, type=answers.Problem)
    except msgspec.DecodeError:
        return Unavailable(
            f"what answers at {base_url}{path} is not the ledger API: HTTP {response.status_code}",
            hint="check GPULEDGER_API_URL",
        )
    match response.status_code:
        case 401:
            return Unidentified(problem.detail, hint=problem.hint)
        case 403:
            return Forbidden(problem.detail, hint=problem.hint)
        case 404:
            return NotFound(problem.detail, hint=problem.hint)
        case 409 if problem.type.endswith("/key-reused"):
            return KeyReused(problem.detail, hint=problem.hint)
        case 409:
            return Conflict(problem.detail, hint=problem.hint)
        case 429 | 503:
            return Unavailable(problem.detail, hint=problem.hint)
        case status if status >= 500:  # noqa: PLR2004 - the server's own faults
            return Corrupt(problem.detail, hint=problem.hint)
        case _:
            return Refused(problem.detail, hint=problem.hint)
