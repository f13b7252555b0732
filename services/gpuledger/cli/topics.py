"""``gpuledger topics``: the topics of the broker, and how they are made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import print_json, print_table
from gpuledger.kernel.errors import Refused

if TYPE_CHECKING:
    from gpuledger.streams.topics import Described, Topic

app = typer.Typer(help="The topics of the broker.", no_args_is_help=True)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the topics with what they hold, what keys them, and how they are on the broker."""
    from gpuledger import settings
    from gpuledger.streams.opening import open_broker
    from gpuledger.streams.topics import TOPICS

    _show(open_broker(settings.load()).describe(TOPICS), as_json=as_json)


@app.command("create")
def create(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="All unless given.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, help="How many; that of the plan unless given.")
    ] = None,
    retention_days: Annotated[
        int | None,
        typer.Option(
            "--retention-days", min=0, help="How long messages are kept; 0 for ever. The plan's unless given."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create topics that do not exist yet; one that does keeps what it has. Workers do it by themselves.

    Equal keys share a partition, so that more partitions keep the order within a cluster, or a host.
    """
    from gpuledger import settings
    from gpuledger.streams.opening import open_broker
    from gpuledger.streams.topics import PLANS, TOPICS, Plan

    broker = open_broker(settings.load())
    chosen = _named(topics) if topics else TOPICS
    created: list[Topic] = []
    for topic in chosen:
        planned = PLANS[topic]
        kept = planned.retention_days if retention_days is None else retention_days or None
        plan = Plan(planned.holds, planned.key, partitions or planned.partitions, kept)
        created += broker.ensure_topics([topic], None if plan == planned else plan)
    _show(broker.describe(chosen), as_json=as_json, created=created)


def _named(names: Sequence[str]) -> "list[Topic]":
    from gpuledger.streams.topics import TOPICS

    known: dict[str, Topic] = {topic: topic for topic in TOPICS}
    for name in names:
        if name not in known:
            raise Refused(f"topic {name!r} is not known", hint=f"one of {', '.join(known)}")
    return [known[name] for name in names]


def _show(
    described: "Sequence[Described]", *, as_json: bool, created: "Sequence[Topic] | None" = None
) -> None:
    from gpuledger.streams.topics import PLANS

    documents: list[dict[str, Any]] = [
        {
            "topic": found.topic,
            "holds": PLANS[found.topic].holds,
            "key": PLANS[found.topic].key,
            "exists": found.partitions > 0,
            "partitions": found.partitions,
            "records": found.records,
            "retention_days": found.retention_days,
        }
        | ({} if created is None else {"created": found.topic in created})
        for found in described
    ]
    if as_json:
        print_json({"topics": documents})
        return
    rows = [
        (d["topic"], d["key"], d["partitions"] or "none yet", f"{d['records']:,}", _kept(d), d["holds"])
        for d in documents
    ]
    print_table(["topic", "key", ">partitions", ">records", ">kept", "holds"], rows)
    for topic in created or ():
        print(f"created {topic}")


def _kept(document: dict[str, Any]) -> str:
    if not document["exists"]:
        return ""
    days = document["retention_days"]
    return "for ever" if days is None else f"{days} days"
