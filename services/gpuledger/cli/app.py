"""The tree of commands. Each module of commands registers its own; nothing heavy is imported here."""

import typer

from gpuledger.cli import (
    admission,
    agenda,
    agent,
    budgets,
    closes,
    collecting,
    collecting_kubernetes,
    database,
    dead_letters,
    demo,
    enforcing,
    fairshare,
    grants,
    heads,
    incidents,
    ingesting,
    inventory,
    ledger,
    mapping,
    movements,
    periods,
    policy,
    policy_data,
    quote,
    reconciling,
    reports,
    running,
    simulating,
    simulating_backtest,
    simulating_compare,
    simulating_sweep,
    ticking,
    tokens,
    topics,
    users,
    why,
)

app = typer.Typer(
    name="gpuledger",
    help="Budgets, fair shares and an append-only ledger of GPU time.",
    epilog="Exit status: 0 done, 1 failed, 2 bad usage or input, 3 a check found problems, 4 not found, "
    "75 try again later, 130 interrupted, 143 terminated.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("import")(ingesting.import_)
app.command("ingest")(ingesting.ingest)
collecting.app.command("kubernetes")(collecting_kubernetes.kubernetes)
app.add_typer(collecting.app, name="collect")
app.add_typer(reconciling.app, name="reconcile")
budgets.app.command("grant")(grants.grant)
budgets.app.command("transfer")(grants.transfer)
budgets.app.command("adjust")(grants.adjust)
app.add_typer(budgets.app, name="budget")
app.add_typer(periods.app, name="period")
app.add_typer(closes.app, name="close")
app.add_typer(inventory.app, name="inventory")
app.add_typer(policy_data.app, name="policy-data")
app.add_typer(mapping.app, name="mapping")
app.command("admit")(admission.admit)
app.command("usage")(reports.usage)
app.command("balance")(reports.balance)
app.command("movements")(movements.movements)
app.command("layers")(reports.layers)
app.command("tick")(ticking.tick)
app.add_typer(policy.app, name="policy")
app.command("cycle")(policy.cycle)
app.command("why")(why.why)
app.command("replay")(policy.replay)
app.command("quote")(quote.quote)
app.command("calendar")(agenda.calendar)
app.add_typer(enforcing.app, name="enforce")
app.command("fairshare")(fairshare.fairshare)
simulating.app.command("sweep")(simulating_sweep.sweep)
simulating.app.command("compare")(simulating_compare.compare)
simulating.app.command("backtest")(simulating_backtest.backtest)
app.add_typer(simulating.app, name="simulate")
app.command("rollup")(running.rollup)
app.command("rebuild")(ledger.rebuild)
ledger.audit_app.command("export-heads")(heads.export_heads)
app.add_typer(ledger.audit_app, name="audit")
app.add_typer(topics.app, name="topics")
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(incidents.app, name="incident")
app.add_typer(users.app, name="user")
app.add_typer(tokens.app, name="token")
app.command("serve")(running.serve)
app.add_typer(agent.app, name="agent")
app.add_typer(database.app, name="db")
