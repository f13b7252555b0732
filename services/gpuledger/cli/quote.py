"""``gpuledger quote``: when work would start, before it is submitted."""

import re
from decimal import Decimal
from typing import Annotated

import typer

from gpuledger.cli.options import AnyCluster, AsOf, Json, moment_or_now, one_cluster, recorded
from gpuledger.cli.output import print_json
from gpuledger.kernel.errors import Refused

_UNITS_S = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_LENGTH = re.compile(r"([0-9]{1,9})\s*(s|min|m|h|d|)")
_GPUS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")


def quote(
    gpus: Annotated[str, typer.Argument(help="GPUs, all at once; up to three decimals.")],
    minimum_runtime: Annotated[
        str,
        typer.Argument(metavar="MIN_RUNTIME", help="The shortest run that makes progress: 2h, 90min, 5400."),
    ],
    account: Annotated[str, typer.Option("--account", help="Who would pay.")],
    *,
    cluster: AnyCluster = None,
    model: Annotated[str | None, typer.Option("--model", help="The GPU model that it insists on.")] = None,
    priority: Annotated[int, typer.Option("--priority", help="Order inside the account, higher first.")] = 0,
    runtime: Annotated[
        str | None,
        typer.Option("--runtime", help="How long it would run in all: can it finish inside the budget?"),
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="Ask at this instant; now unless given.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Say when work would start that is submitted now (a bound, or an estimate), and whether it can be paid for."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries
    from gpuledger.policy.quotes import Request
    from gpuledger.policy.quoting import ask_quote

    request = Request(
        account=account,
        gpus_milli=_milli(gpus),
        minimum_runtime_s=_seconds(minimum_runtime, "MIN_RUNTIME"),
        gpu_model=model,
        priority=priority,
    )
    runtime_s = None if runtime is None else _seconds(runtime, "--runtime")
    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        calendar = queries.calendar(reader, config.calendar, known_at)
        at_s = moment_or_now(at, "--at", calendar, known_at)
        where = one_cluster(cluster, queries.clusters(reader))
        found = ask_quote(
            reader, where, request, at_s=at_s, calendar=calendar, runtime_s=runtime_s, as_of=known_at
        )
    if as_json:
        print_json(found.as_json())
        return
    for line in found.lines():
        print(line)


def _seconds(text: str, what: str) -> int:
    read = _LENGTH.fullmatch(text.strip())
    if read is None:
        raise Refused(f"{what}: {text!r} is no length of time", hint="write 2h, 90min, 1d, or whole seconds")
    return int(read[1]) * _UNITS_S[read[2]]


def _milli(text: str) -> int:
    if not _GPUS.fullmatch(text):
        raise Refused(f"GPUS: {text!r} is no number of GPUs", hint="write 8, or 0.5: at most three decimals")
    return int(Decimal(text) * 1000)
