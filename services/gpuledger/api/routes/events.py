"""Event intake: CloudEvents of schedulers and agents, one or many, taken as from a stream."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import HTTPException

from gpuledger.api import problems
from gpuledger.api.access import Asking, needs
from gpuledger.api.context import Context
from gpuledger.api.outcomes import TakenEvents
from gpuledger.events.acceptance import understood
from gpuledger.events.envelope import ORG_BOOK, Event, book_of
from gpuledger.events.orders import is_order
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Right
from gpuledger.ingest.importer import BrokerSink, LedgerSink, Sink
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.errors import BadRecord, Forbidden
from gpuledger.streams.protocol import Broker

ONE, MANY, LINES, EITHER = (
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "application/x-ndjson",
    "application/json",
)
FORMS = (ONE, MANY, LINES, EITHER)

PATH = "/v1/events"

EVENTS_MAX = 10_000
FAULTS_SHOWN_MAX = 100

OWN_SOURCES = "gpuledger/"
"""How the sources of what the ledger writes itself begin."""

_DOCUMENT = {
    "requestBody": {
        "required": True,
        "description": "CloudEvents 1.0 in structured JSON: one, a list, or one on each line.",
        "content": {form: {"schema": {}} for form in FORMS},
    }
}


async def _body(request: Request) -> bytes:
    return await request.body()


def router(context: Context, broker: Broker | None) -> APIRouter:
    """Return the paths; events go to the broker where there is one, else straight into the books."""
    routes = APIRouter(tags=["intake"])
    opened: list[Sink] = []
    # One at a time: others would wait for the book's lock anyway. Who waits here holds no thread and no connection.
    turn = CapacityLimiter(1)

    def sink() -> Sink:
        """Return where events go, opened at the first: an API that is only read needs none."""
        if not opened:
            intake = Intake(context.engine, context.clock, context.default_calendar)
            opened.append(LedgerSink(intake) if broker is None else BrokerSink(intake, broker))
        return opened[0]

    @routes.post(
        PATH,
        operation_id="postEvents",
        summary="Say what happened on a cluster",
        response_model=TakenEvents,
        openapi_extra={**needs(Right.POST_EVENTS)["openapi_extra"], **_DOCUMENT},
    )
    async def post_events(
        request: Request, caller: Asking, body: Annotated[bytes, Depends(_body)]
    ) -> dict[str, Any] | Response:
        """Take events; one that is known by its source and id already changes nothing, so that a retry is safe.

        Where one cannot be read none is taken, and `errors[]` points at each. Each book takes its events in a
        transaction of its own.
        """
        return await to_thread.run_sync(take, request, caller, body, limiter=turn)

    def take(request: Request, caller: Caller, body: bytes) -> dict[str, Any] | Response:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        said = pieces(body, form)
        events, faults = _read(said)
        if faults:
            told = f"{len(faults)} of {len(said)} events cannot be read: {faults[0]['detail']}"
            return problems.problem(
                request,
                problems.REFUSED,
                told,
                hint="mend what errors[] points at, and send all of them again: none was taken",
                errors=faults[:FAULTS_SHOWN_MAX],
            )
        for event in events:
            check_sender(caller, event)
        taken = sink().take(list(zip(events, said, strict=True)), ())
        if broker is None:
            sink().intake.open_periods(sorted({book_of(event.data) for event in events}))
        return {"events": len(events), "accepted": len(taken.accepted), "repeated": taken.repeated}

    return routes


def pieces(body: bytes, form: str) -> list[bytes]:
    """Return the bytes of each event in a body.

    Args:
        body: The body.
        form: Its media type.

    Raises:
        BadRecord: When the body is not of the form that it says.
        HTTPException: When the form is not known (415), or there are more than can be taken at once (413).
    """
    if form not in FORMS:
        raise HTTPException(
            415, f"a body of type {form or '(none)'} is not read here: send {', '.join(FORMS)}"
        )
    is_list = form == MANY or (form == EITHER and body.lstrip()[:1] == b"[")
    if form == LINES:
        found = [line for line in body.splitlines() if line.strip()]
    elif is_list:
        try:
            found = [bytes(raw) for raw in msgspec.json.decode(body, type=list[msgspec.Raw])]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRecord(
                f"the body is no list of events: {error}", code="not-an-event", hint="send a JSON array"
            ) from error
    else:
        found = [body]
    if len(found) > EVENTS_MAX:
        raise HTTPException(413, f"{len(found)} events are more than {EVENTS_MAX}: send them in parts")
    return found


def check_sender(caller: Caller, event: Event) -> None:
    """Refuse what a caller does not speak for.

    Raises:
        Forbidden: An order about budgets from who gives none; what happened on another's cluster; what is said in the
            ledger's own name, under which it keeps the keys of orders and of all that it writes itself.
    """
    if event.source.startswith(OWN_SOURCES):
        raise Forbidden(
            f"{caller.name} speaks as {event.source}, and that name is the ledger's own",
            hint="name in source the scheduler or agent that saw what happened",
        )
    book = book_of(event.data)
    if is_order(event.data) or book == ORG_BOOK:
        caller.require(Right.CHANGE_BUDGETS)
        if not caller.is_everywhere:
            raise Forbidden(
                f"{caller.name} gives no orders to {book} by event",
                hint="POST /v1/budget/grants and /v1/budget/transfers take orders within a scope",
            )
        return
    caller.cluster(book)
    if caller.scope.subtree is not None:
        raise Forbidden(
            f"{caller.name} reaches {caller.scope.subtree} alone, and a cluster's events are about all of its work",
            hint="use a token that is bound to clusters and to no subtree",
        )


def _read(said: Sequence[bytes]) -> tuple[list[Event], list[dict[str, str]]]:
    events, faults = [], []
    for number, raw in enumerate(said):
        try:
            events.append(understood(raw.strip()))
        except BadRecord as error:
            faults.append({"pointer": f"/{number}", "code": error.code, "detail": error.message})
    return events, faults
