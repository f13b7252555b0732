"""The clients: one waits for answers, the other awaits them; both have every question and every change."""

from gpuledger.client import changes, proposing, questions, series
from gpuledger.client.asking import Asked
from gpuledger.client.transport import AsyncTransport, Transport


class Ledger:
    """What every client can ask and change, as ``questions``, ``series``, ``changes`` and ``proposing`` describe it."""

    me = Asked(questions.me)
    tokens = Asked(questions.tokens)
    clusters = Asked(questions.clusters)
    books = Asked(questions.books)
    balances = Asked(questions.balances)
    balance = Asked(questions.balance)
    allocations = Asked(questions.allocations)
    directives = Asked(questions.directives)
    usage = Asked(questions.usage)
    layers = Asked(questions.layers)
    budget_vs_actual = Asked(questions.budget_vs_actual)
    workload = Asked(questions.workload)
    waits = Asked(questions.waits)
    waste = Asked(questions.waste)
    movements = Asked(questions.movements)
    periods = Asked(questions.periods)
    hosts = Asked(questions.hosts)
    drains = Asked(questions.drains)
    incidents = Asked(questions.incidents)
    accounts = Asked(questions.accounts)
    closes = Asked(questions.closes)
    close_of = Asked(questions.close_of)
    balance_tree = Asked(series.balance_tree)
    queue = Asked(series.queue)
    owed = Asked(series.owed)
    post_events = Asked(changes.post_events)
    admit = Asked(changes.admit)
    grant = Asked(changes.grant)
    transfer = Asked(changes.transfer)
    divide = Asked(proposing.divide)
    proposals = Asked(proposing.proposals)
    proposal = Asked(proposing.proposal)
    propose = Asked(proposing.propose)
    say = Asked(proposing.say)


class LedgerClient(Ledger, Transport):
    """Asks the ledger API; safe to share between threads. Made as its transport is."""


class AsyncLedgerClient(Ledger, AsyncTransport):
    """The same for asyncio: each method is awaited, and many may be under way at once."""
