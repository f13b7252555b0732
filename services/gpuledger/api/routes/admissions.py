"""Admission: what a scheduler asks before a start."""

from typing import Any

from fastapi import APIRouter

from gpuledger.api.access import Asking, needs
from gpuledger.api.bodies import Body, Name
from gpuledger.api.context import Context
from gpuledger.api.outcomes import Admitted
from gpuledger.database.engine import Writer, reading
from gpuledger.identity.roles import Right
from gpuledger.kernel.errors import Forbidden
from gpuledger.ledger import admission, queries
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.recent import Recent, heads


class AdmissionBody(Body):
    """The attempt that is to start."""

    cluster: Name
    workload: Name


def router(context: Context) -> APIRouter:
    """Return the path, writing through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["orders"])
    recent = Recent(admission.terms)

    @routes.post(
        "/admissions",
        operation_id="admit",
        summary="May this attempt start protected?",
        response_model=Admitted,
        **needs(Right.ADMIT),
    )
    def admit(caller: Asking, body: AdmissionBody) -> dict[str, Any]:
        """Decide in which class the next attempt of a workload may run, and set aside what protects it.

        Asked again before it starts and before the hold expires, the answer is the same.
        """
        caller.cluster(body.cluster)
        if caller.scope.subtree is not None:
            raise Forbidden(f"{caller.name} reaches {caller.scope.subtree} alone, and admits nothing")

        with reading(context.engine) as reader:
            found, now_s = heads(reader), context.now_s()
            found.check(body.cluster)
            terms = recent.within(reader, found, body.cluster, now_s)
            stands = admission.standing(reader, body.cluster, body.workload, terms, now_s)
        if stands is not None:
            return stands.as_json()

        def ask(writer: Writer) -> admission.Admission:
            calendar = queries.calendar(writer, context.default_calendar)
            return admission.admit(
                writer, body.cluster, body.workload, clock=context.clock, calendar=calendar
            )

        return booked(context.engine, body.cluster, ask).as_json()

    return routes
