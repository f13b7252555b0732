"""The tree of commands. A module of commands is imported when one of its commands is asked for, and not before."""

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class Entry(NamedTuple):
    """Where a command, or a group of commands, stands.

    Args:
        place: ``module:name`` below ``gpuledger.cli``: a function, or a ``typer.Typer``.
        help: What it does, for the list of commands: a line that fits a terminal.
        more: Commands of the group that stand elsewhere.
    """

    place: str
    help: str
    more: tuple[tuple[str, str], ...] = ()


COMMANDS = {
    "demo": Entry("demo:demo", "Run the whole path on real traces, then serve it."),
    "import": Entry("ingesting:import_", "Read foreign records into the ledger."),
    "ingest": Entry("ingesting:ingest", "Book the events of a topic until interrupted."),
    "collect": Entry(
        "collecting:app",
        "Ask schedulers for what they know, again and again.",
        (("kubernetes", "collecting_kubernetes:kubernetes"),),
    ),
    "reconcile": Entry("reconciling:app", "Compare the ledger with a scheduler's own record."),
    "agent": Entry("agent:app", "Agents that run on the hosts."),
    "budget": Entry(
        "budgets:app",
        "Accounts, shares, grants, transfers, adjustments.",
        (("grant", "grants:grant"), ("transfer", "grants:transfer"), ("adjust", "grants:adjust")),
    ),
    "proposal": Entry("proposals:app", "Changes of budgets: propose, discuss, decide."),
    "admit": Entry("admission:admit", "Decide in which class an attempt may run."),
    "period": Entry("periods:app", "Budget periods."),
    "close": Entry(
        "closes:app",
        "Closing budget periods.",
        (("verify", "closes_checking:verify"), ("diff", "closes_checking:diff")),
    ),
    "inventory": Entry("inventory:app", "Installed hosts and GPUs."),
    "policy-data": Entry("policy_data:app", "The rate card, the XID table and the policy's settings."),
    "mapping": Entry("mapping:app", "Rules from foreign names to accounts and terms."),
    "usage": Entry("reports:usage", "Print GPU-time used."),
    "balance": Entry("reports:balance", "Print what an account was granted, has used and has left."),
    "movements": Entry("movements:movements", "List what moved an account's budget."),
    "layers": Entry("reports:layers", "Print availability, occupancy, impact and utilisation."),
    "waits": Entry("waits:waits", "Print how long requests waited."),
    "waste": Entry("waste:waste", "Print charged time that was measured and not used."),
    "tick": Entry("ticking:tick", "Move the books' clocks to the last full hour."),
    "policy": Entry("policy:app", "The policy as a service."),
    "cycle": Entry("policy:cycle", "Run the policy once: order, issue, decisions with reasons."),
    "why": Entry("why:why", "Tell what happened to a workload, and why it waits."),
    "replay": Entry("policy:replay", "Compute a recorded cycle again, and compare."),
    "quote": Entry("quote:quote", "Say when work would start that is submitted now."),
    "calendar": Entry("agenda:calendar", "List what is to come, in order of time."),
    "enforce": Entry("enforcing:app", "Turn the newest cycle into settings of a scheduler."),
    "fairshare": Entry("fairshare:fairshare", "Divide GPUs among the accounts of a file."),
    "simulate": Entry(
        "simulating:app",
        "What would come of it: a simulated cluster.",
        (
            ("sweep", "simulating_sweep:sweep"),
            ("compare", "simulating_compare:compare"),
            ("backtest", "simulating_backtest:backtest"),
        ),
    ),
    "rollup": Entry("running:rollup", "Fill the warehouse, every table gated by its checks."),
    "archive": Entry("archiving:app", "Usage and telemetry as Parquet, and the roll-up over it."),
    "rebuild": Entry("ledger:rebuild", "Derive balances from the journal again, or check them."),
    "audit": Entry("ledger:audit_app", "Verify the ledger.", (("export-heads", "heads:export_heads"),)),
    "topics": Entry("topics:app", "The topics of the broker."),
    "dlq": Entry("dead_letters:app", "Records that could not be read."),
    "incident": Entry("incidents:app", "Hardware failures and their credits."),
    "user": Entry("users:app", "People whose names the ledger keeps aside."),
    "notify": Entry("notifying:app", "Tell people: budgets, failed checks, closes, proposals."),
    "backup": Entry("backups:backup", "Write all that the ledger keeps into one file."),
    "restore": Entry("backups:restore", "Bring a backup back, and verify every row."),
    "doctor": Entry("doctor:doctor", "Say what is wrong with an installation, and what mends it."),
    "login-files": Entry("login_files:login_files", "Keep what login nodes and portals show."),
    "token": Entry("tokens:app", "Who may ask the API, and how far they reach."),
    "serve": Entry("running:serve", "Serve API, dashboards and pipelines until Ctrl-C."),
    "db": Entry("database:app", "The database in use: its URL, its migrations."),
}
"""Name -> where it stands, in the order in which people meet them."""


class _Commands(Mapping[str, "Command"]):
    """The commands by name; one is imported when it is looked up."""

    def __getitem__(self, name: str) -> "Command":
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Tree(TyperGroup):
    """The root: it knows what its commands are called and what they do before it knows them."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - what Typer gives a group
        super().__init__(**attributes)
        self.commands = cast("MutableMapping[str, Command]", _Commands())  # nothing adds to it

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002 - as its base has it
        """Return the names in their order."""
        return list(COMMANDS)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002
        """Write the list of commands without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@cache
def _load(name: str) -> "Command":
    """Return a command as Typer makes it of its function or of its group.

    Raises:
        KeyError: When there is no such command.
    """
    entry = COMMANDS[name]
    found = _named(entry.place)
    if isinstance(found, typer.Typer):
        for below, place in entry.more:
            found.command(below)(_named(place))
        command: Command = get_group(found)
    else:
        own = typer.Typer(add_completion=False)
        own.command(name)(found)
        command = get_command(own)
    command.name, command.short_help = name, entry.help
    return command


def _named(place: str) -> Any:  # noqa: ANN401 - a function or a Typer
    module, _, name = place.partition(":")
    return getattr(import_module(f"gpuledger.cli.{module}"), name)


app = typer.Typer(
    name="gpuledger",
    cls=Tree,
    help="Budgets, fair shares and an append-only ledger of GPU time.",
    epilog="Exit status: 0 done, 1 failed, 2 bad usage or input, 3 a check found problems, 4 not found, "
    "75 try again later, 130 interrupted, 143 terminated.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Make the tree a group."""
