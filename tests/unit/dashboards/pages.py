"""A client that answers from memory, and pages run by Streamlit itself over it."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import msgspec
from streamlit.testing.v1 import AppTest
from tests.unit.dashboards.answers import budget, budget_row, cycle, layers, layers_row, status, story

from gpuledger.client import answers, outcomes, plans, records, stories, waiting
from gpuledger.kernel.errors import GpuledgerError, NotFound
from gpuledger_dashboards import run

PAGES = Path(run.APP).parent / "app_pages"
PYRAMID, BUDGET, SHARES, WAITS, WORK, WASTE, HOSTS, AUDIT, PLANNING, PROPOSALS, ADMIN, LESSON = (
    PAGES / f"{name}.py"
    for name in (
        "pyramid",
        "budget_versus_actual",
        "fair_share",
        "waits",
        "work",
        "waste",
        "hosts",
        "audit",
        "planning",
        "proposals",
        "admin",
        "lesson",
    )
)


@dataclass
class FakeClient:
    """Answers as told, and remembers what it was asked."""

    statuses: tuple[answers.ClusterStatus, ...] = (status(), status("beta"))
    rows: tuple[answers.LayersRow, ...] = (layers_row("2026-03-01"), layers_row("2026-03-02"))
    budgets: tuple[answers.BudgetRow, ...] = (budget_row("alpha/a", 100, 120), budget_row("alpha/b", 50, 10))
    newest: answers.Cycle | None = field(default_factory=cycle)
    told: stories.Workload = field(default_factory=story)
    unknown: Exception | None = None
    error: Exception | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)
    trees: list[plans.Tree] = field(default_factory=list)
    wishes: tuple[plans.Proposal, ...] = ()
    name: str = "Prof. Lin"
    rights: tuple[str, ...] = ("propose", "change-budgets", "read-proposals")
    refusal: GpuledgerError | None = None
    tree: tuple[records.Account, ...] = ()
    effect: plans.Effect | None = None
    fleet: tuple[records.HostRow, ...] = ()
    leaving: tuple[records.DrainRow, ...] = ()
    failures: tuple[records.Incident, ...] = ()
    sealed: tuple[records.CloseRow, ...] = ()
    admitted: tuple[outcomes.TokenRow, ...] = ()
    waited: tuple[waiting.WaitsRow, ...] = ()
    wasted: tuple[waiting.WasteRow, ...] = ()
    wasted_in: tuple[str, ...] = ("2017-10",)
    earlier: answers.LayersRow | None = None
    targets: Mapping[str, Decimal | None] = field(default_factory=dict)
    all_books: answers.Books = field(
        default_factory=lambda: answers.Books(books=(), dead_letters=0, as_of="2026-12-01T12:00:00Z")
    )

    def clusters(self) -> answers.Clusters:
        if self.error:
            raise self.error
        return answers.Clusters(clusters=self.statuses, as_of="2026-03-11T06:00:00Z")

    def layers(self, by: str, *, cluster: str, from_: dt.date, to: dt.date) -> answers.Layers:
        asked = [kind for kind, *_ in self.asked]
        self.asked.append((by, cluster, str(from_), str(to)))
        # A second question for all days at once is about the time before.
        again = self.earlier is not None and by == "cluster" and by in asked
        rows = (self.earlier,) if again and self.earlier else self.rows if by == "day" else self.rows[:1]
        return msgspec.structs.replace(layers(*rows, by=by), targets=dict(self.targets))

    def allocations(self, cluster: str) -> answers.Cycle:
        self.asked.append((cluster,))
        if self.newest is None:
            raise NotFound(f"the policy has not run for cluster {cluster!r}")
        return self.newest

    def workload(self, name: str, *, cluster: str | None) -> stories.Workload:
        self.asked.append((name, cluster))
        if self.unknown:
            raise self.unknown
        return self.told

    def divide(self, tree: plans.Tree) -> plans.Divided:
        self.trees.append(tree)
        names = tuple(node.account for node in tree.accounts)
        return plans.Divided(issued=dict.fromkeys(names, "25"), order=names, idle="0")

    def proposals(self, *, state: str | None) -> plans.Proposals:
        if self.error:
            raise self.error
        kept = tuple(one for one in self.wishes if state in (None, one.state))
        return plans.Proposals(proposals=kept, next=None, as_of="2026-12-01T12:00:00Z")

    def accounts(self) -> records.Accounts:
        if self.error:
            raise self.error
        return records.Accounts(accounts=self.tree, next=None, as_of="2026-12-01T12:00:00Z")

    def hosts(self, *, cluster: str) -> records.Hosts:
        return records.Hosts(hosts=self.fleet, next=None, as_of="2026-12-01T12:00:00Z")

    def drains(self, *, cluster: str) -> records.Drains:
        return records.Drains(drains=self.leaving, next=None, as_of="2026-12-01T12:00:00Z")

    def incidents(
        self, *, cluster: str, from_: dt.date | None = None, to: dt.date | None = None
    ) -> records.Incidents:
        return records.Incidents(incidents=self.failures, next=None, as_of="2026-12-01T12:00:00Z")

    def books(self) -> answers.Books:
        if self.unknown:
            raise self.unknown
        return self.all_books

    def closes(self) -> records.Closes:
        if self.error:
            raise self.error
        return records.Closes(closes=self.sealed, next=None, as_of="2026-12-01T12:00:00Z")

    def waits(
        self, by: str, *, cluster: str, from_: dt.date, to: dt.date, class_: str | None
    ) -> waiting.Waits:
        self.asked.append(("waits", by, cluster, str(from_), str(to), class_))
        return waiting.Waits(
            rows=self.waited, by=by, cluster=cluster, account=None, class_=class_, from_=None, to=None,
            timezone="UTC", as_of="2026-03-11T06:00:00Z",
        )  # fmt: skip

    def waste(self, by: str, *, cluster: str, period: str | None) -> waiting.Waste:
        self.asked.append(("waste", by, cluster, period))
        rows = self.wasted[:1] if by == "total" else self.wasted
        chosen = period or (self.wasted_in[-1] if self.wasted_in else None)
        return waiting.Waste(
            rows=rows, by=by, cluster=cluster, account=None, period=chosen, periods=self.wasted_in,
            from_="2017-10-01T00:00:00Z", to="2017-11-01T00:00:00Z", timezone="UTC", as_of="2026-03-11T06:00:00Z",
        )  # fmt: skip

    def propose(self, wish: plans.Wish, *, key: str | None = None, dry_run: bool = False) -> plans.Made:
        self.asked.append((wish, dry_run))
        if self.refusal:
            raise self.refusal
        return plans.Made(
            applied=not dry_run,
            repeated=False,
            proposal="p-000000000009",
            effect=self.effect,
            seq=None,
            key=key or "k",
        )

    def tokens(self) -> outcomes.Tokens:
        self.asked.append(("tokens",))
        return outcomes.Tokens(tokens=self.admitted, as_of="2026-12-01T12:00:00Z")

    def me(self) -> outcomes.WhoAmI:
        return outcomes.WhoAmI(
            name=self.name, role="manager", rights=self.rights, subtree="org", clusters=(), token="t"
        )

    def say(self, proposal: str, step: plans.Step, reason: str, *, key: str) -> outcomes.Ordered:
        self.asked.append((proposal, step, reason))
        if self.refusal:
            raise self.refusal
        return outcomes.Ordered(applied=True, repeated=False, seq=1, key=key)

    def budget_vs_actual(self, *, cluster: str, period: str) -> answers.BudgetVersusActual:
        self.asked.append((cluster, period))
        return budget(*self.budgets)


def run_page(page: Path, **query: str) -> AppTest:
    app = AppTest.from_file(page, default_timeout=60)
    for name, value in query.items():
        app.query_params[name.rstrip("_")] = value
    app.run()
    assert not app.exception
    return app


def text_of(app: AppTest) -> str:
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.code)
    return "\n".join(element.value for kind in kinds for element in kind).replace("\\", "")
