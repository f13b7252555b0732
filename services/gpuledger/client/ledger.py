"""The client: one method per path, errors by what the caller can do."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from gpuledger.client import answers, outcomes, plans, stories
from gpuledger.client.transport import Moment, Transport


class Order(NamedTuple):
    """An order about GPU-time: whose, how much, where, when, and why.

    Args:
        gpu_ms: Milli-GPU x seconds, above zero.
        period: Budget period, such as ``2026-12``.
    """

    account: str
    gpu_ms: int
    cluster: str
    period: str
    reason: str


class LedgerClient(Transport):
    """Asks the ledger API; safe to share between threads.

    What changes something may be repeated without harm, so that it is sent again when its answer was lost: events are
    known by their identity, an admission stands until it is used, an order has a key.

    Args:
        base_url: Where the API answers, such as ``http://127.0.0.1:8080``.
        token: The text of a token; none where the API is open.
        transport: Another way to reach it, for tests.
    """

    def clusters(self, *, as_of: Moment | None = None) -> answers.Clusters:
        """List clusters and the window that each can be asked for."""
        return self._get(answers.Clusters, "/v1/clusters", as_of=as_of)

    def books(self, *, as_of: Moment | None = None) -> answers.Books:
        """List books with their chain heads, and count the dead letters."""
        return self._get(answers.Books, "/v1/books", as_of=as_of)

    def balances(
        self,
        *,
        cluster: str | None = None,
        period: str | None = None,
        account: str | None = None,
        as_of: Moment | None = None,
    ) -> answers.Balances:
        """List balances; ``account`` keeps it and what is below it."""
        return self._get(
            answers.Balances,
            "/v1/balances",
            cluster=cluster,
            period=period,
            account=account,
            as_of=as_of,
        )

    def balance(
        self,
        account: str,
        *,
        cluster: str | None = None,
        period: str | None = None,
        as_of: Moment | None = None,
    ) -> answers.OneBalance:
        """Return one account's balance, of the newest period unless given.

        Raises:
            NotFound: When the account does not exist, or has no balance there and then.
        """
        path = f"/v1/balances/{quote(account)}"
        return self._get(answers.OneBalance, path, cluster=cluster, period=period, as_of=as_of)

    def allocations(self, cluster: str, *, as_of: Moment | None = None) -> answers.Cycle:
        """Return the newest cycle of a cluster.

        Raises:
            NotFound: When the cluster does not exist, or the policy has not run.
        """
        return self._get(answers.Cycle, "/v1/allocations/current", cluster=cluster, as_of=as_of)

    def directives(
        self,
        cluster: str,
        *,
        after: int | None = None,
        stale_after_s: int | None = None,
        as_of: Moment | None = None,
    ) -> answers.Directives:
        """Return what the newest cycle of a cluster orders; after a cursor, only what is newer.

        Raises:
            NotFound: When the cluster does not exist.
        """
        return self._get(
            answers.Directives,
            "/v1/directives/current",
            cluster=cluster,
            after=after,
            stale_after_s=stale_after_s,
            as_of=as_of,
        )

    def usage(
        self,
        by: str = "account",
        *,
        cluster: str | None = None,
        account: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        as_of: Moment | None = None,
    ) -> answers.Usage:
        """Return GPU-time used, of an account and what is below it where one is named.

        Keyed by account, month, day, user, class, cluster, host or model.
        """
        return self._get(
            answers.Usage,
            "/v1/usage",
            by=by,
            cluster=cluster,
            account=account,
            **{"from": from_},
            to=to,
            as_of=as_of,
        )

    def layers(
        self,
        by: str = "cluster",
        *,
        cluster: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        as_of: Moment | None = None,
    ) -> answers.Layers:
        """Return the four layers, keyed by day, month, hour, cluster or total; ``to`` is exclusive."""
        return self._get(
            answers.Layers,
            "/v1/layers",
            by=by,
            cluster=cluster,
            **{"from": from_},
            to=to,
            as_of=as_of,
        )

    def budget_vs_actual(
        self, *, cluster: str | None = None, period: str | None = None, as_of: Moment | None = None
    ) -> answers.BudgetVersusActual:
        """Return budget against actual, of the newest period unless given."""
        return self._get(
            answers.BudgetVersusActual,
            "/v1/budget-vs-actual",
            cluster=cluster,
            period=period,
            as_of=as_of,
        )

    def workload(
        self,
        workload: str,
        *,
        cluster: str | None = None,
        what_if: bool = False,
        as_of: Moment | None = None,
    ) -> stories.Workload:
        """Return a workload's story, and why it waits; ``what_if`` looks for what would let it start.

        Raises:
            NotFound: When the caller knows no such workload.
        """
        path = f"/v1/workloads/{quote(workload)}"
        wanted = "true" if what_if else None
        return self._get(stories.Workload, path, cluster=cluster, what_if=wanted, as_of=as_of)

    def movements(
        self,
        account: str,
        *,
        cluster: str | None = None,
        period: str | None = None,
        since: Moment | None = None,
        after: int | None = None,
        as_of: Moment | None = None,
    ) -> answers.Movements:
        """Return a page of what moved an account's budget; the next one takes ``next`` and the ``as_of`` of the first.

        Raises:
            NotFound: When the account or the cluster does not exist.
        """
        path = f"/v1/movements/{quote(account)}"
        return self._get(
            answers.Movements, path, cluster=cluster, period=period, since=since, after=after, as_of=as_of
        )

    def periods(self, *, cluster: str | None = None, as_of: Moment | None = None) -> answers.Periods:
        """List the budget periods that were opened or have movements."""
        return self._get(answers.Periods, "/v1/periods", cluster=cluster, as_of=as_of)

    def me(self) -> outcomes.WhoAmI:
        """Return who the API takes this client for."""
        return self._get(outcomes.WhoAmI, "/v1/me")

    def post_events(self, events: Iterable[bytes]) -> outcomes.TakenEvents:
        """Send CloudEvents in structured JSON, each as its bytes without line ends; at most 10,000.

        Raises:
            Refused: When one cannot be read; then none was taken.
            Forbidden: When one speaks of what the token does not reach.
        """
        body = b"\n".join(events)
        sent = self._send(
            "POST", "/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        return self._read(outcomes.TakenEvents, "/v1/events", sent)

    def admit(self, cluster: str, workload: str) -> outcomes.Admitted:
        """Ask in which class the next attempt of a workload may start; sets aside what protects it.

        Raises:
            NotFound: When the workload was not submitted.
            Refused: When it runs already or is over.
        """
        return self._post(outcomes.Admitted, "/v1/admissions", {"cluster": cluster, "workload": workload})

    def grant(self, order: Order, *, key: str | None = None, dry_run: bool = False) -> outcomes.Ordered:
        """Give GPU-time to an account.

        Args:
            order: How much to whom, and why.
            key: What a repetition is known by; random unless given.
            dry_run: Only check it.

        Raises:
            Forbidden: When the account does not lie below the token's own.
            Refused: When the book as it stands cannot take it.
        """
        return self._post(outcomes.Ordered, "/v1/budget/grants", order._asdict(), key=key, dry_run=dry_run)

    def transfer(
        self, order: Order, to: str, *, key: str | None = None, dry_run: bool = False
    ) -> outcomes.Ordered:
        """Move GPU-time from the order's account to another; see ``grant``."""
        body = {**order._asdict(), "to": to}
        return self._post(outcomes.Ordered, "/v1/budget/transfers", body, key=key, dry_run=dry_run)

    def divide(self, tree: plans.Tree) -> plans.Divided:
        """Divide GPUs among the accounts of a tree that was written by hand; nothing is kept.

        Raises:
            Refused: When an account stands twice or its name cannot be one.
        """
        return self._post(plans.Divided, "/v1/fairshare", msgspec.to_builtins(tree))

    def proposals(
        self,
        *,
        state: str | None = None,
        cluster: str | None = None,
        account: str | None = None,
        after: int | None = None,
        as_of: Moment | None = None,
    ) -> plans.Proposals:
        """List proposals, the newest first; ``account`` keeps those that name it or what is below it."""
        return self._get(
            plans.Proposals,
            "/v1/proposals",
            state=state,
            cluster=cluster,
            account=account,
            after=after,
            as_of=as_of,
        )

    def proposal(self, name: str, *, as_of: Moment | None = None) -> plans.OneProposal:
        """Return a proposal with what was said of it.

        Raises:
            NotFound: When there is none that the caller sees.
        """
        return self._get(plans.OneProposal, f"/v1/proposals/{quote(name)}", as_of=as_of)

    def propose(self, wish: plans.Wish, *, key: str | None = None, dry_run: bool = False) -> plans.Made:
        """Ask for changes; with ``dry_run`` only tell what they would change.

        Raises:
            Forbidden: When an account lies outside the token's reach.
            Refused: When it could not be approved as the books stand.
        """
        return self._post(plans.Made, "/v1/proposals", msgspec.to_builtins(wish), key=key, dry_run=dry_run)

    def say(
        self, proposal: str, step: plans.Step, reason: str, *, key: str | None = None
    ) -> outcomes.Ordered:
        """Comment on a proposal, approve it, reject it, or take it back.

        Raises:
            Conflict: When it was decided already.
            Forbidden: When it is not for the caller to decide.
        """
        path = f"/v1/proposals/{quote(proposal)}/{step.value}"
        return self._post(outcomes.Ordered, path, {"reason": reason}, key=key)
