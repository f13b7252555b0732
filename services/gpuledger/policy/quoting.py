"""A quote from the ledger: when work would start that nobody submitted yet, and whether it can be paid for."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import queries
from gpuledger.ledger import story as rows
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.knobs import read_config
from gpuledger.policy.cadence import NO_CYCLE, Cadence
from gpuledger.policy.forecast import shares_of
from gpuledger.policy.funding import Funding, Seen, Work, funding
from gpuledger.policy.placement import model_of
from gpuledger.policy.quotes import Certainty, Quote, Request, quote
from gpuledger.policy.reading import read_asked, read_cadence, read_state
from gpuledger.policy.words import duration, gpus, hours, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """The answer.

    Args:
        cluster: Where.
        request: What was asked for.
        protected_s: How long it would be protected: its minimum runtime, up to the cap.
        runtime_s: How long it would run in all; None where nobody said.
        quote: When it would start.
        funding: Whether it can be paid for.
        cadence: Which cycle is in force, and how often they come.
        budgets_as_of_s: Asked about the past, the recorded time as of which budgets were read; None where nothing was
            booked since, or another one was asked for.
    """

    cluster: str
    request: Request
    protected_s: int
    runtime_s: int | None
    quote: Quote
    funding: Funding
    cadence: Cadence = NO_CYCLE
    budgets_as_of_s: int | None = None

    @property
    def is_allocated(self) -> bool:
        """Whether it would run charged and protected: shares, a minimum runtime, and a hold where one is needed."""
        return self.quote.is_funded and (self.funding.hold.fits is not False or not self.funding.is_hard)

    def as_json(self) -> dict[str, Any]:
        """Return the answer under its published keys."""
        starts_by_s = self.quote.starts_by_s
        return {
            "cluster": self.cluster,
            "account": self.request.account,
            "gpus_milli": self.request.gpus_milli,
            "gpu_model": self.request.gpu_model,
            "minimum_runtime_s": self.request.minimum_runtime_s,
            "runtime_s": self.runtime_s,
            "at": moment(self.quote.at_s),
            "starts_by": None if starts_by_s is None else moment(starts_by_s),
            "certainty": self.quote.certainty and self.quote.certainty.value,
            "every_s": self.cadence.every_s,
            "place": self.quote.position,
            "reason": self.quote.reason,
            "hosts": dict(sorted(self.quote.placement.items())),
            "class": "allocated" if self.is_allocated else "unallocated",
            "funding": self.funding.as_json() if self.quote.is_funded else None,
            "budgets_as_of": None if self.budgets_as_of_s is None else moment(self.budgets_as_of_s),
        }

    def lines(self) -> Iterator[str]:
        """Yield the answer as text, line by line."""
        asked = f"{gpus(self.request.gpus_milli)} for at least {duration(self.request.minimum_runtime_s)}"
        yield f"{asked}, by {self.request.account} on {self.cluster}, asked at {moment(self.quote.at_s)}"
        if self.quote.starts_by_s is None:
            yield "Starts: nobody can say when."
        elif self.quote.certainty is Certainty.BOUND:
            yield f"Starts by {moment(self.quote.starts_by_s)} (bound), when submitted before the next cycle."
            yield from self.cadence.doubts(self.quote.at_s)
        else:
            yield f"Starts at {moment(self.quote.starts_by_s)} or so (estimate), if nobody else submits."
        yield self.quote.reason
        if self.is_allocated:
            yield f"Runs allocated: charged, and protected for {duration(self.protected_s)}."
        else:
            yield "Runs unallocated: free, and preemptible from the outset."
        if not self.quote.is_funded:
            return  # what runs unallocated is free: nothing is set aside, and no budget is asked
        if self.budgets_as_of_s is not None:
            yield f"Budgets are those that the books had at {moment(self.budgets_as_of_s)}."
        yield f"Hold of {hours(self.funding.hold.gpu_ms)}: {_fits(self.funding.hold.fits)}. {self.funding.hold.reason}"
        whole = self.funding.whole
        if whole is not None and self.runtime_s is not None:
            can = {True: "It can", False: "It cannot", None: "Nobody can say yet whether it can"}[whole.fits]
            yield f"{can} finish inside the budget ({duration(self.runtime_s)}, {hours(whole.gpu_ms)}): {whole.reason}"


def ask_quote(
    reader: Reader,
    cluster: str,
    request: Request,
    *,
    at_s: int,
    calendar: Calendar,
    runtime_s: int | None = None,
    as_of: dt.datetime | None = None,
) -> Quoted:
    """Return when work would start that is submitted at an instant, and whether its account can pay for it.

    What happens is that of the instant, as it is known; budgets are those that the books had then.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        request: The work.
        at_s: The instant; the present, as a rule.
        calendar: The organisation's days.
        runtime_s: How long it would run in all, if known.
        as_of: Recorded time: what the books said then; now unless given.

    Raises:
        NotFound: When the cluster or the account does not exist.
        Refused: When the cluster has no healthy GPUs.
    """
    queries.require_cluster(reader, cluster)
    queries.require_account(reader, request.account)
    vector = vector_of(reader, as_of)
    config = read_config(reader, cluster, at_s, org_seq=seq_of(vector, ORG_BOOK))
    state = read_state(reader, cluster, at_s, config, vector=vector)
    spelt = model_of(host.gpu_model for host in state.hosts)
    request = replace(request, gpu_model=spelt(request.gpu_model))
    seq = seq_of(vector, cluster)
    cadence = read_cadence(reader, cluster, at_s, seq=seq)
    limits_s = rows.declared_limits(reader, cluster, at_s, seq=seq)
    protected_s = config.protected_s(request.minimum_runtime_s)
    then = _booked_by(reader, at_s) if as_of is None else None
    seen = Seen(reader, cluster, at_s, calendar, as_of or then)
    work = Work(request.account, request.gpus_milli, request.gpu_model, at_s, protected_s, runtime_s)
    asked = request if _would_be_held(seen, work) else replace(request, minimum_runtime_s=0)
    before = read_asked(reader, state, config, vector=vector)
    found = quote(state, config, asked, cadence=cadence, limits_s=limits_s, asked_before=before)
    if asked is not request:  # its queue is that of work without funding, and what it lacks is told
        found = replace(
            found, is_funded=shares_of(state).is_funded(request.account, request.minimum_runtime_s)
        )
    starts_s = at_s if found.starts_by_s is None else found.starts_by_s
    return Quoted(
        cluster=cluster,
        request=request,
        protected_s=protected_s,
        runtime_s=runtime_s,
        quote=found,
        cadence=cadence,
        budgets_as_of_s=None if then is None else at_s,
        funding=funding(seen, work._replace(starts_s=starts_s)),
    )


def _would_be_held(seen: Seen, work: Work) -> bool:
    """Tell whether an admission of now would set aside what protects it, if one were needed."""
    asked = funding(seen, work._replace(runtime_s=None))
    return not asked.is_hard or asked.hold.fits is not False


def _booked_by(reader: Reader, at_s: int) -> dt.datetime | None:
    """Return the recorded time of an instant, the whole of its second; None where nothing was booked since."""
    then = instant(at_s) + dt.timedelta(seconds=1, microseconds=-1)
    return None if queries.sequences(reader, then) == queries.sequences(reader) else then


def _fits(fits: bool | None) -> str:  # noqa: FBT001 - the word for it
    return {True: "fits", False: "does not fit", None: "is not known to fit"}[fits]
