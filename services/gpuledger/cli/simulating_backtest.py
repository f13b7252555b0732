"""``gpuledger simulate backtest``: a month of a ledger, decided again under another budget or another policy."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gpuledger.cli.options import AnyCluster, AsOf, From, Json, To, moment, one_cluster, recorded
from gpuledger.cli.output import Advance, note, print_json, print_table, progress
from gpuledger.cli.simulating import ReportFile
from gpuledger.cli.simulating_compare import accounts_of, print_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuledger.simulator.backtest.reading import InForce, Retold, Stretch
    from gpuledger.simulator.backtest.replaying import BackTest
    from gpuledger.simulator.document import Simulation
    from gpuledger.simulator.scenario import Scenario


class Otherwise(NamedTuple):
    """Under what else the time is decided.

    Args:
        budget: A budget file or a scenario, whose shares are meant.
        policy: A policy file, whose settings are meant.
        settings: Single settings.
        in_force: A moment, of which the shares and the settings are meant.
    """

    budget: str | None
    policy: Path | None
    settings: "Sequence[str]"
    in_force: str | None

    @property
    def label(self) -> str:
        """What it is called; nothing where nothing is given."""
        named = [
            self.in_force and f"in force {self.in_force}",
            self.budget,
            self.policy and str(self.policy),
            *self.settings,
        ]
        return ", ".join(name for name in named if name)


Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="FILE", help="Decide it under the shares of a budget file, too."),
]
Policy = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Decide it under the settings of a policy file, too."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Decide it under a setting, such as policy.window_s=604800, too; repeatable.",
    ),
]
InForceOn = Annotated[
    str | None,
    typer.Option(
        "--in-force",
        metavar="DAY",
        help="Decide it under the shares and settings that are in force on another day, too.",
    ),
]
WarmUpDays = Annotated[
    int | None,
    typer.Option(
        "--warm-up-days",
        min=0,
        max=366,
        help="Simulate so many days before; as far as the policy looks back unless given.",
    ),
]


def backtest(
    cluster: AnyCluster = None,
    from_: From = None,
    to: To = None,
    budget: Budget = None,
    policy: Policy = None,
    settings: Setting = None,
    in_force: InForceOn = None,
    warm_up_days: WarmUpDays = None,
    report: ReportFile = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Decide what was asked for in a past time again, as the ledger tells it, and beside that under something else.

    Everything is read from the journal; nothing is booked.
    """
    from gpuledger.cli.simulated_files import see_to_place, write_page
    from gpuledger.simulator.backtest.replaying import back_test, named

    if report is not None:
        see_to_place("--report", report)
    otherwise = Otherwise(budget, policy, settings or (), in_force)
    stretch, retold, other = _read(cluster, (from_, to), recorded(as_of), warm_up_days, otherwise)
    for line in retold.scenario.notes:
        note(line)
    bars = _Bars()
    try:
        found = back_test(retold, other, watch=bars.watch)
    finally:
        bars.close()
    reports, names = named(found, otherwise.label)
    if report is not None:
        write_page(report, reports, names)
    if as_json:
        print_json(_document(stretch, found, otherwise.label))
    else:
        _print(stretch, found, reports, names)


def _read(
    cluster: str | None,
    window: tuple[str | None, str | None],
    known_at: dt.datetime | None,
    warm_up_days: int | None,
    otherwise: Otherwise,
) -> "tuple[Stretch, Retold, Scenario | None]":
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import vector_of
    from gpuledger.simulator.backtest.reading import Stretch, read_in_force, read_stretch

    config = settings.load()
    with open_database(config) as engine, reading(engine) as reader:
        name = one_cluster(cluster, queries.clusters(reader))
        queries.require_cluster(reader, name)
        calendar = queries.calendar(reader, config.calendar, known_at)
        known_s = seconds(known_at or SystemClock().now())
        from_s, to_s = moment(window[0], "--from", calendar), moment(window[1], "--to", calendar)
        from_s, days = _whole_days(from_s, to_s, known_s)
        vector = vector_of(reader, known_at)
        stretch = Stretch(
            cluster=name,
            from_s=from_s,
            days=days,
            warm_up_days=warm_up_days,
            known_s=known_s,
            vector=vector,
        )
        was = read_in_force(reader, name, from_s, vector)
        retold = read_stretch(reader, stretch, was)
        at_s = moment(otherwise.in_force, "--in-force", calendar)
        then = was if at_s is None else read_in_force(reader, name, at_s, vector)
        other = _other(retold, then, otherwise, name)
    return stretch, retold, other


def _whole_days(from_s: int | None, to_s: int | None, known_s: int) -> tuple[int, int]:
    """Return when it begins and how many days it has; where clocks are changed a day more or less an hour is one.

    Raises:
        Refused: When an end is not given or not over yet, or it does not begin at a full hour or has no whole days.
    """
    from gpuledger.kernel.errors import Refused
    from gpuledger.simulator.backtest.reading import DAY_S, HOUR_S

    if from_s is None or to_s is None:
        raise Refused(
            "--from, --to: name the time that is decided again",
            hint="such as --from 2026-10-01 --to 2026-11-01",
        )
    if to_s > known_s:
        raise Refused("--to: that is not over yet", hint="name a time of which all is known")
    days = (to_s - from_s + HOUR_S) // DAY_S
    if days < 1 or abs(days * DAY_S - (to_s - from_s)) > HOUR_S:
        raise Refused(
            "--from, --to: they are not whole days apart", hint="name the first day and the day after"
        )
    if from_s % HOUR_S:
        raise Refused("--from: that is no full hour of UTC", hint="name one, such as 2026-10-01T00:00:00Z")
    return from_s, days


def _other(retold: "Retold", then: "InForce", otherwise: Otherwise, cluster: str) -> "Scenario | None":
    """Return what is run beside; None where nothing is given, or where it comes to the same."""
    from gpuledger.ingest import policy_file
    from gpuledger.simulator.playing import set_all
    from gpuledger.simulator.sweep import one_of_each

    told = retold.scenario
    if not otherwise.label:
        return None
    accounts = tuple(replace(spec, share=then.shares.get(spec.account, spec.share)) for spec in told.accounts)
    other = replace(told, accounts=accounts, policy=then.policy)
    if otherwise.policy is not None:
        file = policy_file.read(otherwise.policy)
        changed = then.under(file.settings, file.cluster_settings.get(cluster))
        other = replace(other, policy=changed)
    if otherwise.budget is not None:
        other = replace(other, accounts=accounts_of(otherwise.budget, other))
    return set_all(other, one_of_each(otherwise.settings))


class _Bars:
    """A progress bar for each simulation, one after the other."""

    def __init__(self) -> None:
        from contextlib import ExitStack

        self._stack = ExitStack()

    def watch(self, what: str, scenario: "Scenario") -> "Callable[[int], None]":
        """Begin the bar of a simulation, and return what moves it."""
        self._stack.close()
        length_s = scenario.end_s - scenario.start_s
        advance: Advance = self._stack.enter_context(progress(f"simulate {scenario.name}, {what}", length_s))
        return lambda at_s: advance(at_s - scenario.start_s)

    def close(self) -> None:
        """End the last one."""
        self._stack.close()


def _document(stretch: "Stretch", found: "BackTest", label: str) -> dict[str, Any]:
    import msgspec

    from gpuledger.kernel.clock import instant, iso
    from gpuledger.simulator.backtest.replaying import UNKNOWN

    return {
        "cluster": stretch.cluster,
        "from": iso(instant(stretch.from_s)),
        "to": iso(instant(stretch.to_s)),
        "as_of": iso(instant(stretch.known_s)),
        "under": label or None,
        "unknown": list(UNKNOWN),
        **msgspec.to_builtins(found),
    }


def _print(
    stretch: "Stretch", found: "BackTest", reports: "Sequence[Simulation]", names: "Sequence[str]"
) -> None:
    from gpuledger.cli.output import counted
    from gpuledger.kernel.clock import instant
    from gpuledger.simulator.backtest.replaying import UNKNOWN
    from gpuledger.simulator.glance import overview, part_text, wait_text

    title = (
        f"{stretch.cluster}, {counted(stretch.days, 'day')} from {instant(stretch.from_s):%Y-%m-%dT%H:%MZ}"
    )
    columns = [f">{name}" for name in names]
    print_table(["", *columns], [(label, *cells) for label, cells in overview(reports)], title=title)
    rows = []
    for path in sorted({path for each in reports for path in each.accounts}):
        of = [each.accounts.get(path) for each in reports]
        rows += [
            (path, "GPU-hours", *("-" if a is None else f"{a.allocated + a.unallocated:,.0f}" for a in of)),
            ("", "delivered / owed", *("-" if a is None else part_text(a.window) for a in of)),
            ("", "wait p50, p90", *("-" if a is None else wait_text(a.wait_s) for a in of)),
        ]
    print_table(["account", "", *columns], rows)
    if found.comparison is not None:
        print_changes(found.comparison, names[-1])
    print("What a back-test cannot know:")
    for line in UNKNOWN:
        print(f"- {line}")
